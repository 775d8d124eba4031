// Loaded content and its entities agree from its first state on (E8), so the entities that are only on disk are read before it.

extension StoreEngine {
    /// The largest number of entities that are read for one record.
    static var entityLimit: Int { 256 }

    /// Reads the entities that a loaded record shows and that are not in memory, each once.
    ///
    /// A record with more of them counts as expired, because its first state may differ from some of them.
    ///
    /// - Returns: Releases the entities, which stay in memory until content that shows them was reconciled.
    func loadEntities(of result: inout Result<HeldRecord<BoxedContent>?, any Error>) async -> @Sendable () -> Void {
        guard case .success(let held?) = result else { return {} }
        var missing: [(engine: StoreEngine, key: BoxedKey)] = []
        for link in links where link.entities.backing != nil {
            let keys = link.entities.keysNotInMemory(link.keys(held.record.content).distinct)
            missing += keys.map { (engine: link.entities, key: $0) }
        }
        if missing.count > Self.entityLimit {
            missing.removeLast(missing.count - Self.entityLimit)
            // Beyond every stale window, as `.distantPast`, which memory would not keep.
            result = .success(HeldRecord(held.record, deadline: MonotonicInstant(nanoseconds: .min + 1)))
        }
        return await hold(missing)
    }

    /// Reads entities, which stay in memory until the returned function is called.
    private func hold(_ entities: [(engine: StoreEngine, key: BoxedKey)]) async -> @Sendable () -> Void {
        let held = entities.map { (engine: $0.engine, key: $0.key, id: $0.engine.nextID()) }
        await withDiscardingTaskGroup { group in
            for entity in held {
                group.addTask { _ = await entity.engine.request(entity.key, .acceptedContent, id: entity.id) }
            }
        }
        return { for (engine, key, id) in held { engine.release(id, of: key) } }
    }

    /// Reads entities that are only on disk, and reconciles content that shows them, some at a time.
    func mergeLater(_ unread: [(engine: StoreEngine, key: BoxedKey)], _ param: BoxedKey) {
        guard !unread.isEmpty else { return }
        Task.detached(priority: Task.currentPriority) { [weak self] in
            for start in stride(from: 0, to: unread.count, by: StoreEngine.entityLimit) {
                guard let engine = self else { return }
                let part = unread[start..<min(start + StoreEngine.entityLimit, unread.count)]
                let release = await engine.hold(Array(part) + [(engine: engine, key: param)])
                engine.transition(param) { _, _ in }
                release()
            }
        }
    }

    /// Reads an entity that another process has changed, so that content that shows it agrees. One task serves any number of changes.
    func readLater(_ key: BoxedKey) {
        guard state.withLock({ $0.links?.noteUnread(key) }) == true else { return }
        Task.detached(priority: Task.currentPriority) { [weak self] in
            while let engine = self {
                let keys = engine.state.withLock { $0.links?.takeUnread(limit: StoreEngine.entityLimit) ?? [] }
                if keys.isEmpty { return }
                let release = await engine.hold(keys.map { (engine: engine, key: $0) })
                release()
            }
        }
    }

    private func keysNotInMemory(_ keys: [BoxedKey]) -> [BoxedKey] {
        state.withLock { state in
            keys.filter { key in
                let key = state.resolve(key)
                if let cell = state.live[key] { return !cell.value.machine.origin.isKnown }
                return front?.entry(key) == nil
            }
        }
    }
}
