#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

// A key whose origin pushes (L1 to L7).
//
// A stream connects, is connected, and after a failure waits to connect again. While it connects, it is the key's fetch: observers see it
// load, and callers wait for its first value. While it is connected, its content is valid and nothing is fetched.

extension KeyMachine {
    /// Whether the current connection of the stream has delivered a value.
    var isConnected: Bool { stream?.value.connectedAt != nil }

    /// Lets the stream serve a request for a fetch.
    ///
    /// - Returns: `false` if a connection must begin. An explicit refresh and a trigger end the stream before that.
    mutating func joinStream(forceRefresh: Bool, _ turn: inout Turn) -> Bool {
        guard stream != nil else { return false }
        // A trigger may have come too early.
        let isTriggered = triggerPending && automaticFetchDue.map { $0 <= turn.now } == true
        guard !forceRefresh, !isTriggered else {
            endStream(&turn)
            return false
        }
        // Otherwise the timer of expired content would fire again at once.
        refetchesAtDeadline = false
        report(.coalesced, &turn)
        return true
    }

    /// Begins a stream with its first connection.
    mutating func beginStream(_ ticket: Ticket, after last: Validator?, _ turn: inout Turn) -> FetchOrder {
        stream = OutOfLine(LiveStream(ticket: ticket, hasValue: last != nil))
        listen(&turn)
        return .values(after: last)
    }

    /// Connects again, with the validator of the stream's last value.
    private mutating func reconnect(_ turn: inout Turn) {
        let ticket = turn.tickets.next()
        var last: Validator?
        if stream?.value.hasValue == true {
            last = if let overtaken = stream?.value.overtaken { overtaken.validator } else { held?.record.validator }
        }
        if last == nil { forgetValue(&turn) }
        stream?.value.ticket = ticket
        stream?.value.reconnectsAt = nil
        triggerPending = false
        flight = Flight(ticket: ticket, forceRefresh: refreshCallers > 0, revalidates: last != nil)
        turn.actions.append(.fetch(ticket, .values(after: last)))
        turn.publishes = true
        listen(&turn)
    }

    // MARK: Values

    /// A connection has delivered a value.
    ///
    /// - Returns: Whether the connection is to deliver more.
    mutating func streamYielded(_ ticket: Ticket, _ value: LiveValue<Content>, _ turn: inout Turn) -> Bool {
        guard stream?.value.ticket == ticket else {
            // Legal: the stream was ended or replaced before the value arrived.
            report(.droppedAsOutdated(.content), &turn)
            return false
        }
        listen(&turn)
        switch value {
        case .content(let content, let validator):
            accept(content, validator, &turn)
        case .change(let change, let validator):
            guard let value = stream?.value, value.hasValue, held != nil else {
                turn.actions.append(.cancel(ticket))
                connectionEnded(StoreError.nothingToChange, &turn)
                break
            }
            if var content = value.overtaken?.content {
                change(&content)
                accept(content, validator, &turn)
            } else {
                changeInPlace(change, validator, &turn)
            }
        case .current:
            confirm(&turn)
        }
        endTurn(&turn)
        return stream?.value.ticket == ticket
    }

    /// Whether a change will be applied to the accepted content.
    func willChange(_ ticket: Ticket) -> Bool {
        guard let stream else { return false }
        return stream.value.ticket == ticket && stream.value.hasValue && stream.value.overtaken == nil && held != nil
    }

    /// Accepts content of the stream: every later read returns it.
    private mutating func accept(_ content: Content, _ validator: Validator?, _ turn: inout Turn) {
        connected(&turn)
        forgetValue(&turn)
        discardPatches(&turn) { $0.isConfirmed }
        if !patches.isEmpty { noteFetch() }
        let details = validator.flatMap { RecordDetails(freshness: .unspecified, validator: $0) }
        accept(CacheRecord(content: content, fetchedAt: turn.date, details: details), .set, &turn)
        valueAccepted(&turn)
    }

    /// Changes the accepted content, which is the stream's last value. It is copied only if a snapshot of it is in use.
    private mutating func changeInPlace(_ change: (inout Content) -> Void, _ validator: Validator?, _ turn: inout Turn) {
        connected(&turn)
        discardPatches(&turn) { $0.isConfirmed }
        if !patches.isEmpty { noteFetch() }
        guard var record = held?.record else { return }
        held = nil
        change(&record.content)
        record.fetchedAt = turn.date
        record.details = RecordDetails(freshness: record.freshness, validator: validator)
        held = HeldRecord(record, deadline: .distantFuture)
        refetchesAtDeadline = false
        epoch = turn.tickets.next()
        contentNumber += 1
        mergeIndex = nil
        forgetFailures(into: &turn.leftovers)
        truthChanged(.set, &turn)
        valueAccepted(&turn)
    }

    /// The version that the store sent is current.
    private mutating func confirm(_ turn: inout Turn) {
        // Without a validator there was nothing to confirm: the first value is still to come.
        guard flight?.revalidates == true, var record = held?.record else { return }
        connected(&turn)
        record.fetchedAt = turn.date
        record.isInvalidated = false
        let (hadValue, overtaken) = (stream?.value.hasValue ?? false, stream?.value.overtaken)
        stream?.value.hasValue = false
        accept(record, keepingContent: true, .derived, &turn)
        valueAccepted(&turn)
        stream?.value.hasValue = hadValue
        stream?.value.overtaken = overtaken
    }

    /// The connection has delivered a value, so it is no longer a fetch.
    private mutating func connected(_ turn: inout Turn) {
        guard flight != nil || !isConnected else { return }
        flight = nil
        stream?.value.connectedAt = turn.now
        lastFetchEnded = turn.now
        turn.publishes = true
    }

