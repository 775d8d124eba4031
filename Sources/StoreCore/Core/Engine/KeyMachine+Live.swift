#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

// A key whose origin pushes (L1 to L7).
//
// A stream connects, is connected, and after a failure waits to connect again. While it connects, it is the key's fetch: observers see it
// load, and callers wait for its first value. While it is connected, its content is valid and nothing is fetched.

/// The stream of a key whose origin pushes, from the first connection until the stream is over.
struct LiveStream<Content: Sendable> {
    enum Connection: Hashable {
        /// It has not delivered a value, and is the key's fetch.
        case connecting(Flight)
        case connected(Ticket, since: MonotonicInstant)
        case waiting(until: MonotonicInstant)
    }

    enum LastValue {
        case none
        /// The accepted content.
        case accepted
        /// The accepted content was set by others after this value (L3), or its entities may have changed it.
        case overtaken(Content, Validator?)
    }

    var connection: Connection
    /// The number of this attempt to connect, from 1. Starts over after a connection that has lasted for a while.
    var attempt = 1
    var silenceEnds: MonotonicInstant?
    var last: LastValue

    /// The saves of the stream's last value.
    var pace = SavePace()
    /// The time at which callers get stale content, if the stream waits after a connection without a value.
    var staleDue: MonotonicInstant?

    init(_ flight: Flight) {
        connection = .connecting(flight)
        last = flight.revalidates ? .accepted : .none
    }

    /// The connection; `nil` while the stream waits to connect again.
    var ticket: Ticket? {
        switch connection {
        case .connecting(let flight): flight.ticket
        case .connected(let ticket, since: _): ticket
        case .waiting: nil
        }
    }

    var reconnectsAt: MonotonicInstant? { if case .waiting(let time) = connection { time } else { nil } }
    var hasValue: Bool { if case .none = last { false } else { true } }

    /// The time of the next step that no fact causes; `.distantFuture` for none. An unwanted stream does not connect again.
    func nextWake(isWanted: Bool) -> MonotonicInstant {
        min((isWanted ? reconnectsAt : nil) ?? .distantFuture, silenceEnds ?? .distantFuture, pace.due ?? .distantFuture)
    }
}

extension OriginWork {
    @inline(__always)
    var isStreaming: Bool { if case .streaming = phase { true } else { false } }

    /// Whether the current connection of the stream has delivered a value.
    var isConnected: Bool {
        guard case .streaming(let stream) = phase, case .connected = stream.value.connection else { return false }
        return true
    }

    var stream: LiveStream<Content>? { if case .streaming(let stream) = phase { stream.value } else { nil } }

    mutating func changeStream(_ change: (inout LiveStream<Content>) -> Void) {
        guard case .streaming(var stream) = phase else { return }
        // Releases the other reference, so that the stream is changed in place.
        phase = .idle
        change(&stream.value)
        phase = .streaming(stream)
    }
}

extension KeyMachine {
    /// Lets the stream serve a request for a fetch.
    ///
    /// - Returns: `false` if a connection must begin. An explicit refresh and a trigger end the stream before that.
    mutating func joinStream(forceRefresh: Bool, _ transition: inout Transition) -> Bool {
        guard origin.isStreaming else { return false }
        // A trigger may have come too early.
        let isTriggered = desk.triggerPending && automaticFetchDue.map { $0 <= transition.now } == true
        guard !forceRefresh, !isTriggered else {
            cancelStream(&transition)
            return false
        }
        report(.coalesced, &transition)
        return true
    }

    mutating func beginStream(_ flight: Flight, _ transition: inout Transition) {
        origin.phase = .streaming(OutOfLine(LiveStream(flight)))
        if transition.showsEntities { keepValue() }
        listen(&transition)
    }

    /// Connects again, with the validator of the stream's last value.
    private mutating func reconnect(_ transition: inout Transition) {
        let ticket = transition.tickets.next()
        let last: Validator? =
            switch origin.stream?.last {
            case .none?, nil: nil
            case .accepted: book.held?.record.validator
            case .overtaken(_, let validator): validator
            }
        if last == nil { forgetValue(&transition) }
        automaticFetchBegins(&transition)
        let flight = Flight(
            ticket: ticket, forceRefresh: desk.refreshCallers > 0, revalidates: last != nil,
            staleDue: origin.staleDue ?? staleDueOfFlight(&transition))
        origin.changeStream { ($0.connection, $0.staleDue) = (.connecting(flight), nil) }
        transition.actions.append(.fetch(ticket, .values(after: last)))
        transition.publishes = true
        listen(&transition)
    }

    // MARK: Values

