internal import Synchronization

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

    /// What an observer finds when he looks.
    enum Sight: Sendable {
        case state(LoadingState<Content>)
        case nothingNew
        /// He has left: cancelled, while he was on his way.
        case gone
    }

    func look(_ param: Param, _ id: CallerID, at place: Int) -> Sight {
        state.withLock { state in
            guard let key = state.live[param], let position = key.position(of: id, at: place) else { return .gone }
            guard key.hasNews(at: position), let state = key.machine.state else { return .nothingNew }
            key.see(at: position)
            return .state(state)
        }
    }

    /// Lets an observer wait until there is a state that he has not seen; wakes him at once where there is one, or where he has left.
    ///
    /// He is only woken, and looks for himself when he runs: so no state is on its way to him that is no longer the newest, and none
    /// that holds on to a list while it grows, which then would have to be copied.
    func wait(_ param: Param, _ id: CallerID, at place: Int, _ waiting: ObserverSlot.Waiting) {
        let waits = state.withLock { state in
            // Legal: he was cancelled and has left before he could wait; the key may even have begun another life since.
            guard let key = state.live[param], let position = key.position(of: id, at: place) else { return false }
            guard !key.hasNews(at: position) || key.machine.sight == nil else { return false }
            key.wait(at: position, waiting)
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
///
/// Whoever idles on a key costs this object, his place in the engine, and the frame of ``pause(isolation:)``; so what stands in the frame
/// is one reference, and nothing is inlined into it.
@usableFromInline
final class EngineObserver: Sendable {
    private let engine: Uniform.Engine
    private let key: Uniform.Key
    private let forces: Bool
    private let id: CallerID
    /// Where the engine keeps this observer; negative before he has joined and after he has left.
    private let place = Atomic(Place.none)

    private enum Place {
        static let none = -1
        static let left = -2
    }

    init(_ engine: Uniform.Engine, _ key: Uniform.Key, forces: Bool) {
        self.engine = engine
        self.key = key
        self.forces = forces
        id = engine.nextID()
    }

    deinit { leave() }

    /// Suspends until there may be a state that this observer has not seen.
    ///
    /// - Returns: `false` once the task is cancelled.
    @usableFromInline
    func pause(isolation: isolated (any Actor)? = #isolation) async -> Bool {
        guard enter() else { return false }
        await withTaskCancellationHandler {
            // Without the capture the closure runs on no actor, and each wait of an actor's observer costs two hops.
            _ = isolation
            await withUnsafeContinuation { wait($0) }
        } onCancel: {
            leave()
        }
        return true
    }

    /// The newest state, if this observer has not seen it.
    @inlinable
    @inline(never)
    func state<Content: Sendable>(as type: Content.Type) -> LoadingState<Content>? {
        look()?.map { $0.value(as: Content.self) }
    }

    @usableFromInline
    func look() -> LoadingState<Uniform.Content>? {
        switch engine.look(key, id, at: place.load(ordering: .relaxed)) {
        case .state(let state):
            return state
        case .nothingNew:
            return nil
        case .gone:
            place.store(Place.left, ordering: .relaxed)
            return nil
        }
    }

    /// Joins where that has not been done yet.
    ///
    /// - Returns: Whether he is here.
    @inline(never)
    private func enter() -> Bool {
        let place = place.load(ordering: .relaxed)
        guard place == Place.none else { return place >= 0 }
        guard !Task.isCancelled else { return false }
        self.place.store(engine.join(key, id, forces: forces), ordering: .relaxed)
        return true
    }

    @inline(never)
    private func wait(_ waiting: ObserverSlot.Waiting) {
        engine.wait(key, id, at: place.load(ordering: .relaxed), waiting)
    }

    @inline(never)
    private func leave() {
        let place = place.load(ordering: .relaxed)
        if place >= 0 { engine.leave(key, id, at: place) }
    }
}
