internal import Synchronization

// Observers: each holds nothing but the number of the state it has seen, and waits only when that is the present one (C8).

extension StoreEngine {
    func join(_ key: BoxedKey, _ id: CallerID, forces: Bool) {
        turn(key) { key, turn in
            key.addObserver(id)
            key.machine.observerJoined(forces: forces, &turn)
        }
    }

    /// Looks for a state that an observer has not seen.
    func look(_ id: CallerID, at key: BoxedKey) -> Key.Sight {
        state.withLock { $0.live[key]?.value.look(id) ?? .gone }
    }

    /// Lets an observer wait for a state that it has not seen. Resumes the observer at once if there is one, or if the observer has left.
    ///
    /// The suspension carries no state: the observer looks for the newest one when it runs. A state in transit would soon be outdated, and
    /// would hold a list that then has to be copied to grow.
    func wait(_ id: CallerID, at key: BoxedKey, _ waiting: Suspension) {
        let waits = state.withLock { $0.live[key]?.value.wait(id, waiting) ?? false }
        if !waits { waiting.resume() }
    }

    /// Removes an observer, unless it has left already.
    func leave(_ id: CallerID, at key: BoxedKey) {
        var effects = Effects()
        state.withLock { state in
            guard let key = state.live[key], let removed = key.value.removeObserver(id) else { return }
            if let waiting = removed.waiting { effects.observers.append(waiting) }
            take(key, &state, &effects) { key, turn in key.machine.observerLeft(&turn) }
        }
        effects.deliver(onEvent)
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
    private let forces: Bool
    private let id: CallerID
    private let stage = Atomic(Stage.outside)
    /// For an observer inside a fetch: the fetch's wait for the key, which lasts until the observer leaves.
    private let wait: FetchWait?

    private enum Stage: UInt8, AtomicRepresentable {
        case outside, joined, left
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
        guard stage.load(ordering: .relaxed) == .joined else { return nil }
        switch engine.look(id, at: key) {
        case .state(let state):
            return state
        case .nothingNew:
            return nil
        case .gone:
            stage.store(.left, ordering: .relaxed)
            return nil
        }
    }

    /// Joins, unless that was done before.
    ///
    /// - Returns: Whether the observer is present.
    @usableFromInline
    func enter() -> Bool {
        let stage = stage.load(ordering: .relaxed)
        guard stage == .outside else { return stage == .joined }
        guard !Task.isCancelled else {
            self.stage.store(.left, ordering: .relaxed)
            return false
        }
        engine.join(key, id, forces: forces)
        self.stage.store(.joined, ordering: .relaxed)
        return wait.map { begin($0) } ?? true
    }

    /// Begins a fetch's wait for the key; leaves if the wait would never end.
    private func begin(_ wait: FetchWait) -> Bool {
        guard let identity = engine.identity(of: key), !wait.begin(awaiting: identity) else { return true }
        leave()
        stage.store(.left, ordering: .relaxed)
        return false
    }

    @usableFromInline
    func wait(_ waiting: Suspension) {
        guard stage.load(ordering: .relaxed) == .joined else { return waiting.resume() }
        engine.wait(id, at: key, waiting)
    }

    @usableFromInline
    func leave() {
        wait?.end()
        if stage.load(ordering: .relaxed) == .joined { engine.leave(id, at: key) }
    }
}