    /// A connection has delivered a value. Returns whether the connection is to deliver more.
    mutating func streamYielded(_ ticket: Ticket, _ value: LiveValue<Content>, _ transition: inout Transition) -> Bool {
        guard origin.stream?.ticket == ticket else {
            // Legal: the stream was ended or replaced before the value arrived.
            report(.droppedAsOutdated(.content), &transition)
            return false
        }
        listen(&transition)
        switch value {
        case .content(let content, let validator):
            accept(content, validator, &transition)
        case .change(let change, let validator):
            switch origin.stream?.last {
            case .accepted where book.held != nil:
                changeInPlace(change, validator, &transition)
            case .overtaken(let last, _) where book.held != nil:
                var content = last
                change(&content)
                accept(content, validator, from: last, &transition)
            default:
                transition.actions.append(.cancel(ticket))
                connectionEnded(StoreError.nothingToChange, &transition)
            }
        case .current:
            confirm(&transition)
        }
        endTransition(&transition)
        return origin.stream?.ticket == ticket
    }

    /// Whether a change will be applied to the accepted content.
    func willChange(_ ticket: Ticket) -> Bool {
        guard let stream = origin.stream, stream.ticket == ticket, case .accepted = stream.last else { return false }
        return book.held != nil
    }

    /// Accepts content of the stream: every later read returns it. A pushed change counts only for the places that differ from `last`.
    private mutating func accept(
        _ content: Content, _ validator: Validator?, from last: Content? = nil, _ transition: inout Transition
    ) {
        connected(&transition)
        forgetValue(&transition)
        contentArrived(&transition)
        let details = validator.flatMap { RecordDetails(freshness: .unspecified, validator: $0) }
        if let last, transition.showsEntities {
            transition.noteChanged(from: last, over: book.held?.record.content)
        } else {
            transition.noteFetched(nil, over: book.held?.record)
        }
        accept(CacheRecord(content: content, fetchedAt: transition.date, details: details), .set, &transition)
        valueAccepted(&transition)
        if transition.showsEntities { origin.changeStream { $0.last = .overtaken(content, validator) } }
    }

    /// Changes the accepted content, which is the stream's last value. It is copied only if a snapshot of it is in use.
    private mutating func changeInPlace(_ change: (inout Content) -> Void, _ validator: Validator?, _ transition: inout Transition) {
        connected(&transition)
        contentArrived(&transition)
        guard var record = book.held?.record else { return }
        book.held = nil
        transition.noteFetched(nil, over: nil)
        change(&record.content)
        record.fetchedAt = transition.date
        record.details = RecordDetails(freshness: record.freshness, validator: validator)
        book.held = HeldRecord(record, deadline: .distantFuture)
        book.epoch = transition.tickets.next()
        contentReplaced()
        forgetFailures(into: &transition.leftovers)
        acceptedContentChanged(.set, &transition)
        valueAccepted(&transition)
    }

    /// The version that the store sent is current.
    private mutating func confirm(_ transition: inout Transition) {
        // Without a validator there was nothing to confirm: the first value is still to come.
        guard origin.flight?.revalidates == true, var record = book.held?.record else { return }
        connected(&transition)
        record.fetchedAt = transition.date
        record.isInvalidated = false
        if record.details?.fields.isComplete != nil { record.fields.isComplete = nil }
        let last = origin.stream?.last ?? .none
        origin.changeStream { $0.last = .none }
        accept(record, keepingContent: true, .derived, &transition)
        valueAccepted(&transition)
        origin.changeStream { $0.last = last }
    }

    /// The connection has delivered a value, so it is no longer a fetch.
    private mutating func connected(_ transition: inout Transition) {
        guard let flight = origin.flight else { return }
        let now = transition.now
        origin.changeStream { $0.connection = .connected(flight.ticket, since: now) }
        origin.lastEnded = now
        transition.publishes = true
    }

    private mutating func valueAccepted(_ transition: inout Transition) {
        let revision = book.revision
        origin.changeStream { ($0.last, $0.pace.revision) = (.accepted, revision) }
        if origin.refetchesAfterMutations { origin.refetchesAfterMutations = false }
        if desk.fetchCallers > 0 { resumeAfterFetch(&transition) }
    }

    /// Keeps the stream's last value, because the accepted content is about to be set by others (L3).
    mutating func keepValue() {
        guard case .accepted = origin.stream?.last, let record = book.held?.record else { return }
        origin.changeStream { $0.last = .overtaken(record.content, record.validator) }
    }

    private mutating func forgetValue(_ transition: inout Transition) {
        if case .overtaken(let content, _) = origin.stream?.last { transition.discarded.append(content) }
        origin.changeStream { $0.last = .none }
    }

    // MARK: The end of a connection

