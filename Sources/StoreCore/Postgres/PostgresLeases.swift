internal import Foundation
internal import StoreCore

/// The tasks of a cacher that wait for the end of other cachers' leases.
final class PostgresLeases: Sendable {
    private struct Waiter {
        let lease: Int64
        let endings: AsyncStream<Lease.Ending?>.Continuation
    }

    private struct State {
        var waiters: [UInt64: Waiter] = [:]
        var lastTicket: UInt64 = 0
        /// The latest endings, for a task that is about to wait for one of them.
        var recent: [(lease: Int64, ending: Lease.Ending?)] = []
        var isWatching = false
    }

    private let state = VisibleMutex(State())

    /// The number of waiting tasks, for tests.
    var waiterCount: Int { state.withLock { $0.waiters.count } }

    /// Waits for the end of a lease, for at most a duration.
    ///
    /// - Returns: The ending; `nil` if some time has passed, the holder may have ended, or a notice may have been lost.
    func wait(for lease: Int64, atMost duration: Duration) async -> Lease.Ending? {
        // The first ending or its absence ends the wait.
        let (endings, waiter) = AsyncStream<Lease.Ending?>.makeStream(bufferingPolicy: .bufferingOldest(1))
        let ticket = state.withLock { state in
            state.lastTicket += 1
            state.waiters[state.lastTicket] = Waiter(lease: lease, endings: waiter)
            if let recent = state.recent.last(where: { $0.lease == lease }) { waiter.yield(recent.ending) }
            return state.lastTicket
        }
        defer { state.withLock { $0.waiters[ticket] = nil } }
        let timer = Task.detached {
            try await Task.sleep(for: duration)
            waiter.yield(nil)
        }
        defer { timer.cancel() }
        // The cancellation of the task ends the stream without an element.
        return await endings.first { _ in true } ?? nil
    }

    /// A lease has ended; called on the loop's thread.
    func ended(_ lease: Int64, _ payload: String) {
        let ending = Self.ending(payload)
        state.withLock { state in
            if state.recent.count == 256 { state.recent.removeFirst(128) }
            state.recent.append((lease, ending))
        }
        resumeAll(ending) { $0 == lease }
    }

    /// Returns the outcome for the waiters of a lease; `nil` unless it ended recently with one that they must know.
    func outcome(of lease: Int64) -> LeaseOutcome? {
        Self.outcome(state.withLock { state in state.recent.last { $0.lease == lease }?.ending })
    }

    fileprivate static func outcome(_ ending: Lease.Ending?) -> LeaseOutcome? {
        switch ending {
        case .failed(let failure): .failed(failure)
        case .notStored: .notNeeded
        case .saved, .abandoned, nil: nil
        }
    }

    func wakeAll() { resumeAll(nil) { _ in true } }

    private func resumeAll(_ ending: Lease.Ending?, _ isDue: (Int64) -> Bool) {
        let due = state.withLock { $0.waiters.values.filter { isDue($0.lease) } }
        for waiter in due { waiter.endings.yield(ending) }
    }

    // MARK: Endings as text

    /// Returns the ending as part of a notice: at most 7 000 bytes of ASCII.
    static func payload(_ ending: Lease.Ending) -> String {
        switch ending {
        case .saved: return "s"
        case .notStored: return "n"
        case .abandoned: return "a"
        case .failed(var failure):
            failure.message = String(decoding: failure.message.utf8.prefix(500), as: UTF8.self)
            return "f" + ((try? JSONEncoder().encode(failure)) ?? Data()).hexadecimal
        }
    }

    private static func ending(_ payload: String) -> Lease.Ending? {
        switch payload {
        case "s": return .saved
        case "n": return .notStored
        case "a": return .abandoned
        default:
            guard payload.hasPrefix("f"), let json = Data(hexadecimal: payload.dropFirst()),
                let failure = try? JSONDecoder().decode(FetchFailedElsewhere.self, from: json)
            else { return nil }
            return .failed(failure)
        }
    }

