#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

extension CacheRecord {
    /// Returns the same record with other content.
    @inlinable
    func holding<Other: Sendable>(_ other: Other) -> CacheRecord<Other> {
        CacheRecord<Other>(content: other, fetchedAt: fetchedAt, details: details)
    }
}

/// The engine's view of a cacher.
struct BoxedCacher<Param: Hashable & Sendable, Value: Sendable>: NoticingCacher {
    let cacher: any Cacher<Param, Value>

    var expiry: Expiry { cacher.expiry }

    func load(param: BoxedKey) async throws -> CacheRecord<BoxedContent>? {
        guard let record = try await cacher.load(param: param.value(as: Param.self)) else { return nil }
        return record.holding(BoxedContent(record.content))
    }

    func save(_ record: CacheRecord<BoxedContent>, param: BoxedKey) async throws {
        try await cacher.save(record.holding(record.content.value(as: Value.self)), param: param.value(as: Param.self))
    }

    func remove(param: BoxedKey) async throws { try await cacher.remove(param: param.value(as: Param.self)) }

    func removeAll() async throws { try await cacher.removeAll() }

    func keys() async throws -> [BoxedKey]? { try await cacher.keys()?.map { BoxedKey($0) } }

    func needsRefresh(_ record: CacheRecord<BoxedContent>, param: BoxedKey, now: Date) -> Bool {
        cacher.needsRefresh(record.holding(record.content.value(as: Value.self)), param: param.value(as: Param.self), now: now)
    }

    func observeNotices(_ observer: @escaping @Sendable (CacherNotice<BoxedKey>) -> Void) {
        guard let cacher = cacher as? any NoticingCacher<Param, Value> else { return }
        cacher.observeNotices { notice in
            switch notice {
            case .fault(let operation, let param, let error): observer(.fault(operation, param.map { BoxedKey($0) }, error))
            case .evicted(let count): observer(.evicted(count: count))
            }
        }
    }
}
