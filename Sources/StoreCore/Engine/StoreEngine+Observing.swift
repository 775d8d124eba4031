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
            // Legal: the observer was cancelled and has left before he could wait.
            guard let key = state.live[param], key.observers[place].id == id else { return .some(nil) }
            if key.version > seen, let state = key.machine.state { return ObservedStep(state: state, version: key.version) }
            key.observers[place].waiting = waiting
            return .none
        }
        if let step { waiting.resume(returning: step) }
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
final class EngineObserver<Param: Hashable & Sendable, Content: Sendable>: LoadingStateSource {
    private let engine: StoreEngine<Param, Content>
    private let param: Param
    private let forces: Bool
    private let id: CallerID
    /// Where the engine keeps this observer; `nil` before the first `next()`.
    private var place: Int?
    private var seen: UInt64 = 0
    private var hasLeft = false

    init(_ engine: StoreEngine<Param, Content>, _ param: Param, forces: Bool) {
        self.engine = engine
        self.param = param
        self.forces = forces
        id = engine.nextID()
    }

    deinit {
        if let place, !hasLeft { engine.leave(param, id, at: place) }
    }

    func next() async -> LoadingState<Content>? {
        if hasLeft || (place == nil && Task.isCancelled) { return nil }
        let place = self.place ?? engine.join(param, id, forces: forces)
        self.place = place
        let (engine, param, id, seen) = (engine, param, id, seen)
        let step = await withTaskCancellationHandler {
            await withUnsafeContinuation { engine.wait(param, id, at: place, seen: seen, $0) }
        } onCancel: {
            engine.leave(param, id, at: place)
        }
        guard let step else {
            hasLeft = true
            return nil
        }
        self.seen = step.version
        return step.state
    }
}
