@testable import StoreCore

/// The expected stream of a key whose origin pushes.
struct ModelStream {
    /// The connection; `nil` while the stream waits to connect again.
    var ticket: Ticket?
    var isConnected = false
    var connectedAt = 0
    var attempt = 1
    var reconnectsAt: MonotonicInstant?
    var silenceEnds: Int?
    /// The stream's own last value, and the number of the content that its validator names.
    var own: Own?
    /// The number of epochs when it began.
    var epoch: Int
    /// The revision of its last value, and the pace of its saves.
    var valueRevision = -1
    var lastSave: Int?
    var saveDue: Int?

    struct Own: Equatable {
        var content: [Int]
        var tag: Int?
    }

    var isWaiting: Bool { ticket == nil }
}

// Begins and ends streams, and delivers their values (L1 to L7).

extension ModelWorld {
    var isConnected: Bool { oracle.stream?.isConnected == true }
    var isWaiting: Bool { oracle.stream?.isWaiting == true }
    /// Whether an observer begins a stream even if the content is valid (L4).
    var lacksStream: Bool { setting.rules.isLive && oracle.stream == nil && oracle.accepted?.isComplete != true }
    private var silenceEnd: Int? { setting.rules.policy.idleTimeout.map { oracle.now + whole($0) } }

    // MARK: The beginning

    mutating func beginStream(_ ticket: Ticket, _ last: Validator?) {
        let sent = last?.entityTag.flatMap { Int($0) }
        check(oracle.stream?.ticket == nil && flight == nil, "L1", "two connections at once")
        check(isWanted || moment.servedStale || isBeingServedStale, "C1", "an unwanted connection")
        check(oracle.isKnown, "C1", "a connection before the accepted content is known")
        if moment.event == .timer, let stream = oracle.stream, let start = stream.reconnectsAt, start <= instant(oracle.now) {
            check(sent == stream.own?.tag, "L4", "connects again with validator \(sent as Any) instead of \(stream.own as Any)")
            oracle.stream?.ticket = ticket
            oracle.stream?.reconnectsAt = nil
            if sent == nil { oracle.stream?.own = nil }
        } else {
            checkCause()
            check(sent == oracle.accepted?.tag, "L3", "a new stream sends a validator of another record")
            var stream = ModelStream(ticket: ticket, epoch: oracle.streamEpoch)
            if let sent, let accepted = oracle.accepted { stream.own = ModelStream.Own(content: accepted.content, tag: sent) }
            oracle.stream = stream
        }
        if !oracle.isValid(setting) { oracle.isArmed = false }
        let end = silenceEnd
        oracle.stream?.silenceEnds = end
        oracle.triggerWaits = false
        moment.begun.append(ticket)
        running.append(ModelFetch(ticket: ticket, order: .values(after: last), epoch: oracle.epoch))
    }

    // MARK: Values

    mutating func push(_ value: ModelEvent.Push, _ transition: inout Transition) {
        guard let stream = oracle.stream, let ticket = stream.ticket else { return }
        let end = silenceEnd
        oracle.stream?.silenceEnds = end
        let goesOn: Bool
        switch value {
        case .content:
            let number = nextNumber("pushed")
            accept([number], number)
            goesOn = machine.streamYielded(ticket, .content([number], validator(number)), &transition)
        case .change:
            let number = nextNumber("change")
            if let own = stream.own, oracle.accepted != nil {
                accept(own.content + [number], number)
            } else {
                moment.ended.append(ticket)
                connectionEnds(failure: -1, after: StorePolicy.shortestInterval)
            }
            goesOn = machine.streamYielded(ticket, .change({ $0.append(number) }, validator(number)), &transition)
        case .current:
            if let flight, flight.last != nil, var confirmed = oracle.accepted {
                connect()
                confirmed.fetchedAt = oracle.now
                (confirmed.isInvalidated, confirmed.isComplete) = (false, false)
                moment.isFetchEnded = true
                acceptFetched(confirmed)
                oracle.owesFetch = false
                let revision = oracle.revision
                oracle.stream?.valueRevision = revision
            }
            goesOn = machine.streamYielded(ticket, .current, &transition)
        }
        moment.goesOn = goesOn
    }

