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

    /// Lets an observer wait for a state that he has not seen; gives it at once where there is one.
    func wait(_ param: Param, _ id: CallerID, at place: Int, seen: UInt64, _ waiting: ObserverSlot<Content>.Waiting) {
        let step: ObservedStep<Content>?? = state.withLock { state in
            // Legal: the observer was cancelled and has left before he could wait; the key may even have begun another life since.
            guard let key = state.live[param], key.observers.indices.contains(place), key.observers[place].id == id else {
                return .some(nil)
            }
            if key.version > seen, let state = key.machine.state { return ObservedStep(state: state, version: key.version) }
            key.observers[place].waiting = waiting
            return .none
        }
        if let step { waiting.resume(returning: step) }
    }

    /// Waits for a state that an observer has not seen; `nil` where he has left.
    func nextStep(of param: Param, _ id: CallerID, at place: Int, seen: UInt64) async -> ObservedStep<Content>? {
        await withTaskCancellationHandler {
            await withUnsafeContinuation { wait(param, id, at: place, seen: seen, $0) }
        } onCancel: {
            leave(param, id, at: place)
        }
    }

    /// Takes an observer out; does nothing where he has left already.
    func leave(_ param: Param, _ id: CallerID, at place: Int) {
        var outbox = Outbox<Param, Content>()
        state.withLock { state in
            guard let key = state.live[param] else { return }
            let (wasHere, waiting) = key.removeObserver(id, at: place)
            guard wasHere else { return }
            if let waiting { outbox.observers.append((waiting, nil)) }
            take(key, &state, &outbox) { key, turn in key.machine.observerLeft(&turn) }
        }
        outbox.deliver(onEvent)
    }
}

/// One observer of one key.
final class EngineObserver<Content: Sendable>: LoadingStateSource {
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

    func next() async -> LoadingState<Content>? {
        if hasLeft || (place == nil && Task.isCancelled) { return nil }
        let place = self.place ?? engine.join(key, id, forces: forces)
        self.place = place
        let step = await engine.nextStep(of: key, id, at: place, seen: seen)
        guard let step else {
            hasLeft = true
            return nil
        }
        seen = step.version
        return step.state.map { $0.value(as: Content.self) }
    }
}
