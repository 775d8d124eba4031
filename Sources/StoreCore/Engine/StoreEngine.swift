internal import Synchronization

/// Drives the machines of all live keys of one store under one lock, and carries out what they want done.
///
/// Under the lock: let a machine decide, register who waits. Outside it: resume, cancel, call user code. What goes beyond this file:
/// `+Calling` callers, `+Crowding` many of them at once, `+Observing` observers, `+Cacher` the cacher, `+FrontMemory` the memory in front
/// of it, `+Fetching` fetches and time, `+Prefetching` fetches for later, `+Whole` what concerns all keys.
@usableFromInline
final class StoreEngine: Sendable {
    typealias Key = LiveKey
    typealias Turn = KeyMachine<BoxedContent>.Turn

    let fetches: Fetches
    let front: FrontMemory?
    let backing: (any Cacher<BoxedKey, BoxedContent>)?
    /// The cacher if others use it too.
    let shared: (any SharedCacher<BoxedKey, BoxedContent>)?
    let rules: KeyRules<BoxedContent>
    let time: any TimeSource
    let onEvent: (@Sendable (StoreEvent<BoxedKey>) -> Void)?

    /// Guards everything that changes.
    let state = Lock(EngineState())
    private let ids = Atomic<UInt64>(0)

    init(
        respond: @escaping Respond, front: FrontMemory?, backing: (any Cacher<BoxedKey, BoxedContent>)?,
        expiry: Expiry, policy: StorePolicy, time: any TimeSource, list: ListRules<BoxedContent>?,
        onEvent: (@Sendable (StoreEvent<BoxedKey>) -> Void)?
    ) {
        fetches = Fetches(respond: respond, retry: policy.retry, list: list, time: time)
        self.front = front
        self.backing = backing
        let cacher = backing as? any SharedCacher<BoxedKey, BoxedContent>
        let shared = cacher?.isShared == true ? cacher : nil
        self.shared = shared
        self.time = time
        self.onEvent = onEvent
        rules = KeyRules(
            expiry: expiry, policy: policy, hasFront: front != nil, hasBacking: backing != nil, reports: onEvent != nil,
            list: list, position: Self.position(of: shared))
        observeNotices()
        observeChanges()
    }

    private static func position(of shared: (any SharedCacher<BoxedKey, BoxedContent>)?) -> (@Sendable () -> Revision)? {
        guard let shared else { return nil }
        return { shared.position }
    }

    /// Turns what the cacher notices beside its answers into events.
    private func observeNotices() {
        guard onEvent != nil, let backing = backing as? any NoticingCacher<BoxedKey, BoxedContent> else { return }
        backing.observeNotices { [weak self] notice in
            switch notice {
            case .fault(let operation, let param, let error): self?.report(.cacherFault(operation, error), param)
            case .evicted(let count): self?.report(.evicted(count: count), nil)
            }
        }
    }

    deinit {
        // Nobody observes, calls or saves any longer, or he would hold the engine: what still runs is unwanted.
        let tasks = state.withLock { state in
            Array(state.triggers.values) + state.prefetching.workers.values
                + state.live.all.map(\.value).flatMap { key in key.fetches.map(\.task) + (key.timer.map { [$0.task] } ?? []) }
        }
        for task in tasks { task.cancel() }
    }

    func nextID() -> CallerID { ids.wrappingAdd(1, ordering: .relaxed).newValue }

    // MARK: Turns

    /// Gives a key's machine one fact, and carries out what follows.
    ///
    /// - Parameters:
    ///   - param: The key.
    ///   - body: Tells the machine; runs under the lock.
    /// - Returns: What `body` returned.
    func turn<Result: Sendable>(_ param: BoxedKey, _ body: @Sendable (inout Key, inout Turn) -> Result) -> Result {
        turn({ $0.key(for: param, rules: rules) }, body)
    }

    /// The same for a key that is found in another way than by its like.
    @inline(__always)
    func turn<Result: Sendable>(
        _ find: @Sendable (inout LiveKeys) -> Cell<Key>, _ body: @Sendable (inout Key, inout Turn) -> Result
    ) -> Result {
        var effects = Effects()
        let result = state.withLock { state in
            let key = find(&state.live)
            return take(key, &state, &effects, body)
        }
        effects.deliver(onEvent)
        return result
    }

    /// The same for a fact that means nothing to a key that is not live any longer.
    ///
    /// - Returns: Whether the key is live.
    @discardableResult
    func turnIfLive(_ param: BoxedKey, _ body: @Sendable (inout Key, inout Turn) -> Void) -> Bool {
        var effects = Effects()
        let isLive = state.withLock { state in
            guard let key = state.live[param] else { return false }
            take(key, &state, &effects, body)
            return true
        }
        effects.deliver(onEvent)
        return isLive
    }

    /// One turn of one key, under the lock.
    ///
    /// Bodies are `@Sendable` so that the compiler can see that nothing of the lock's state leaves through them.
    // Inlined, so that content which a body captures is not copied into a closure first; so is `play`.
    @discardableResult
    @inline(__always)
    func take<Result>(
        _ cell: Cell<Key>, _ state: inout EngineState, _ effects: inout Effects,
        _ body: @Sendable (inout Key, inout Turn) -> Result
    ) -> Result {
        let (result, ends) = play(&cell.value, &state, &effects, body)
        if ends { state.retire(cell, &effects) }
        if !state.queue.calls.isEmpty { startCalls(&state) }
        return result
    }

