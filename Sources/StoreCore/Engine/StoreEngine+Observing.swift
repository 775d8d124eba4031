// Observers: each holds nothing but the number of the state it has seen, and waits only when that is the present one (C8).

extension StoreEngine {
    /// Makes an observer join.
    ///
    /// - Returns: His place.
    func join(_ param: Param, _ id: CallerID, forces: Bool) -> Int {
        turn(param) { key, turn in
            let place = key.addObserver(id)
            key.machine.observerJoined(forces: forces, &turn)
            return place
        }
    }

    /// Suspends an observer until there is a state that he has not seen, or he has left.
    ///
    /// He is only woken, and looks for himself when he runs: so no state is on its way to him that is no longer the newest, and none
    /// that holds on to a list while it grows, which then would have to be copied.
    func pause(
        _ param: Param, _ id: CallerID, at place: Int, seen: UInt64, isolation: isolated (any Actor)? = #isolation
    ) async {
        await withTaskCancellationHandler {
            // Without the capture the closure runs on no actor, and each wait of an actor's observer costs two hops.
            _ = isolation
            await withUnsafeContinuation { wait(param, id, at: place, seen: seen, $0) }
        } onCancel: {
            leave(param, id, at: place)
        }
    }

    /// What an observer finds when he looks.
    enum Sight: Sendable {
        case step(ObservedStep<Content>)
        case nothingNew
        /// He has left: cancelled, while he was on his way.
        case gone
    }

    func look(_ param: Param, _ id: CallerID, at place: Int, seen: UInt64) -> Sight {
        state.withLock { state in
            guard let key = state.live[param], key.isHere(id, at: place) else { return .gone }
            guard key.version > seen, let state = key.machine.state else { return .nothingNew }
            return .step(ObservedStep(state: state, version: key.version))
        }
    }

    /// Lets an observer wait until there is a state that he has not seen; wakes him at once where there is one, or where he has left.
    func wait(_ param: Param, _ id: CallerID, at place: Int, seen: UInt64, _ waiting: ObserverSlot.Waiting) {
        let waits = state.withLock { state in
            // Legal: he was cancelled and has left before he could wait; the key may even have begun another life since.
            guard let key = state.live[param], key.isHere(id, at: place) else { return false }
            guard key.version <= seen || key.machine.state == nil else { return false }
            key.observers[place].waiting = waiting
            return true
        }
        if !waits { waiting.resume() }
    }

    /// Takes an observer out; does nothing where he has left already.
    func leave(_ param: Param, _ id: CallerID, at place: Int) {
        var outbox = Outbox<Param, Content>()
        state.withLock { state in
            guard let key = state.live[param] else { return }
            let (wasHere, waiting) = key.removeObserver(id, at: place)
            guard wasHere else { return }
            if let waiting { outbox.observers.append(waiting) }
            take(key, &state, &outbox) { key, turn in key.machine.observerLeft(&turn) }
        }
        outbox.deliver(onEvent)
    }
}

/// One observer of one key.
@usableFromInline
final class EngineObserver {
    private let engine: Uniform.Engine
    private let key: Uniform.Key
    private let forces: Bool
    private let id: CallerID
    /// Where the engine keeps this observer; `nil` before the first `next()`.
    private var place: Int?
    private var seen: UInt64 = 0
    private var hasLeft = false

    init(_ engine: Uniform.Engine, _ key: Uniform.Key, forces: Bool) {
        self.engine = engine
        self.key = key
        self.forces = forces
        id = engine.nextID()
    }

    deinit {
        if let place, !hasLeft { engine.leave(key, id, at: place) }
    }

    /// Suspends until there may be a state that this observer has not seen.
    ///
    /// - Returns: `false` once the task is cancelled.
    @usableFromInline
    func pause() async -> Bool {
        guard let place = enter() else { return false }
        await engine.pause(key, id, at: place, seen: seen)
        return true
    }

    /// The newest state, if this observer has not seen it.
    // Never inlined: what is made here would stand in the frame of `next()`, which an idle observer keeps as long as he waits.
    @inlinable
    @inline(never)
    func state<Content: Sendable>(as type: Content.Type) -> LoadingState<Content>? {
        look()?.map { $0.value(as: Content.self) }
    }

    @usableFromInline
    func look() -> LoadingState<Uniform.Content>? {
        guard let place else { return nil }
        switch engine.look(key, id, at: place, seen: seen) {
        case .step(let step):
            seen = step.version
            return step.state
        case .nothingNew:
            return nil
        case .gone:
            hasLeft = true
            return nil
        }
    }

    /// Joins where that has not been done yet.
    ///
    /// - Returns: His place; `nil` where he has left.
    private func enter() -> Int? {
        if hasLeft || (place == nil && Task.isCancelled) { return nil }
        let place = self.place ?? engine.join(key, id, forces: forces)
        self.place = place
        return place
    }
}
