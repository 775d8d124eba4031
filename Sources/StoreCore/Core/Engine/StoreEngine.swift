internal import Synchronization

/// Drives the machines of all live keys of a store under one lock, and carries out their actions.
///
/// Under the lock a machine decides, and callers are registered. Resuming, canceling, and user code happen outside it. The extensions:
/// `+Calling` callers, `+Observing` observers, `+Cacher` the cacher, `+Sharing` a shared cacher, `+FrontMemory` the memory in front of the
/// cacher, `+Fetching` fetches and time, `+Pages` pages, `+Live` streams, `+Prefetching` the prefetch queue, `+Commands` the commands of an
/// outbox, `+Whole` operations on all keys, `+Closing` the end of all work.
@usableFromInline
package final class StoreEngine: Sendable {
    typealias Key = LiveKey
    typealias Transition = KeyMachine<BoxedContent>.Transition

    /// The name that the app gives to the store, for the lanes of outboxes; empty for none.
    package let name: String
    let fetches: Fetches
    /// Connects to an origin that pushes; `nil` for any other origin.
    let follow: Follow?
    package let front: FrontMemory?
    let backing: (any EngineCacher)?
    let rules: KeyRules<BoxedContent>
    package let time: any TimeSource
    package let onEvent: (@Sendable (StoreEvent<BoxedKey>) -> Void)?

    /// The links to the stores of the entities that the content shows; empty for most stores.
    let links: [LinkRules]
    @usableFromInline let clocks: LinkClocks
    /// The number of the last change of an entity that the content may show.
    @inlinable var entityChanges: UInt64 { clocks.number }
    /// The scope of the store, which linked stores share.
    let scope: ObjectIdentifier?

    let state = EngineLock(EngineState())
    private let ids = Atomic<UInt64>(0)

    init(
        respond: @escaping Respond, follow: Follow? = nil, front: FrontMemory?, backing: (any EngineCacher)?,
        expiry: Expiry, policy: StorePolicy, time: any TimeSource, list: ListRules<BoxedContent>?, name: String = "",
        links: [LinkRules] = [], scope: CacheScope? = nil, onEvent: (@Sendable (StoreEvent<BoxedKey>) -> Void)?
    ) {
        self.name = name
        self.links = links
        self.scope = scope.map { ObjectIdentifier($0) }
        clocks = LinkClocks(links)
        fetches = Fetches(respond: respond, policy: policy, list: list, time: time)
        self.follow = follow
        self.front = front
        self.backing = backing
        let shared = backing?.isShared == true ? backing : nil
        self.time = time
        self.onEvent = onEvent
        rules = KeyRules(
            expiry: expiry, policy: policy, hasFront: front != nil, hasBacking: backing != nil, reports: onEvent != nil,
            list: list, position: shared.map { shared -> (@Sendable () -> Revision) in { shared.position } }, isLive: follow != nil)
        observeNotices()
        observeChanges()
        if !links.isEmpty { followEntities() }
    }

    private func observeNotices() {
        guard onEvent != nil, let backing else { return }
        backing.observeNotices { [weak self] notice in
            switch notice {
            case .fault(let operation, let param, let error): self?.report(.cacherFault(operation, error), param)
            case .evicted(let count): self?.report(.evicted(count: count), nil)
            }
        }
    }

    deinit {
        // Observers, callers, and saves retain the engine, so any task still running is unwanted.
        let tasks = state.withLock { state in
            Array(state.triggers.values) + state.prefetching.workers.values
                + state.live.values.map(\.value).flatMap { key in key.fetches.map(\.task) + (key.timer.map { [$0.task] } ?? []) }
        }
        // Before the streams end: a call that closes the scope waits for them, and then for these saves.
        if follow != nil || !links.isEmpty { endStreams() }
        settleLater()
        for task in tasks { task.cancel() }
    }

    func nextID() -> CallerID { ids.wrappingAdd(1, ordering: .relaxed).newValue }

    // MARK: Transitions

    /// Gives a fact to a key's machine, and carries out the resulting actions.
    ///
    /// - Parameter body: Passes the fact to the machine; runs under the lock.
    /// - Returns: The result of `body`; `nil` if the store is closed.
    @discardableResult
    func transition<Result: Sendable>(_ param: BoxedKey, _ body: @Sendable (inout Key, inout Transition) -> Result) -> Result? {
        withEffects { state, effects in liveKey(param, &state, &effects).map { take($0, &state, &effects, body) } }
    }

    /// Changes the state under the lock, and then delivers the effects of the change.
    @inline(__always)
    func withEffects<Result: Sendable>(_ body: (inout EngineState, inout Effects) -> Result) -> Result {
        var effects = Effects()
        let result = state.withLock { state in body(&state, &effects) }
        effects.deliver(onEvent)
        return result
    }

    /// Returns a live key. Creates it with the record that memory holds if it is not live. Returns `nil` if the store is closed.
    func liveKey(_ param: BoxedKey, _ state: inout EngineState, _ effects: inout Effects) -> Cell<Key>? {
        guard !state.isClosed else { return nil }
        let param = state.resolve(param)
        if let key = state.live[param] { return key }
        let key = state.live.insert(param, rules: rules)
        if !state.abandonedKeys.isEmpty { key.value.machine.origin.isAbandoned = state.abandonedKeys[param] == true }
        if let links = state.links, links.removals.isDone(param) { key.value.machine.origin.removal = links.removals.stamp(of: param) }
        readMemory(&key.value, &state, &effects)
        if !state.elementCommands.isEmpty { showElementCommands(in: &key.value, &state, &effects) }
        return key
    }

    /// Gives a fact to a key's machine if the key is live.
    func transitionIfLive(_ param: BoxedKey, _ body: @Sendable (inout Key, inout Transition) -> Void) {
        withEffects { state, effects in if let key = state.live[state.resolve(param)] { take(key, &state, &effects, body) } }
    }

    /// Runs one transition of one key under the lock.
    ///
    /// Bodies are `@Sendable`, so that the compiler can prove that no guarded state leaves through them.
    // Inlined like `play`, so that content captured by a body is not copied into a closure first.
    @discardableResult
    @inline(__always)
    func take<Result>(
        _ cell: Cell<Key>, _ state: inout EngineState, _ effects: inout Effects,
        _ body: @Sendable (inout Key, inout Transition) -> Result
    ) -> Result {
        let (result, ends) = play(&cell.value, &state, &effects, body)
        if ends { state.retire(cell, &effects) }
        if !state.queue.calls.isEmpty { startCalls(&state) }
        return result
    }

    /// - Returns: The result of `body`, and whether the key has no observers, callers, or work in progress.
    @inline(__always)
    func play<Result>(
        _ key: inout Key, _ state: inout EngineState, _ effects: inout Effects,
        _ body: @Sendable (inout Key, inout Transition) -> Result
    ) -> (Result, ends: Bool) {
        var transition = Transition(time: time, tickets: state.tickets)
        let turn = state.links == nil ? nil : beginLinked(&key, &transition)
        let result = body(&key, &transition)
        if let turn { endLinked(turn, &key, &transition, &state, &effects) }
        if !transition.actions.isEmpty { carryOut(&key, &transition, &state, &effects) }
        if transition.isWriting, !state.watches.isEmpty { state.note(.byUser, of: key.param) }
        state.tickets = transition.tickets
        effects.discarded.append(contentsOf: transition.discarded.takeAll())
        if transition.mirrors, !state.isClosed { mirror(&key, &state, &effects) }
        if transition.isPublished { key.publish(&effects.observers) }
        if !transition.leftovers.isEmpty { effects.leftovers += transition.leftovers }
        arm(&key, &effects)
        return (result, key.machine.isIdle)
    }

    private func carryOut(
        _ key: inout Key, _ transition: inout Transition, _ state: inout EngineState, _ effects: inout Effects
    ) {
        transition.actions.takeAll().consumeEach { carryOut($0, &key, &transition, &state, &effects) }
    }

    private func carryOut(
        _ action: consuming KeyAction<BoxedContent>, _ key: inout Key, _ transition: inout Transition, _ state: inout EngineState,
        _ effects: inout Effects
    ) {
        switch consume action {
        case .read(let ticket):
            // The context of the caller or observer that requests the read, for a fetch that may follow.
            if rules.inheritsContext, state.starters[key.param] == nil { state.starters[key.param] = FetchStarter() }
            state.queue.load(key.param, ticket)
        case .readEnded:
            state.starters[key.param] = nil
        case .save:
            state.queue.write(key.param)
        case .saveFailed:
            state.queue.saveFailed(key.param, at: transition.now)
        case .saveRecovered:
            state.queue.saveRecovered(key.param)
        case .fetch(let ticket, let order):
            let start = transition.isWriting ? earliestRestart(of: &key) : nil
            let work = work(of: order, ticket, for: &key, at: start)
            var starter: FetchStarter?
            if rules.inheritsContext {
                // A fetch that the store begins itself has no context.
                starter = state.starters.removeValue(forKey: key.param) ?? (transition.isOwn ? nil : FetchStarter())
            }
            // Detached: the task has the first caller's priority but not its task-locals, which would leak into the results of others.
            let task = starter?.run(work) ?? Task.detached(priority: Task.currentPriority, operation: work)
            key.fetches.append((ticket, task, transition.now))
        case .cancel(let ticket):
            if let task = key.takeFetch(ticket) { effects.signals.append(.cancellation(task)) }
        case .resume(let id, let result):
            if case .outdated = result { key.editRefused(id) }
            // A caller that waits for `.acceptedContent` has already received its result.
            if let shared = key.takeCallers(id) { effects.signals.append(.resume(shared, result)) }
        case .report(let kind):
            state.report(kind, key.param, &effects)
        }
    }
}
