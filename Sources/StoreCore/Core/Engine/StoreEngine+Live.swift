#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

// Streams: one task for each connection, which hands each value to the machine before it takes the next (L7).

extension StoreEngine {
    func stream(
        _ ticket: Ticket, after last: Validator?, _ param: BoxedKey, _ scope: FetchScope, at start: MonotonicInstant?
    ) -> FetchStarter.Work {
        guard let follow else { preconditionFailure("a stream begins in a store without a live fetcher") }
        let report = reporter(for: param)
        // Weak, so that a store without references is released with its streams.
        return { [weak self, time, interceptor = fetches.interceptor] in
            defer { scope.work.end() }
            // Canceled when the stream is no longer wanted.
            if let start, (try? await time.sleep(until: start)) == nil { return }
            report?(.fetchBegan(.content))
            let began = time.now
            let accept: @Sendable (LiveValue<BoxedContent>) -> Bool = { [weak self] value in
                self?.streamYielded(ticket, param, value) ?? false
            }
            let failure = await scope.run {
                await Self.failure {
                    guard interceptor.isSet else { return try await follow(param, last, accept) }
                    try await interceptor.run(param, .content, outcome: { _ in .modified }) { try await follow(param, last, accept) }
                }
            }
            // Only the store cancels this task, and then its machine has forgotten the connection.
            let isEnded = Task.isCancelled
            let outcome: StoreEventKind.FetchOutcome = isEnded ? .cancelled : failure.map { .init($0) } ?? .modified
            report?(.fetchEnded(.content, duration: began.duration(to: time.now), outcome))
            if !isEnded { self?.streamEnded(ticket, param, failure) }
        }
    }

    static func failure(of body: () async throws -> Void) async -> (any Error)? {
        do {
            try await body()
            return nil
        } catch {
            return error
        }
    }

    private func streamYielded(_ ticket: Ticket, _ param: BoxedKey, _ value: LiveValue<BoxedContent>) -> Bool {
        withEffects { state, effects -> Bool in
            guard let key = state.live[param] else { return false }
            if !state.watches.isEmpty { notePush(value, ticket, to: key, &state) }
            return take(key, &state, &effects) { key, transition in
                if case .change = value, key.machine.willChange(ticket) { lendContent(of: &key, &transition) }
                return key.machine.streamYielded(ticket, value, &transition)
            }
        }
    }

    /// Notes a pushed value in all watches. It is younger than each of them, even if its connection is older.
    private func notePush(_ value: LiveValue<BoxedContent>, _ ticket: Ticket, to key: Cell<Key>, _ state: inout EngineState) {
        guard key.value.machine.origin.stream?.ticket == ticket else { return }
        if case .current = value { return }
        state.note(.fetched, of: key.value.param)
    }

    private func streamEnded(_ ticket: Ticket, _ param: BoxedKey, _ failure: (any Error)?) {
        transitionIfLive(param) { key, transition in
            _ = key.takeFetch(ticket)
            key.machine.streamEnded(ticket, failure, &transition)
        }
    }

    /// Ends the streams of an engine that is released, which memory and the cacher outlive: the lifetime of their content begins (L5), and
    /// the cacher gets the last values and linked changes, which may have waited for their time (L6, E8).
    func endStreams() {
        let (now, date) = (time.now, time.date)
        let (records, events) = state.withLock { state in
            (state.live.values.compactMap { $0.value.machine.recordAfterRelease(of: $0.value.param, now, date) }, state.events)
        }
        for record in records where record.isDated {
            _ = front?.put(record.param, record.held.record, record.held.deadline.nanoseconds, .none)
        }
        guard let backing, !records.isEmpty else { return }
        // The scope may be closed meanwhile.
        let work = WorkScope(fetches.running)
        Task.detached { [onEvent] in
            defer { work.end() }
            for (number, record) in records.enumerated() {
                let failure = await Self.failure {
                    _ = try await Self.write(record.held.record, record.param, to: backing, over: record.base)
                }
                let kind = failure.map { StoreEventKind.cacherFault(.save, $0) } ?? .saved
                onEvent?(StoreEvent(number: events + UInt64(number) + 1, param: record.param, kind: kind))
            }
        }
    }
}

extension KeyMachine<BoxedContent> {
    /// The accepted record of a key whose engine is released; `nil` if memory and the cacher have the same one.
    ///
    /// - Returns: Also whether the lifetime of the content begins now, and the position in a shared cacher over which the record is saved;
    ///   `nil` saves above every change of others.
    fileprivate func recordAfterRelease(
        of param: BoxedKey, _ now: MonotonicInstant, _ date: Date
    ) -> (param: BoxedKey, held: HeldRecord<BoxedContent>, isDated: Bool, base: Revision?)? {
        let dated = heldAfterStream(now, date)
        guard origin.isStreaming || book.linked?.value.pace.due != nil,
            let held = dated ?? (saving.tried < book.revision ? book.held : nil),
            !held.isStandIn, held.record.freshness.storage == .allowed
        else {
            return nil
        }
        return (param: param, held: held, isDated: dated != nil, base: saving.next.map(\.base) ?? base)
    }
}
