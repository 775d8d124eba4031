#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The cacher of an engine, of a type that only the creator of the store knows. It may be shared and may have notices.
protocol EngineCacher: NoticingCacher, SharedCacher where Param == BoxedKey, Content == BoxedContent {}

/// The engine's view of a cacher.
struct BoxedCacher<Param: Hashable & Sendable, Value: Sendable>: NoticingCacher {
    let cacher: any Cacher<Param, Value>
    let shared: (any SharedCacher<Param, Value>)?
    /// Whether the origin accepts a saved version; called for versions with notes.
    let accept: Accept<Param>

    init(cacher: any Cacher<Param, Value>, accept: @escaping Accept<Param>) {
        self.cacher = cacher
        self.accept = accept
        let shared = cacher as? any SharedCacher<Param, Value>
        self.shared = shared?.isShared == true ? shared : nil
    }

    var expiry: Expiry { cacher.expiry }

    func load(param: BoxedKey) async throws -> CacheRecord<BoxedContent>? {
        let param = param.value(as: Param.self)
        guard let record = try await cacher.load(param: param) else { return nil }
        guard await isAccepted(record, param) else { throw UnacceptedVersion() }
        return record.holding(BoxedContent(record.content))
    }

    private func isAccepted(_ record: CacheRecord<Value>, _ param: Param) async -> Bool {
        guard let validator = record.validator, validator.notes != nil else { return true }
        return await accept(validator, param)
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

    func settle() async { await (cacher as? any NoticingCacher<Param, Value>)?.settle() }
}

/// The error of a load: there is a record, but the origin does not accept its version. The store treats it as a miss.
struct UnacceptedVersion: Error {}

extension BoxedCacher: EngineCacher {
    var isShared: Bool { shared != nil }

    var position: Revision { shared?.position ?? .none }

    func observeChanges(_ observer: @escaping @Sendable (CacherChange<BoxedKey>) -> Void) -> ChangeObservation {
        guard let shared else { return ChangeObservation {} }
        return shared.observeChanges { change in
            switch change {
            case .changed(let param, let revision): observer(.changed(BoxedKey(param), revision))
            case .removedAll(let revision): observer(.removedAll(revision))
            case .gap: observer(.gap)
            }
        }
    }

    func save(_ record: CacheRecord<BoxedContent>, param: BoxedKey, over base: Revision) async throws -> SaveOutcome<BoxedContent> {
        let (record, param) = (record.holding(record.content.value(as: Value.self)), param.value(as: Param.self))
        return try await overwriting(base, param) { try await $0.save(record, param: param, over: $1) }
    }

    func remove(param: BoxedKey, over base: Revision) async throws -> SaveOutcome<BoxedContent> {
        let param = param.value(as: Param.self)
        return try await overwriting(base, param) { try await $0.remove(param: param, over: $1) }
    }

    /// Makes a change over a base, and over each newer record of a version that the origin does not accept.
    private func overwriting(
        _ base: Revision, _ param: Param, _ change: (any SharedCacher<Param, Value>, Revision) async throws -> SaveOutcome<Value>
    ) async throws -> SaveOutcome<BoxedContent> {
        guard let shared else { preconditionFailure("only changes of a shared cacher have a base") }
        var base = base
        while true {
            let outcome = try await change(shared, base)
            guard case .superseded(let newer?, let revision) = outcome, await !isAccepted(newer, param) else { return outcome.boxed() }
            base = revision
        }
    }

    func lease(_ param: BoxedKey, for duration: Duration) async throws -> LeaseOutcome {
        guard let shared else { return .notNeeded }
        return try await shared.lease(param.value(as: Param.self), for: duration)
    }
}

extension SaveOutcome {
    fileprivate func boxed() -> SaveOutcome<BoxedContent> {
        switch self {
        case .saved(let revision): .saved(revision)
        case .superseded(let newer, let revision): .superseded(by: newer.map { $0.holding(BoxedContent($0.content)) }, revision)
        }
    }
}