    private mutating func valueAccepted(_ turn: inout Turn) {
        stream?.value.hasValue = true
        stream?.value.revision = revision
        if owesFetch { owesFetch = false }
        if fetchCallers > 0 { answerAfterFetch(&turn) }
    }

    /// Keeps the stream's last value, because the accepted content is about to be set by others (L3).
    mutating func keepValue() {
        guard let value = stream?.value, value.hasValue, value.overtaken == nil, let record = held?.record else { return }
        stream?.value.overtaken = (record.content, record.validator)
    }

    private mutating func forgetValue(_ turn: inout Turn) {
        stream?.value.hasValue = false
        guard let overtaken = stream?.value.overtaken else { return }
        turn.discarded.append(overtaken.content)
        stream?.value.overtaken = nil
    }

    // MARK: The end of a connection

    /// A connection has ended, or has failed with an error.
    mutating func streamEnded(_ ticket: Ticket, _ error: (any Error)?, _ turn: inout Turn) {
        guard stream?.value.ticket == ticket else {
            report(.droppedAsOutdated(.content), &turn)
            return
        }
        connectionEnded(error, &turn)
        endTurn(&turn)
    }

    private mutating func connectionEnded(_ error: (any Error)?, _ turn: inout Turn) {
        guard let ended = stream?.value else { return }
        let failure = error ?? (flight == nil ? nil : StoreError.endedWithoutValue)
        flight = nil
        lastFetchEnded = turn.now
        turn.publishes = true
        beginLifetime(&turn)
        guard let failure else { return forgetStream(&turn) }
        // A stream that repeatedly fails after its first value must not connect again at full speed.
        let stood = ended.connectedAt.map { $0.duration(to: turn.now) } ?? .zero
        let attempt = stood >= rules.policy.boundedInterval ? 1 : ended.attempt
        guard isWanted, let delay = rules.policy.retry.delay(after: failure, attempt: attempt, unit: .random(in: 0..<1)) else {
            forgetStream(&turn)
            return flightFailed(failure, &turn)
        }
        let pause = max(StorePolicy.shortestInterval, delay)
        report(.retried(.content, attempt: attempt, delay: pause, failure), &turn)
        fail(failure, &turn)
        if fetchCallers > 0 {
            // The others wait for the next connection.
            let stale = staleAnswer(failure, &turn)
            answerCallers(&turn) { $0 == .content ? stale : nil }
        }
        stream?.value.ticket = nil
        stream?.value.attempt = attempt + 1
        stream?.value.reconnectsAt = turn.now.advanced(by: pause)
        stream?.value.silenceEnds = nil
        // Saves the last value at once.
        stream?.value.lastSave = nil
        stream?.value.saveDue = nil
    }

    /// Ends the stream; none of its values is accepted afterward (L3).
    mutating func endStream(_ turn: inout Turn) {
        guard let ticket = stream?.value.ticket else { return forgetStream(&turn) }
        turn.actions.append(.cancel(ticket))
        flight = nil
        lastFetchEnded = turn.now
        turn.publishes = true
        beginLifetime(&turn)
        forgetStream(&turn)
    }

    private mutating func forgetStream(_ turn: inout Turn) {
        forgetValue(&turn)
        stream = nil
    }

    /// Returns the accepted record with a lifetime that begins now; `nil` if the stream is not connected, or if the record never expires.
    func heldAfterStream(_ now: MonotonicInstant, _ date: Date) -> HeldRecord<Content>? {
        guard isConnected, var record = held?.record, (record.freshness.lifetime ?? rules.expiry.lifetime) != nil else { return nil }
        record.fetchedAt = date
        return HeldRecord(record, expiry: rules.expiry, now: now)
    }

    /// The lifetime of the content begins when its connection ends (L5).
    private mutating func beginLifetime(_ turn: inout Turn) {
        let dated = heldAfterStream(turn.now, turn.date)
        stream?.value.connectedAt = nil
        guard let dated else { return }
        refetchesAtDeadline = rules.policy.revalidatesOnExpiry && dated.expires(after: turn.now)
        held = dated
        truthChanged(.derived, &turn)
    }

    // MARK: Time

    /// A time of the stream may have come.
    mutating func streamTimerFired(_ turn: inout Turn) {
        guard let stream = stream?.value else { return }
        if let due = stream.saveDue, due <= turn.now { self.stream?.value.saveDue = nil }
        if let end = stream.silenceEnds, end <= turn.now, let ticket = stream.ticket, let limit = rules.policy.idleTimeout {
            turn.actions.append(.cancel(ticket))
            connectionEnded(StoreError.silent(for: limit), &turn)
        }
        if let start = stream.reconnectsAt, start <= turn.now, isWanted { reconnect(&turn) }
    }

    /// Begins the allowed silence of the connection again.
    private mutating func listen(_ turn: inout Turn) {
        guard let limit = rules.policy.idleTimeout else { return }
        stream?.value.silenceEnds = turn.now.advanced(by: limit)
    }

    /// Whether the stream's last value is saved later, because another one was saved a short while ago (L6).
    mutating func defersSave(_ turn: inout Turn) -> Bool {
        guard let value = stream?.value, value.revision == revision, rules.policy.saveInterval > .zero else { return false }
        // A caller that waits for a save must not wait for the interval as well.
        if !callers.isEmpty, callers.contains(where: { $0.value.isSavedNeed }) { return false }
        if value.saveDue != nil { return true }
        if let last = value.lastSave {
            let due = last.advanced(by: rules.policy.saveInterval)
            if turn.now < due {
                stream?.value.saveDue = due
                return true
            }
        }
        stream?.value.lastSave = turn.now
        return false
    }
}