    /// A connection has ended, or has failed with an error.
    mutating func streamEnded(_ ticket: Ticket, _ error: (any Error)?, _ transition: inout Transition) {
        guard origin.stream?.ticket == ticket else {
            report(.droppedAsOutdated(.content), &transition)
            return
        }
        connectionEnded(error, &transition)
        endTransition(&transition)
    }

    private mutating func connectionEnded(_ error: (any Error)?, _ transition: inout Transition) {
        guard let ended = origin.stream else { return }
        let failure = error ?? (origin.flight == nil ? nil : StoreError.endedWithoutValue)
        // A stream that repeatedly fails after its first value must not connect again at full speed.
        var attempt = ended.attempt
        if case .connected(_, let since) = ended.connection, since.duration(to: transition.now) >= rules.policy.boundedInterval {
            attempt = 1
        }
        guard let failure, desk.wantsFetch,
            let delay = rules.policy.retry.delay(after: failure, attempt: attempt, unit: .random(in: 0..<1))
        else {
            endStream(&transition)
            if let failure { flightFailed(failure, &transition) } else { contentIsComplete(&transition) }
            return
        }
        let pause = max(StorePolicy.shortestInterval, delay)
        let dated = heldAfterStream(transition.now, transition.date)
        let start = transition.now.advanced(by: pause)
        let staleDue = origin.flight?.staleDue
        origin.changeStream { stream in
            (stream.connection, stream.staleDue) = (.waiting(until: start), staleDue)
            stream.attempt = attempt + 1
            stream.silenceEnds = nil
            // Saves the last value at once.
            stream.pace.startOver()
        }
        connectionIsOver(dated, &transition)
        report(.retried(.content, attempt: attempt, delay: pause, failure), &transition)
        fail(failure, &transition)
        if desk.fetchCallers > 0 {
            // The others wait for the next connection.
            let stale = staleResult(failure, &transition)
            resumeCallers(&transition) { $0 == .content ? stale : nil }
        }
    }

    private mutating func contentIsComplete(_ transition: inout Transition) {
        guard book.held != nil else { return }
        book.held?.record.fields.isComplete = true
        acceptedContentChanged(.derived, &transition)
    }

    /// Cancels the connection, and ends the stream; none of its values is accepted afterward (L3).
    mutating func cancelStream(_ transition: inout Transition) {
        if let ticket = origin.stream?.ticket { transition.actions.append(.cancel(ticket)) }
        endStream(&transition)
    }

    private mutating func endStream(_ transition: inout Transition) {
        let hadConnection = origin.stream?.ticket != nil
        let dated = hadConnection ? heldAfterStream(transition.now, transition.date) : nil
        forgetValue(&transition)
        origin.phase = .idle
        if hadConnection { connectionIsOver(dated, &transition) }
    }

    /// Returns the accepted record with a lifetime that begins now; `nil` if the stream is not connected, or if the record never expires.
    func heldAfterStream(_ now: MonotonicInstant, _ date: Date) -> HeldRecord<Content>? {
        guard origin.isConnected, var record = book.held?.record, (record.freshness.lifetime ?? rules.expiry.lifetime) != nil else {
            return nil
        }
        record.fetchedAt = date
        return HeldRecord(record, expiry: rules.expiry, jitter: rules.policy.expiryJitter, now: now)
    }

    /// The lifetime of the content begins when its connection ends (L5): `dated` is the record that is held from now on.
    private mutating func connectionIsOver(_ dated: HeldRecord<Content>?, _ transition: inout Transition) {
        origin.lastEnded = transition.now
        transition.publishes = true
        guard var dated else { return }
        dated.refetchesAtDeadline = rules.policy.revalidatesOnExpiry && dated.expires(after: transition.now)
        book.held = dated
        acceptedContentChanged(.derived, &transition)
    }

    // MARK: Time

    /// A time of the stream may have come.
    mutating func streamTimerFired(_ transition: inout Transition) {
        guard let stream = origin.stream else { return }
        let now = transition.now
        origin.changeStream { $0.pace.timerFired(at: now) }
        if let end = stream.silenceEnds, end <= now, let ticket = stream.ticket, let limit = rules.policy.idleTimeout {
            transition.actions.append(.cancel(ticket))
            connectionEnded(StoreError.silent(for: limit), &transition)
        }
        if let start = stream.reconnectsAt, start <= transition.now, desk.wantsFetch { reconnect(&transition) }
    }

    /// Begins the allowed silence of the connection again.
    private mutating func listen(_ transition: inout Transition) {
        guard let limit = rules.policy.idleTimeout else { return }
        let end = transition.now.advanced(by: limit)
        origin.changeStream { $0.silenceEnds = end }
    }
}