    /// - Returns: What `body` returned, and whether the key may have to be forgotten, or to be kept although it is at rest.
    @inline(__always)
    private func play<Result>(
        _ key: inout Key, _ state: inout EngineState, _ effects: inout Effects,
        _ body: @Sendable (inout Key, inout Turn) -> Result
    ) -> (Result, ends: Bool) {
        var turn = Turn(time: time, tickets: state.tickets)
        let result = body(&key, &turn)
        if !turn.actions.isEmpty { carryOut(&key, &turn, &state, &effects) }
        state.tickets = turn.tickets
        effects.discarded.append(contentsOf: turn.discarded.takeAll())
        if turn.mirrors { mirror(&key, &state, &effects) }
        if turn.isPublished { key.publish(&effects.observers) }
        if !turn.leftovers.isEmpty { effects.leftovers += turn.leftovers }
        arm(&key, &effects)
        return (result, key.machine.isAtRest)
    }

    private func carryOut(
        _ key: inout Key, _ turn: inout Turn, _ state: inout EngineState, _ effects: inout Effects
    ) {
        // Reading the memory in front is done on the spot and makes more to do.
        while !turn.actions.isEmpty {
            turn.actions.takeAll().consumeEach { carryOut($0, &key, &turn, &state, &effects) }
        }
    }

    private func carryOut(
        _ action: consuming KeyAction<BoxedContent>, _ key: inout Key, _ turn: inout Turn, _ state: inout EngineState,
        _ effects: inout Effects
    ) {
        switch consume action {
        case .read(let ticket):
            read(ticket, &key, &turn, &state)
        case .save:
            state.queue.write(key.param)
        case .saveFailed:
            state.queue.saveFailed(key.param, at: turn.now)
        case .saveRecovered:
            state.queue.saveRecovered(key.param)
        case .fetch(let ticket, let order):
            let start = turn.isWriting ? earliestRestart(of: &key) : nil
            // A refresh by name brings what the origin has now, whatever another user fetches.
            let isLeased = shared != nil && order.target == .content && key.machine.flight?.isExplicit == false
            let scope = FetchScope(key.identified())
            let task =
                isLeased
                ? startLeasedFetch(ticket, order, key.param, scope, at: start) : startFetch(ticket, order, key.param, scope, at: start)
            key.fetches.append((ticket, task))
        case .cancel(let ticket):
            if let task = key.takeFetch(ticket) { effects.parcels.append(.cancellation(task)) }
        case .answer(let id, let answer):
            // Neither is legal, too: a caller who holds on to the truth has had his answer.
            if let caller = key.callers.remove(id) {
                effects.parcels.append(.answer(caller, answer))
            } else if let crowd = key.takeCrowd(id) {
                effects.parcels.append(.answerToAll(crowd, answer))
            }
        case .report(let kind):
            state.report(kind, key.param, &effects)
        }
    }
}

/// Everything of a store that changes.
struct EngineState {
    /// Keys about which something goes on; all others cost what the cacher keeps (C15).
    var live = LiveKeys()
    /// The one counter of epochs, tickets and order.
    var tickets = TicketCounter()
    var events: UInt64 = 0
    /// The calls of the cacher, and the callers of those that concern all keys.
    var queue = CacherQueue<BoxedKey>()
    var clearers: [CallerID: ClearReply] = [:]
    var listings: [CallerID: KeysReply] = [:]
    var triggers: [CallerID: Task<Void, Never>] = [:]
    var restingIndexes = RestingIndexes<BoxedKey>()
    var prefetching = PrefetchQueue<BoxedKey>()
    /// Ends with the store.
    var changes: ChangeObservation?

    /// Forgets an idle key. Keeps one with a failed save, and forgets the oldest of too many.
    mutating func retire(_ cell: Cell<LiveKey>, _ effects: inout Effects) {
        guard cell.value.machine.failedSave != nil else { return drop(&cell.value, &effects) }
        let live = live
        guard let dropped = queue.dropExcessFailure(where: { live[$0]?.value.isAtRest() ?? true }) else { return }
        report(.droppedUnsaved, dropped, &effects)
        if let cell = live[dropped] { drop(&cell.value, &effects) }
    }

    private mutating func drop(_ key: inout LiveKey, _ effects: inout Effects) {
        live.remove(key.param)
        effects.retired.append(key.param)
        restingIndexes.keep(key.machine.mergeIndex, of: key.param, key.machine.held?.record.details, &effects.leftovers)
        if let content = key.machine.held?.record.content { effects.discarded.append(content) }
        if let overlay = key.machine.overlay { effects.discarded.append(overlay) }
        key.machine.forgetFailures(into: &effects.leftovers)
        if let timer = key.timer { effects.parcels.append(.cancellation(timer.task)) }
    }

    mutating func report(_ kind: StoreEventKind, _ param: BoxedKey?, _ effects: inout Effects) {
        events += 1
        effects.parcels.append(.event(StoreEvent(number: events, param: param, kind: kind)))
    }
}
