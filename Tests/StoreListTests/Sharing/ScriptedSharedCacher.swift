import StoreCore
import StoreTrials

/// A shared cacher in memory; the test plays its other users.
final class ScriptedSharedCacher: SharedCacher {
    private struct State: Sendable {
        var records: [Int: (record: CacheRecord<Int>?, revision: Revision)] = [:]
        var last = Revision.none
        var position = Revision.none
        /// The changes of others that have not been delivered.
        var undelivered: [CacherChange<Int>] = []
        var observer: (@Sendable (CacherChange<Int>) -> Void)?
        var saveFault: (any Error)?
        var loadFault: (any Error)?
        var grantsLeases = false
        var savesBegun = 0
        /// The number of saves that may end.
        var allowedSaves = Int.max

        mutating func next(writer: UInt64) -> Revision {
            last = Revision(number: last.number + 1, writer: writer)
            return last
        }
    }

    private let state = WatchedState(State())
    private static let own: UInt64 = 1
    private static let other: UInt64 = 2

    // MARK: Control by the test

    func fail(saves error: (any Error)?) { state.update { $0.saveFault = error } }
    func fail(loads error: (any Error)?) { state.update { $0.loadFault = error } }
    func grantLeases() { state.update { $0.grantsLeases = true } }
    func hold() { state.update { $0.allowedSaves = $0.savesBegun } }
    func releaseNext() { state.update { $0.allowedSaves += 1 } }
    func release() { state.update { $0.allowedSaves = .max } }

    func content(_ key: Int) -> Int? { state.read { $0.records[key]?.record?.content } }

    func isInvalidated(_ key: Int) -> Bool { state.read { $0.records[key]?.record?.isInvalidated == true } }

    /// Waits until saves have begun.
    func saves(begun count: Int) async throws { try await state.wait { $0.savesBegun >= count ? () : nil } }

    /// Another user saves content; with a stamp if that user links to it.
    func change(_ key: Int, to content: Int, stamp: Stamp? = nil, isExpired: Bool = false, delivers: Bool = true) {
        var changed = record(content)
        if let stamp { changed.fields.stamp = stamp }
        if isExpired { changed.freshness = .fresh(for: .zero) }
        state.update { [changed] state in
            let revision = state.next(writer: Self.other)
            state.records[key] = (changed, revision)
            state.undelivered.append(.changed(key, revision))
        }
        if delivers { deliver() }
    }

    /// Delivers the changes of others so far.
    func deliver() {
        let (changes, observer) = state.update { state in
            defer { state.undelivered = [] }
            return (state.undelivered, state.observer)
        }
        for change in changes { observer?(change) }
        state.update { $0.position = $0.last }
    }

    /// Announces that changes may have been lost.
    func announceGap() {
        state.update { $0.undelivered = [.gap] }
        deliver()
    }

    // MARK: SharedCacher

    var position: Revision { state.read { $0.position } }

    func observeChanges(_ observer: @escaping @Sendable (CacherChange<Int>) -> Void) -> ChangeObservation {
        state.update { $0.observer = observer }
        return ChangeObservation { [weak self] in self?.state.update { $0.observer = nil } }
    }

    func load(param: Int) async throws -> CacheRecord<Int>? {
        try state.read { state -> Result<CacheRecord<Int>?, any Error> in
            if let fault = state.loadFault { return .failure(fault) }
            return .success(state.records[param]?.record)
        }.get()
    }

    func save(_ record: CacheRecord<Int>, param: Int) async throws { _ = try await commit(record, param, over: nil) }

    func save(_ record: CacheRecord<Int>, param: Int, over base: Revision) async throws -> SaveOutcome<Int> {
        try await commit(record, param, over: base)
    }

    func remove(param: Int) async throws { _ = try await commit(nil, param, over: nil) }

    func remove(param: Int, over base: Revision) async throws -> SaveOutcome<Int> { try await commit(nil, param, over: base) }

    func removeAll() async throws { state.update { $0.records = [:] } }

    func keys() async throws -> [Int]? { state.read { Array($0.records.keys) } }

    func lease(_ param: Int, for duration: Duration) async throws -> LeaseOutcome {
        state.read { $0.grantsLeases } ? .granted(Lease(position: position) { _ in }) : .notNeeded
    }

    private func commit(_ record: CacheRecord<Int>?, _ key: Int, over base: Revision?) async throws -> SaveOutcome<Int> {
        let number = state.update { state in
            state.savesBegun += 1
            return state.savesBegun
        }
        try await state.wait { $0.allowedSaves >= number ? () : nil }
        return try state.update { state -> Result<SaveOutcome<Int>, any Error> in
            if let fault = state.saveFault { return .failure(fault) }
            if let base, let present = state.records[key], present.revision > base, present.revision.writer != Self.own {
                return .success(.superseded(by: present.record, present.revision))
            }
            let revision = state.next(writer: Self.own)
            state.records[key] = (record, revision)
            if state.undelivered.isEmpty { state.position = revision }
            return .success(.saved(revision))
        }.get()
    }
}