    private func validator(_ number: Int) -> Validator? { setting.world.contains(.validators) ? Validator(entityTag: "\(number)") : nil }

    private mutating func accept(_ content: [Int], _ number: Int) {
        connect()
        let tag = setting.world.contains(.validators) ? number : nil
        var new = ModelOracle.Accepted(content: content, fetchedAt: oracle.now)
        new.tag = tag
        moment.isFetchEnded = true
        oracle.owesFetch = false
        oracle.patches.removeAll(where: \.isConfirmed)
        acceptFetched(new)
        oracle.stream?.own = ModelStream.Own(content: content, tag: tag)
        let revision = oracle.revision
        oracle.stream?.valueRevision = revision
    }

    private mutating func connect() {
        guard !isConnected else { return }
        running.removeAll(where: \.isOfContent)
        oracle.stream?.isConnected = true
        let now = oracle.now
        oracle.stream?.connectedAt = now
        oracle.lastEnded = now
    }

    // MARK: The end

    mutating func streamEnds(fails: Bool, _ transition: inout Transition) {
        guard let ticket = oracle.stream?.ticket else { return }
        let number = fails ? nextNumber() : nil
        connectionEnds(failure: number ?? (isConnected ? nil : -1), after: fails ? .seconds(1) : StorePolicy.shortestInterval)
        machine.streamEnded(ticket, number.map { ModelError(number: $0) }, &transition)
    }

    private mutating func connectionEnds(failure: Int?, after pause: Duration) {
        guard let ended = oracle.stream else { return }
        let stood = ended.isConnected && .seconds(oracle.now - ended.connectedAt) >= setting.rules.policy.boundedInterval
        closeConnection()
        guard let failure else {
            oracle.stream = nil
            guard oracle.accepted != nil else { return }
            oracle.accepted?.isComplete = true
            oracle.revision += 1
            return
        }
        oracle.failure = ModelOracle.Failure(number: failure, holdsUntil: oracle.now + whole(setting.rules.policy.errorExpiry))
        let attempt = stood ? 1 : ended.attempt
        guard isWanted, attempt < setting.rules.policy.retry.attempts else {
            oracle.stream = nil
            moment.failedWith = failure
            moment.isFetchEnded = true
            return
        }
        oracle.stream?.attempt = attempt + 1
        let start = instant(oracle.now).advanced(by: pause)
        oracle.stream?.reconnectsAt = start
        oracle.stream?.silenceEnds = nil
        oracle.stream?.lastSave = nil
        oracle.stream?.saveDue = nil
    }

    /// The lifetime of the content begins (L5).
    private mutating func closeConnection() {
        running.removeAll(where: \.isOfContent)
        oracle.lastEnded = oracle.now
        oracle.stream?.ticket = nil
        guard isConnected else { return }
        oracle.stream?.isConnected = false
        guard setting.expiry != nil, oracle.accepted != nil else { return }
        let now = oracle.now
        oracle.accepted?.fetchedAt = now
        oracle.revision += 1
        oracle.isArmed = setting.rules.policy.revalidatesOnExpiry && oracle.isValid(setting)
    }

    /// The store ends the stream.
    mutating func endStream() {
        guard let stream = oracle.stream else { return }
        if let ticket = stream.ticket {
            moment.ended.append(ticket)
            if let fetch = flight {
                late.removeAll { $0.isOfContent }
                late.append(fetch)
            }
            closeConnection()
        }
        oracle.stream = nil
    }

    /// A new epoch ends the stream, and nothing of it is accepted afterward (L3).
    mutating func endEpoch() {
        oracle.streamEpoch += 1
        endStream()
    }