    // MARK: Holders that end

    /// Returns whether no session is watched yet.
    func beginWatching() -> Bool {
        state.withLock { state in
            defer { state.isWatching = true }
            return !state.isWatching
        }
    }

    func endWatching() { state.withLock { $0.isWatching = false } }
}

extension PostgresTable {
    /// Waits for the lease of a key, given its JSON.
    func lease(_ key: Data, for duration: Duration) async throws -> LeaseOutcome {
        // The awaited lease, and the time at which it ends at the latest.
        var awaited: (id: Int64, end: ContinuousClock.Instant)?
        while true {
            try Task.checkCancellation()
            try await attach()
            let (id, session) = (Int64.random(in: 1...Int64.max), core.session)
            let isOver = awaited.map { $0.end <= .now } ?? false
            let query = statements.takeLease(key, id: id, session: session, duration: duration / .seconds(1))
            let row = try await core.run(query, on: .control).first?.first ?? []
            guard row.count == 4, let isGranted = row[0] else { throw PostgresError(.server, "a lease has no row; call again") }
            if isGranted.postgresInteger == 1 {
                let lease = Lease(position: .none) { [weak self] ending in self?.endLease(key, id, session, ending) }
                guard session == core.session else {
                    // The lock was lost with its connection.
                    lease.end(.abandoned)
                    continue
                }
                // The notice of the other holder's end may follow the grant.
                if try await awaited == nil ? isBehind() : true { try await catchUp() }
                if let awaited, let outcome = leases.outcome(of: awaited.id) { return outcome }
                return .granted(Lease(position: position) { ending in lease.end(ending) })
            }
            core.submit(PostgresStatements.unlock(session), on: .control) { _ in }
            let present = row[1]?.postgresInteger
            if let awaited, awaited.id != present {
                // The awaited lease has ended, and another waiter was first. The notice of its end may follow the row.
                try await catchUp()
                if let outcome = leases.outcome(of: awaited.id) { return outcome }
            }
            // The other lease ended after the attempt and before its row was read.
            guard let holder = present, let remaining = row[2]?.postgresDouble else { continue }
            if isOver, awaited?.id == holder {
                // The duration of the other lease is longer than this caller's, which has passed.
                _ = try await core.run(statements.expireLease(key, id: holder), on: .control)
                continue
            }
            // Bounded as a number: the server may name any time, and a duration cannot hold every number.
            let rest = max(0, min(remaining, duration / .seconds(1)))
            if awaited?.id != holder { awaited = (holder, .now + .seconds(rest)) }
            if let holderSession = row[3]?.postgresInteger { watch(holderSession) }
            let patience = min(.seconds(1), ContinuousClock.now.duration(to: awaited?.end ?? .now))
            let ending = await leases.wait(for: holder, atMost: max(.milliseconds(1), patience))
            if let outcome = PostgresLeases.outcome(ending) { return outcome }
        }
    }

    private func endLease(_ key: Data, _ id: Int64, _ session: Int64, _ ending: Lease.Ending) {
        let payload = "l \(id) \(PostgresLeases.payload(ending))"
        // If this fails, the waiters continue when the connection is lost or the lease's duration has passed.
        core.submit(statements.endLease(key, id: id, session: session, channel: channel, payload: payload), on: .control) { _ in }
    }

    /// Wakes the waiters as soon as the session of a holder ends, while tasks wait.
    private func watch(_ session: Int64) {
        // Watching occupies a connection of the pool, which waits for the lock. A small pool needs its connections for loads and saves.
        guard core.limit >= 3, session != core.session, leases.beginWatching() else { return }
        Task.detached { [self] in
            defer { leases.endWatching() }
            while leases.waiterCount > 0 {
                do throws(PostgresError) {
                    _ = try await core.run(PostgresStatements.awaitEnd(of: session), timeout: .seconds(60))
                    return leases.wakeAll()
                } catch {
                    // lock_not_available: the holder lives.
                    guard error.state == "55P03" else { return }
                }
            }
        }
    }
}
