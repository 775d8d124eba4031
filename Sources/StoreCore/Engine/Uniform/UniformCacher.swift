internal import Foundation

extension CacheRecord {
    /// The same record of other content.
    @inlinable
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
}
