#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

// The live keys of an engine at one moment, for snapshots.

extension StoreEngine {
    var liveCount: Int { state.withLock { $0.live.count } }

    /// Returns live keys from a place on in their list, which has no order.
    func liveParams(from rank: Int, limit: Int) -> [BoxedKey] { state.withLock { $0.live.params(from: rank, limit: limit) } }

    func idle<Param: Hashable & Sendable>(_ params: [Param]) -> [Param] {
        state.withLock { state in
            params.filter { param in
                state.live.find(HashIndex.hash(ofValue: param.hashValue)) { $0.value(as: Param.self) == param } == nil
            }
        }
    }

    /// Returns a live key at this moment, and the first entities of each of its links; `nil` if the key is not live.
    func snapshot<Param: Hashable & Sendable, Content: Sendable>(
        of key: BoxedKey, as param: Param, _ type: Content.Type, _ now: MonotonicInstant, _ date: Date
    ) -> (KeySnapshot<Param, Content>, entities: [[BoxedKey]])? {
        state.withLock { state -> (KeySnapshot<Param, Content>, entities: [[BoxedKey]])? in
            guard let key = state.live[state.resolve(key)] else { return nil }
            return key.value.snapshot(param, now, date, links)
        }
    }
}

extension LiveKey {
    // Mutating, so that the machine is read in place.
    fileprivate mutating func snapshot<Param: Hashable & Sendable, Content: Sendable>(
        _ param: Param, _ now: MonotonicInstant, _ date: Date, _ links: [LinkRules]
    ) -> (KeySnapshot<Param, Content>, entities: [[BoxedKey]]) {
        var snapshot = KeySnapshot<Param, Content>(param: param, isLive: true)
        let flight = machine.origin.flight
        snapshot.content = (machine.book.content ?? machine.placeholder)?.value(as: Content.self)
        snapshot.error = machine.origin.failure?.error
        snapshot.phase =
            flight != nil
            ? .loading : snapshot.error != nil ? .failed : snapshot.content != nil || machine.origin.isKnown ? .completed : .unread
        if let held = machine.book.held {
            snapshot.age = Duration(saturating: date.timeIntervalSince(held.record.fetchedAt))
            snapshot.isInvalidated = held.record.isInvalidated
            if held.deadline != .distantFuture { snapshot.expiresIn = now.duration(to: held.deadline) }
        }
        snapshot.observers = observers.count
        snapshot.callers = callers.values.reduce(callerGroup?.result.count ?? 0) { $0 + $1.count }
        snapshot.patches = machine.book.patches.count
        snapshot.save =
            machine.saving.failure != nil
            ? .failed : machine.saving.isRunning ? .running : machine.saving.tried != machine.book.revision ? .pending : .none
        let sides = machine.sides
        snapshot.fetches = fetches.map { fetch in
            let target: StoreEventKind.Target =
                fetch.ticket == sides.next.ticket ? .page(.next) : fetch.ticket == sides.prev.ticket ? .page(.prev) : .content
            return KeyFetch(target: target, duration: fetch.began.duration(to: now))
        }
        guard let places = machine.book.linked?.value.places, places.count == links.count else { return (snapshot, []) }
        let shown = places.map(\.entities.distinct)
        snapshot.links = zip(links, shown).map { KeyLinks(store: $0.entities.name, count: $1.count, keys: []) }
        return (snapshot, shown.map { Array($0.prefix(100)) })
    }
}
