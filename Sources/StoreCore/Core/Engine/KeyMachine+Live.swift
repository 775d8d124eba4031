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
    mutating func joinStream(forceRefresh: Bool, _ transition: inout Transition) -> Bool {
        guard stream != nil else { return false }
        // A trigger may have come too early.
        let isTriggered = triggerPending && automaticFetchDue.map { $0 <= transition.now } == true
        guard !forceRefresh, !isTriggered else {
            endStream(&transition)
            return false
        }
        // Otherwise the timer of expired content would fire again at once.
        refetchesAtDeadline = false
        report(.coalesced, &transition)
        return true
    }

    /// Begins a stream with its first connection.
    mutating func beginStream(_ ticket: Ticket, after last: Validator?, _ transition: inout Transition) -> FetchOrder {
        stream = OutOfLine(LiveStream(ticket: ticket, hasValue: last != nil))
        listen(&transition)
        return .values(after: last)
    }

    /// Connects again, with the validator of the stream's last value.
    private mutating func reconnect(_ transition: inout Transition) {
        let ticket = transition.tickets.next()
        var last: Validator?
        if stream?.value.hasValue == true {
            last = if let overtaken = stream?.value.overtaken { overtaken.validator } else { held?.record.validator }
        }
        if last == nil { forgetValue(&transition) }
        stream?.value.ticket = ticket
        stream?.value.reconnectsAt = nil
        triggerPending = false
        flight = Flight(ticket: ticket, forceRefresh: refreshCallers > 0, revalidates: last != nil)
        transition.actions.append(.fetch(ticket, .values(after: last)))
        transition.publishes = true
        listen(&transition)
    }

    // MARK: Values

    /// A connection has delivered a value.
    ///
    /// - Returns: Whether the connection is to deliver more.
    mutating func streamYielded(_ ticket: Ticket, _ value: LiveValue<Content>, _ transition: inout Transition) -> Bool {
        guard stream?.value.ticket == ticket else {
            // Legal: the stream was ended or replaced before the value arrived.
            report(.droppedAsOutdated(.content), &transition)
            return false
        }
        listen(&transition)
        switch value {
        case .content(let content, let validator):
            accept(content, validator, &transition)
        case .change(let change, let validator):
            guard let value = stream?.value, value.hasValue, held != nil else {
                transition.actions.append(.cancel(ticket))
                connectionEnded(StoreError.nothingToChange, &transition)
                break
            }
            if var content = value.overtaken?.content {
                change(&content)
                accept(content, validator, &transition)
            } else {
                changeInPlace(change, validator, &transition)
            }
        case .current:
            confirm(&transition)
        }
        endTransition(&transition)
        return stream?.value.ticket == ticket
    }

    /// Whether a change will be applied to the accepted content.
    func willChange(_ ticket: Ticket) -> Bool {
        guard let stream else { return false }
        return stream.value.ticket == ticket && stream.value.hasValue && stream.value.overtaken == nil && held != nil
    }

    /// Accepts content of the stream: every later read returns it.
    private mutating func accept(_ content: Content, _ validator: Validator?, _ transition: inout Transition) {
        connected(&transition)
        forgetValue(&transition)
        discardPatches(&transition) { $0.isConfirmed }
        if !patches.isEmpty { noteFetch() }
        let details = validator.flatMap { RecordDetails(freshness: .unspecified, validator: $0) }
        accept(CacheRecord(content: content, fetchedAt: transition.date, details: details), .set, &transition)
        valueAccepted(&transition)
    }

    /// Changes the accepted content, which is the stream's last value. It is copied only if a snapshot of it is in use.
    private mutating func changeInPlace(_ change: (inout Content) -> Void, _ validator: Validator?, _ transition: inout Transition) {
        connected(&transition)
        discardPatches(&transition) { $0.isConfirmed }
        if !patches.isEmpty { noteFetch() }
        guard var record = held?.record else { return }
        held = nil
        change(&record.content)
        record.fetchedAt = transition.date
        record.details = RecordDetails(freshness: record.freshness, validator: validator)
        held = HeldRecord(record, deadline: .distantFuture)
        refetchesAtDeadline = false
        epoch = transition.tickets.next()
        contentNumber += 1
        mergeIndex = nil
        forgetFailures(into: &transition.leftovers)
        acceptedContentChanged(.set, &transition)
        valueAccepted(&transition)
    }

    /// The version that the store sent is current.
    private mutating func confirm(_ transition: inout Transition) {
        // Without a validator there was nothing to confirm: the first value is still to come.
        guard flight?.revalidates == true, var record = held?.record else { return }
        connected(&transition)
        record.fetchedAt = transition.date
        record.isInvalidated = false
        let (hadValue, overtaken) = (stream?.value.hasValue ?? false, stream?.value.overtaken)
        stream?.value.hasValue = false
        accept(record, keepingContent: true, .derived, &transition)
        valueAccepted(&transition)
        stream?.value.hasValue = hadValue
        stream?.value.overtaken = overtaken
    }

    /// The connection has delivered a value, so it is no longer a fetch.
    private mutating func connected(_ transition: inout Transition) {
        guard flight != nil || !isConnected else { return }
        flight = nil
        stream?.value.connectedAt = transition.now
        lastFetchEnded = transition.now
        transition.publishes = true
    }

    private mutating func valueAccepted(_ transition: inout Transition) {
        stream?.value.hasValue = true
        stream?.value.revision = revision
        if owesFetch { owesFetch = false }
        if fetchCallers > 0 { answerAfterFetch(&transition) }
    }

    /// Keeps the stream's last value, because the accepted content is about to be set by others (L3).
    mutating func keepValue() {
        guard let value = stream?.value, value.hasValue, value.overtaken == nil, let record = held?.record else { return }
        stream?.value.overtaken = (record.content, record.validator)
    }

    private mutating func forgetValue(_ transition: inout Transition) {
        stream?.value.hasValue = false
        guard let overtaken = stream?.value.overtaken else { return }
        transition.discarded.append(overtaken.content)
        stream?.value.overtaken = nil
    }

    // MARK: The end of a connection

    /// A connection has ended, or has failed with an error.
    mutating func streamEnded(_ ticket: Ticket, _ error: (any Error)?, _ transition: inout Transition) {
        guard stream?.value.ticket == ticket else {
            report(.droppedAsOutdated(.content), &transition)
            return
        }
        connectionEnded(error, &transition)
        endTransition(&transition)
    }

    private mutating func connectionEnded(_ error: (any Error)?, _ transition: inout Transition) {
        guard let ended = stream?.value else { return }
        let failure = error ?? (flight == nil ? nil : StoreError.endedWithoutValue)
        flight = nil
        lastFetchEnded = transition.now
        transition.publishes = true
        beginLifetime(&transition)
        guard let failure else { return forgetStream(&transition) }
        // A stream that repeatedly fails after its first value must not connect again at full speed.
        let stood = ended.connectedAt.map { $0.duration(to: transition.now) } ?? .zero
        let attempt = stood >= rules.policy.boundedInterval ? 1 : ended.attempt
        guard isWanted, let delay = rules.policy.retry.delay(after: failure, attempt: attempt, unit: .random(in: 0..<1)) else {
            forgetStream(&transition)
            return flightFailed(failure, &transition)
        }
        let pause = max(StorePolicy.shortestInterval, delay)
        report(.retried(.content, attempt: attempt, delay: pause, failure), &transition)
        fail(failure, &transition)
        if fetchCallers > 0 {
            // The others wait for the next connection.
            let stale = staleAnswer(failure, &transition)
            answerCallers(&transition) { $0 == .content ? stale : nil }
        }
        stream?.value.ticket = nil
        stream?.value.attempt = attempt + 1
        stream?.value.reconnectsAt = transition.now.advanced(by: pause)
        stream?.value.silenceEnds = nil
        // Saves the last value at once.
        stream?.value.lastSave = nil
        stream?.value.saveDue = nil
    }

    /// Ends the stream; none of its values is accepted afterward (L3).
    mutating func endStream(_ transition: inout Transition) {
        guard let ticket = stream?.value.ticket else { return forgetStream(&transition) }
        transition.actions.append(.cancel(ticket))
        flight = nil
        lastFetchEnded = transition.now
        transition.publishes = true
        beginLifetime(&transition)
        forgetStream(&transition)
    }

    private mutating func forgetStream(_ transition: inout Transition) {
        forgetValue(&transition)
        stream = nil
    }

    /// Returns the accepted record with a lifetime that begins now; `nil` if the stream is not connected, or if the record never expires.
    func heldAfterStream(_ now: MonotonicInstant, _ date: Date) -> HeldRecord<Content>? {
        guard isConnected, var record = held?.record, (record.freshness.lifetime ?? rules.expiry.lifetime) != nil else { return nil }
        record.fetchedAt = date
        return HeldRecord(record, expiry: rules.expiry, now: now)
    }

    /// The lifetime of the content begins when its connection ends (L5).
    private mutating func beginLifetime(_ transition: inout Transition) {
        let dated = heldAfterStream(transition.now, transition.date)
        stream?.value.connectedAt = nil
        guard let dated else { return }
        refetchesAtDeadline = rules.policy.revalidatesOnExpiry && dated.expires(after: transition.now)
        held = dated
        acceptedContentChanged(.derived, &transition)
    }

    // MARK: Time

    /// A time of the stream may have come.
    mutating func streamTimerFired(_ transition: inout Transition) {
        guard let stream = stream?.value else { return }
        if let due = stream.saveDue, due <= transition.now { self.stream?.value.saveDue = nil }
        if let end = stream.silenceEnds, end <= transition.now, let ticket = stream.ticket, let limit = rules.policy.idleTimeout {
            transition.actions.append(.cancel(ticket))
            connectionEnded(StoreError.silent(for: limit), &transition)
        }
        if let start = stream.reconnectsAt, start <= transition.now, isWanted { reconnect(&transition) }
    }

    /// Begins the allowed silence of the connection again.
    private mutating func listen(_ transition: inout Transition) {
        guard let limit = rules.policy.idleTimeout else { return }
        stream?.value.silenceEnds = transition.now.advanced(by: limit)
    }

    /// Whether the stream's last value is saved later, because another one was saved a short while ago (L6).
    mutating func defersSave(_ transition: inout Transition) -> Bool {
        guard let value = stream?.value, value.revision == revision, rules.policy.saveInterval > .zero else { return false }
        // A caller that waits for a save must not wait for the interval as well.
        if !callers.isEmpty, callers.contains(where: { $0.value.isSavedNeed }) { return false }
        if value.saveDue != nil { return true }
        if let last = value.lastSave {
            let due = last.advanced(by: rules.policy.saveInterval)
            if transition.now < due {
                stream?.value.saveDue = due
                return true
            }
        }
        stream?.value.lastSave = transition.now
        return false
    }
}
