internal import Foundation
public import StoreCore

extension PostgresCacher: SharedCacher {
    /// The revision up to which all changes have been delivered to the observers.
    public var position: Revision { table.position }

    /// Adds an observer of the changes made by others from now on.
    ///
    /// - Parameter observer: Called on the thread of the database; it must return quickly and must not call the cacher.
    /// - Returns: The observation, which ends when it is released.
    public func observeChanges(_ observer: @escaping @Sendable (_ change: CacherChange<Param>) -> Void) -> ChangeObservation {
        let id = observers.state.withLock { state in
            state.lastID += 1
            state.changes[state.lastID] = observer
            return state.lastID
        }
        return ChangeObservation { [weak observers] in
            // Released outside the lock.
            _ = observers?.state.withLock { $0.changes.removeValue(forKey: id) }
        }
    }

    /// Saves a record unless another machine has changed the key since.
    ///
    /// - Parameters:
    ///   - record: The record.
    ///   - param: The key.
    ///   - base: The position at the time of the decision.
    /// - Returns: The outcome.
    /// - Throws: ``PostgresError``.
    @concurrent
    public func save(_ record: CacheRecord<Content>, param: Param, over base: Revision) async throws -> SaveOutcome<Content> {
        try await outcome(of: row(record, param), over: base)
    }

    /// Removes the record of a key unless another machine has changed the key since.
    ///
    /// - Parameters:
    ///   - param: The key.
    ///   - base: The position at the time of the decision.
    /// - Returns: The outcome.
    /// - Throws: ``PostgresError``.
    @concurrent
    public func remove(param: Param, over base: Revision) async throws -> SaveOutcome<Content> {
        try await outcome(of: mark(param), over: base)
    }

    private func outcome(of row: PostgresRow, over base: Revision) async throws -> SaveOutcome<Content> {
        switch try await commit(row, over: base) {
        case .made(let revision): return .saved(revision)
        case .superseded(let floor):
            let newest = try await run { table.statements.loadNewest(row.key, schema: schema) }.first?.first
            guard let newest, let number = newest[0], let writer = newest[1] else {
                return .superseded(by: nil, Revision(number: UInt64(clamping: floor), writer: 0))
            }
            return .superseded(
                by: try record(Array(newest[2...])),
                Revision(number: UInt64(clamping: number.postgresInteger), writer: UInt64(clamping: writer.postgresInteger)))
        }
    }

    /// Waits for the right to fetch a key.
    ///
    /// If the process that holds the lease ends, the lease is free at once. If the process is suspended, the lease is free when its
    /// duration has passed.
    ///
    /// - Parameters:
    ///   - param: The key.
    ///   - duration: The time for which the lease keeps others from fetching.
    /// - Returns: The lease, or how the lease of another process has ended.
    /// - Throws: `CancellationError` as soon as the task is canceled; ``PostgresError``, after which a store fetches without a lease.
    @concurrent
    public func lease(_ param: Param, for duration: Duration) async throws -> LeaseOutcome {
        try await table.lease(key(of: param), for: duration)
    }
}

extension PostgresCacher: NoticingCacher {
    /// Adds an observer of all later outages.
    ///
    /// - Parameter observer: Called on any thread; it must return quickly. The cacher retains it until it is released itself.
    public func observeNotices(_ observer: @escaping @Sendable (_ notice: CacherNotice<Param>) -> Void) {
        observers.state.withLock { $0.faults.append { observer(.fault(.follow, nil, $0)) } }
    }
}

extension PostgresCacher.Observers {
    func handle(_ change: CacherChange<Data>, _ decoder: JSONDecoder) {
        let passed: CacherChange<Param>
        switch change {
        case .changed(let key, let revision):
            // A key that cannot be decoded belongs to another schema, and so not to this cacher.
            guard let param = try? decoder.decode(Param.self, from: key) else { return }
            passed = .changed(param, revision)
        case .removedAll(let revision): passed = .removedAll(revision)
        case .gap: passed = .gap
        }
        for observer in state.withLock({ Array($0.changes.values) }) { observer(passed) }
    }
}