    /// An unwanted stream ends with its grace period, and after its first value if fetches run to completion.
    mutating func endUnwantedStream() {
        guard let stream = oracle.stream, !isWanted else { return }
        if setting.grace == 0, flight?.isPromised != true { endStream() }
        if setting.grace == nil, stream.isConnected || stream.isWaiting { endStream() }
    }

    mutating func streamTimer() {
        if let ends = oracle.graceEnds, ends <= oracle.now { endStream() }
        guard let stream = oracle.stream else { return }
        if let due = stream.saveDue, due <= oracle.now { oracle.stream?.saveDue = nil }
        if let ends = stream.silenceEnds, ends <= oracle.now, let ticket = stream.ticket {
            moment.ended.append(ticket)
            connectionEnds(failure: -1, after: StorePolicy.shortestInterval)
        }
        moment.mustReconnect = isWanted && stream.reconnectsAt.map { $0 <= instant(oracle.now) } == true
    }

    // MARK: Saves

    /// Whether the last value is saved later, because another one was saved within the interval (L6).
    private var defersSave: Bool {
        guard let stream = oracle.stream, stream.valueRevision == oracle.revision, !isSaveAwaited else { return false }
        guard stream.saveDue == nil else { return true }
        return stream.lastSave.map { oracle.now < $0 + whole(setting.rules.policy.saveInterval) } ?? false
    }

    private var isSaveAwaited: Bool { callers.contains { $0.awaits != nil && !$0.isAnswered } }

    mutating func saveIsRequested() {
        guard let stream = oracle.stream, stream.valueRevision == oracle.revision else { return }
        guard !isSaveAwaited, setting.rules.policy.saveInterval > .zero else { return }
        check(!defersSave, "L6", "saves two values within the interval")
        let now = oracle.now
        oracle.stream?.lastSave = now
    }

    mutating func noteDeferredSave() {
        guard setting.rules.hasBacking, oracle.isKnown, oracle.settled < oracle.revision, !saveWaits, defersSave else { return }
        if let call, call.kind != .read, call.revision == oracle.revision { return }
        if let last = oracle.stream?.lastSave, oracle.stream?.saveDue == nil {
            oracle.stream?.saveDue = last + whole(setting.rules.policy.saveInterval)
        }
    }

    // MARK: Laws

    func checkStream() {
        let (stream, expected) = (machine.origin.stream, oracle.stream)
        check((stream != nil) == (expected != nil), "L4", "the stream \(stream == nil ? "is over" : "runs on")")
        if let goesOn = moment.goesOn {
            check(goesOn == (expected?.isWaiting == false), "L3", "the connection \(goesOn ? "goes on" : "does not go on")")
        }
        if moment.mustReconnect { check(!moment.begun.isEmpty, "L4", "the stream does not connect again") }
        guard let stream, let expected else { return }
        check(stream.ticket == expected.ticket, "L1", "the machine's connection is not the open one")
        check(expected.epoch == oracle.streamEpoch, "L3", "a stream of an older epoch keeps running")
        check(machine.origin.isConnected == expected.isConnected, "L5", "the connection \(expected.isConnected ? "stands" : "is open")")
        check(stream.reconnectsAt == expected.reconnectsAt, "L4", "connects again at \(stream.reconnectsAt as Any)")
        check(stream.attempt == expected.attempt, "L4", "counts \(stream.attempt) attempts instead of \(expected.attempt)")
        check(stream.hasValue == (expected.own != nil), "L3", "the stream's last value is \(expected.own as Any)")
        guard stream.hasValue, let record = machine.book.held?.record else { return }
        var (content, validator) = (record.content, record.validator)
        if case .overtaken(let last, let tag) = stream.last { (content, validator) = (last, tag) }
        let own = ModelStream.Own(content: content, tag: validator?.entityTag.flatMap { Int($0) })
        check(own == expected.own, "L3", "the stream's last value is \(expected.own as Any), not \(own)")
    }
}
