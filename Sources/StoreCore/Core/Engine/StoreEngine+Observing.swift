internal import Synchronization

// Observers. An observer keeps the number of the last state that it has received, and waits if that is the current state (C8).

extension StoreEngine {
    /// Adds an observer. Returns the place of its key, which is fixed until the observer leaves; `nil` if the store is closed.
    func join(_ key: BoxedKey, _ id: CallerID, forceRefresh: Bool) -> Int? {
        transition(key) { key, transition in
            if let row = newestRow(of: key.param) { key.machine.rowFound(row) }
            key.observers.join(0, as: id)
            key.machine.observerJoined(forceRefresh: forceRefresh, &transition)
            return key.place
        }
    }

    /// Looks for a state that an observer has not seen.
    func look(_ id: CallerID, at place: Int) -> Key.LookResult {
        if !links.isEmpty { return lookReconciled(id, at: place) }
        return state.withLock { $0.live.key(at: place)?.value.look(id) ?? .gone }
    }

    /// Lets an observer wait for a state that it has not seen. Resumes the observer at once if there is one, or if the observer has left.
    ///
    /// The suspension carries no state: the observer looks for the newest one when it runs. A state in transit would soon be outdated, and
    /// would hold a list that then has to be copied to grow.
    func wait(_ id: CallerID, at place: Int, _ suspension: Suspension) {
        // The observer may have left, and another key may have its place.
        let isWaiting = state.withLock { $0.live.key(at: place)?.value.wait(id, suspension) ?? false }
        if !isWaiting { suspension.resume() }
    }

    func leave(_ id: CallerID, at place: Int) {
        withEffects { state, effects in
            guard let key = state.live.key(at: place), let observer = key.value.observers.remove(id) else { return }
            if let suspension = observer.suspension { effects.observers.append(suspension) }
            take(key, &state, &effects) { key, transition in key.machine.observerLeft(&transition) }
        }
    }
}

/// One observer of one key.
///
/// An idle observer costs this object, its slot in the engine, and the frames of its task. ``pause(isolation:)`` can be inlined into the
/// caller's frame, where it adds one reference; the functions that it calls are not inlined.
@usableFromInline
final class EngineObserver: Sendable {
    private let engine: StoreEngine
    private let key: BoxedKey
    private let forceRefresh: Bool
    private let id: CallerID
    /// The place of the key among the live keys; negative before the observer has joined and after it has left.
    private let place = Atomic(Nowhere.outside)
    /// For an observer inside a fetch: the fetch's wait for the key, which lasts until the observer leaves.
    private let wait: FetchWait?

    private enum Nowhere {
        static let outside = -1
        static let left = -2
    }

    init(_ engine: StoreEngine, _ key: BoxedKey, forceRefresh: Bool) {
        self.engine = engine
        self.key = key
        self.forceRefresh = forceRefresh
        id = engine.nextID()
        wait = FetchScope.active.map { FetchWait($0) }
    }

    deinit { leave() }

    /// Suspends until there may be a state that this observer has not received. Returns `false` once the task is canceled.
    @inlinable
    func pause(isolation: isolated (any Actor)? = #isolation) async -> Bool {
        guard enter() else { return false }
        // Written out by hand, see ``suspend(isolation:_:onCancel:)``.
        await withTaskCancellationHandler {
            _ = isolation
            await suspend { wait($0) }
        } onCancel: {
            leave()
        }
        return true
    }

    /// The newest state; `nil` if this observer has received it.
    @inlinable
    @inline(never)
    func state<Content: Sendable>(as type: Content.Type) -> LoadingState<Content>? {
        look()?.map { $0.value(as: Content.self) }
    }

    @usableFromInline
    func look() -> LoadingState<BoxedContent>? {
        guard let place = joinedPlace else { return nil }
        switch engine.look(id, at: place) {
        case .state(let state):
            return state
        case .nothingNew:
            return nil
        case .gone:
            // If a temporary key was replaced, the observer joins the new key, unless it has left because it was canceled.
            if !Task.isCancelled, engine.isReplaced(key), let place = engine.join(key, id, forceRefresh: false) {
                self.place.store(place, ordering: .relaxed)
                return look()
            }
            self.place.store(Nowhere.left, ordering: .relaxed)
            return nil
        }
    }

    private var joinedPlace: Int? {
        let place = place.load(ordering: .relaxed)
        return place >= 0 ? place : nil
    }

    /// Joins, unless that was done before. Returns whether the observer is present.
    @usableFromInline
    func enter() -> Bool {
        let place = place.load(ordering: .relaxed)
        guard place == Nowhere.outside else { return place >= 0 }
        guard !Task.isCancelled, let joined = engine.join(key, id, forceRefresh: forceRefresh) else {
            self.place.store(Nowhere.left, ordering: .relaxed)
            return false
        }
        self.place.store(joined, ordering: .relaxed)
        return wait.map { begin($0) } ?? true
    }

    /// Begins a fetch's wait for the key; leaves if the wait would never end.
    private func begin(_ wait: FetchWait) -> Bool {
        guard let identity = engine.identity(of: key), !wait.begin(awaiting: identity) else { return true }
        leave()
        place.store(Nowhere.left, ordering: .relaxed)
        return false
    }

    @usableFromInline
    func wait(_ suspension: Suspension) {
        guard let place = joinedPlace else { return suspension.resume() }
        engine.wait(id, at: place, suspension)
    }

    @usableFromInline
    func leave() {
        wait?.end()
        if let place = joinedPlace { engine.leave(id, at: place) }
    }
}
