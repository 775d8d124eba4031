import StoreCore

extension TextStore {
    /// Returns the text from memory if no action is due for it.
    @usableFromInline
    func resident(_ identifier: String) -> VersionedText? {
        guard let found = session.read({ $0.quiet(identifier) }), let quiet = found.quiet else { return nil }
        // Reading the clock would take half of the time of this method, so it is skipped when time changes nothing.
        if quiet.isEndless { return found.text }
        guard quiet.contains(quickDate) else { return nil }
        // Only after a failure, so that the usual read takes no second clock.
        if let deadline = quiet.deadline, deadline <= time.now { return nil }
        return found.text(ifExpired: quiet.expiredSince)
    }

    @usableFromInline
    func text(_ identifier: String, _ awaiting: TextAwaiting) async throws -> VersionedText {
        let moment = moment
        if awaiting == .nothing, let seen = session.update({ $0.see(identifier, at: moment) }) {
            if seen.isDue { begin([identifier]) }
            return seen.text
        }
        let sight = session.read { $0.look(identifier, at: moment.date) }
        if case .unknown = sight { throw TextStoreError.unknown(identifier) }
        if case .loading = sight { try await session.wait(for: identifier) { $0.loaded.contains($0.shown(identifier).0) ? () : nil } }
        var timeIsOver = false
        if case .remote(let timeout) = awaiting {
            timeIsOver = try await waitUntilSettled(identifier, timeout)
        } else {
            begin([identifier])
        }
        let end = time.date
        switch session.read({ $0.look(identifier, at: end) }) {
        case .text(var text):
            guard awaiting != .nothing else { return text }
            text.fallbackReason =
                timeIsOver
                ? .tooSlow(identifier) : session.read { $0.fallbackReason(of: identifier, at: end, askedSince: moment.date, awaiting) }
            return text
        case .missing(let error):
            throw timeIsOver ? .tooSlow(identifier) : error
        case .unknown, .loading:
            throw TextStoreError.unknown(identifier)
        }
    }

    /// Begins the fetches that are due for a text, and waits until none is in flight. Returns whether the timeout passed first.
    private func waitUntilSettled(_ identifier: String, _ timeout: Duration) async throws -> Bool {
        let ticket = session.update { $0.ticket() }
        let deadline = time.now.advanced(by: timeout)
        let timer = Task { [time, session] in
            // Canceled as soon as the wait has ended.
            guard (try? await time.sleep(until: deadline)) != nil else { return }
            session.update { $0.setExpired(true, ticket, of: identifier) }
        }
        defer {
            timer.cancel()
            session.update { $0.setExpired(false, ticket, of: identifier) }
        }
        while true {
            let abandonments = session.read { $0.abandonments }
            begin([identifier], isAwaited: true)
            let timeIsOver = try await session.wait(for: identifier) { session -> Bool? in
                if session.manifestFlight == nil, !session.isInFlight(identifier) { return false }
                return session.expired.contains(ticket) ? true : nil
            }
            // Another version source, or clearing the session, abandons the fetches, and the origin has confirmed nothing.
            if timeIsOver || session.read({ $0.abandonments == abandonments }) { return timeIsOver }
        }
    }
}

extension TextStoreError {
    fileprivate static func tooSlow(_ identifier: String) -> TextStoreError {
        TextStoreError(
            .timedOut, identifier: identifier,
            "cannot wait any longer: the origin did not respond in time; observe the text, because the fetch continues")
    }
}

/// An observer of one text, which joins at its first `next()`.
final class TextObserver: LoadingStateSource {
    private let store: TextStore
    private let identifier: String
    private var last: LoadingState<VersionedText>?
    private var hasJoined = false
    private var hasLeft = false

    init(_ store: TextStore, _ identifier: String) {
        self.store = store
        self.identifier = identifier
    }

    deinit { leave() }

    func next() async -> LoadingState<VersionedText>? {
        guard !hasLeft else { return nil }
        if !hasJoined {
            hasJoined = true
            let identifier = identifier
            let isFirst = store.session.update { session in
                defer { session.observers[identifier, default: 0] += 1 }
                return session.observers.isEmpty
            }
            store.begin([identifier])
            if isFirst { store.updateFollowing() }
        }
        let (last, identifier, time) = (last, identifier, store.time)
        do {
            let state = try await store.session.wait(for: identifier) { session -> LoadingState<VersionedText>? in
                guard let state = session.state(of: identifier, at: time.date), state != last else { return nil }
                return state
            }
            self.last = state
            return state
        } catch {
            // The wait was canceled, which is the only reason for its failure.
            leave()
            return nil
        }
    }

    private func leave() {
        guard hasJoined, !hasLeft else { return }
        hasLeft = true
        let identifier = identifier
        let wasLast = store.session.update { session in
            guard let count = session.observers[identifier] else { return false }
            session.observers[identifier] = count > 1 ? count - 1 : nil
            return session.observers.isEmpty
        }
        if wasLast { store.updateFollowing() }
    }
}
