internal import Foundation

extension CacheRecord {
    /// The same record of other content.
    func holding<Other: Sendable>(_ other: Other) -> CacheRecord<Other> {
        CacheRecord<Other>(content: other, fetchedAt: fetchedAt, details: details)
    }
}

extension Uniform {
    /// A user's cacher as the engine sees it.
    struct Cacher<Param: Hashable & Sendable, Value: Sendable>: NoticingCacher {
        let cacher: any StoreCore.Cacher<Param, Value>

        var expiry: Expiry { cacher.expiry }

        func load(param: Key) async throws -> CacheRecord<Content>? {
            guard let record = try await cacher.load(param: param.value(as: Param.self)) else { return nil }
            return record.holding(Content(record.content))
        }

        func save(_ record: CacheRecord<Content>, param: Key) async throws {
            try await cacher.save(record.holding(record.content.value(as: Value.self)), param: param.value(as: Param.self))
        }

        func remove(param: Key) async throws { try await cacher.remove(param: param.value(as: Param.self)) }

        func removeAll() async throws { try await cacher.removeAll() }

        func keys() async throws -> [Key]? { try await cacher.keys()?.map { Key($0) } }

        func needsRefresh(_ record: CacheRecord<Content>, param: Key, now: Date) -> Bool {
            cacher.needsRefresh(record.holding(record.content.value(as: Value.self)), param: param.value(as: Param.self), now: now)
        }

        func observeNotices(_ observer: @escaping @Sendable (CacherNotice<Key>) -> Void) {
            guard let cacher = cacher as? any NoticingCacher<Param, Value> else { return }
            cacher.observeNotices { notice in
                switch notice {
                case .fault(let operation, let param, let error): observer(.fault(operation, param.map { Key($0) }, error))
                case .evicted(let count): observer(.evicted(count: count))
                }
            }
        }
    }

    /// The memory in front as the engine sees it.
    struct Front<Param: Hashable & Sendable, Value: Sendable>: FrontMemory {
        let table: MemoryTable<Param, Value>

        func entry(of key: Key) -> (record: CacheRecord<Content>, deadline: Int64)? {
            guard let (record, deadline) = table.entry(of: key.value(as: Param.self)) else { return nil }
            return (record.holding(Content(record.content)), deadline)
        }

        func put(_ key: Key, _ record: CacheRecord<Content>, deadline: Int64) -> FrontMemoryDrop? {
            let dropped = table.put(key.value(as: Param.self), record.holding(record.content.value(as: Value.self)), deadline: deadline)
            if dropped.replaced == nil, dropped.evicted.isEmpty { return nil }
            return FrontMemoryDrop(evicted: dropped.evicted.count, records: dropped)
        }

        func remove(_ key: Key) -> FrontMemoryDrop? {
            let dropped = table.remove(key.value(as: Param.self))
            return dropped.replaced.map { FrontMemoryDrop(evicted: 0, records: $0) }
        }

        func removeAll() { table.removeAll() }

        func keys() -> [Key] { table.keys().map { Key($0) } }
    }
}

/// Memory that mirrors the engine's records, so that a hit need not ask the engine.
protocol FrontMemory<Param, Content>: Sendable {
    /// The key of one piece of data.
    associatedtype Param: Hashable & Sendable
    /// The data itself.
    associatedtype Content: Sendable

    /// The record of a key and its monotonic deadline, `.min` where the memory does not know it.
    func entry(of key: Param) -> (record: CacheRecord<Content>, deadline: Int64)?
    /// Puts a record in, and drops what is over the bounds.
    func put(_ key: Param, _ record: CacheRecord<Content>, deadline: Int64) -> FrontMemoryDrop?
    func remove(_ key: Param) -> FrontMemoryDrop?
    func removeAll()
    func keys() -> [Param]
}

/// What left the memory in front: released outside the lock, so that no `deinit` of user code runs under it.
struct FrontMemoryDrop: Sendable {
    var evicted: Int
    var records: any Sendable
}
