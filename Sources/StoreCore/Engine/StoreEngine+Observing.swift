internal import Synchronization

// Observers: each holds nothing but the number of the state it has seen, and waits only when that is the present one (C8).

extension StoreEngine {
    /// Makes an observer join.
    ///
    /// - Returns: His place.
    func join(_ param: BoxedKey, _ id: CallerID, forces: Bool) -> ObserverPlace {
        turn(param) { key, turn in
            let place = ObserverPlace(key: key.place, position: key.addObserver(id))
            key.machine.observerJoined(forces: forces, &turn)
            return place
        }
    }

    /// Looks for a state that an observer has not seen.
    func look(_ id: CallerID, at place: ObserverPlace) -> Key.Sight {
        state.withLock { $0.live.key(at: place.key)?.value.look(id, at: place.position) ?? .gone }
    }

    /// Lets an observer wait until there is a state that he has not seen; wakes him at once where there is one, or where he has left.
    ///
    /// He is only woken, and looks for himself when he runs: so no state is on its way to him that is no longer the newest, and none
    /// that holds on to a list while it grows, which then would have to be copied.
    func wait(_ id: CallerID, at place: ObserverPlace, _ waiting: Suspension) {
        // He may have left before he could wait; another key may even live there since.
        let waits = state.withLock { $0.live.key(at: place.key)?.value.wait(id, at: place.position, waiting) ?? false }
        if !waits { waiting.resume() }
    }

    /// Takes an observer out; does nothing where he has left already.
    func leave(_ id: CallerID, at place: ObserverPlace) {
        var effects = Effects()
        state.withLock { state in
            guard let key = state.live.key(at: place.key) else { return }
            let (wasHere, waiting) = key.value.removeObserver(id, at: place.position)
            guard wasHere else { return }
            if let waiting { effects.observers.append(waiting) }
            take(key, &state, &effects) { key, turn in key.machine.observerLeft(&turn) }
        }
        effects.deliver(onEvent)
    }
}

/// Where an observer is found: the place of his key among the live ones, and his own there.
struct ObserverPlace: Hashable, Sendable {
    let key: Int
    let position: Int

    init(key: Int, position: Int) {
        self.key = key
        self.position = position
    }

    /// Reads a place from one word; `nil` where it is none.
    init?(word: Int) {
        guard word >= 0 else { return nil }
        (key, position) = (word >> 32, word & 0xFFFF_FFFF)
    }

    /// The place in one word, which is never negative.
    var word: Int { key << 32 | position }
}

/// One observer of one key.
///
/// Whoever idles on a key costs this object, his place in the engine, and what stands in his task's frames. So ``pause(isolation:)`` can be
/// inlined into his own frame, where one reference is all that it adds, and what it calls is not.
@usableFromInline
final class EngineObserver: Sendable {
    private let engine: StoreEngine
    private let key: BoxedKey
    private let forces: Bool
    private let id: CallerID
    /// Where the engine keeps this observer; negative before he has joined and after he has left.
    private let place = Atomic(Nowhere.yet)
    /// For an observer inside a fetch: the fetch's wait for the key, which lasts until the observer leaves.
    private let wait: FetchWait?

    private enum Nowhere {
        static let yet = -1
        static let anymore = -2
    }

    init(_ engine: StoreEngine, _ key: BoxedKey, forces: Bool) {
        self.engine = engine
        self.key = key
        self.forces = forces
        id = engine.nextID()
        wait = FetchScope.active.map { FetchWait($0) }
    }

    deinit { leave() }

    /// Suspends until there may be a state that this observer has not seen.
    ///
    /// - Returns: `false` once the task is cancelled.
    @inlinable
    func pause(isolation: isolated (any Actor)? = #isolation) async -> Bool {
        guard enter() else { return false }
        await withTaskCancellationHandler {
            // Without the capture the closure runs on no actor, and each wait of an actor's observer costs two hops.
            _ = isolation
            await suspend { wait($0) }
        } onCancel: {
            leave()
        }
        return true
    }

    /// The newest state, if this observer has not seen it.
    @inlinable
    @inline(never)
    func state<BoxedContent: Sendable>(as type: BoxedContent.Type) -> LoadingState<BoxedContent>? {
        look()?.map { $0.value(as: BoxedContent.self) }
    }

    @usableFromInline
    func look() -> LoadingState<BoxedContent>? {
        guard let seat = ObserverPlace(word: place.load(ordering: .relaxed)) else { return nil }
        switch engine.look(id, at: seat) {
        case .state(let state):
            return state
        case .nothingNew:
            return nil
        case .gone:
            place.store(Nowhere.anymore, ordering: .relaxed)
            return nil
        }
    }

    /// Joins where that has not been done yet.
    ///
    /// - Returns: Whether he is here.
    @usableFromInline
    func enter() -> Bool {
        let place = place.load(ordering: .relaxed)
        guard place == Nowhere.yet else { return place >= 0 }
        guard !Task.isCancelled else {
            self.place.store(Nowhere.anymore, ordering: .relaxed)
            return false
        }
        self.place.store(engine.join(key, id, forces: forces).word, ordering: .relaxed)
        return wait.map { begin($0) } ?? true
    }

    /// Begins a fetch's wait for the key; leaves where it would never end.
    private func begin(_ wait: FetchWait) -> Bool {
        guard let identity = engine.identity(of: key), !wait.begin(awaiting: identity) else { return true }
        leave()
        place.store(Nowhere.anymore, ordering: .relaxed)
        return false
    }

    @usableFromInline
    func wait(_ waiting: Suspension) {
        guard let place = ObserverPlace(word: place.load(ordering: .relaxed)) else { return waiting.resume() }
        engine.wait(id, at: place, waiting)
    }

    @usableFromInline
    func leave() {
        wait?.end()
        if let place = ObserverPlace(word: place.load(ordering: .relaxed)) { engine.leave(id, at: place) }
    }
}
