#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif
internal import Synchronization

/// All mutable state of a store.
struct EngineState {
    /// The live keys; every other key costs only what its cacher keeps (C15).
    var live = LiveKeys()
    /// The one counter of epochs, tickets, and revisions.
    var tickets = TicketCounter()
    var events: UInt64 = 0
    /// The calls of the cacher, and the results of the calls that concern all keys.
    var queue = CacherQueue<BoxedKey>()
    /// The result of the removal of all records that runs.
    var clearing: ClearingResult?
    /// The result of a removal that has not started.
    var nextClearing: ClearingResult?
    var listings: [CallerID: ListingResult] = [:]
    /// The callers inside calls of the cacher: the awaited key, and the call with its running state.
    var insideCallers: [CallerID: (param: BoxedKey, inside: StoreEngine.CacherCall)] = [:]
    var triggers: [CallerID: Task<Void, Never>] = [:]
    var idleIndexes = IdleIndexes<BoxedKey>()
    var prefetching = PrefetchQueue()
    /// The contexts of the callers that wait for a read of the cache, if fetches inherit them.
    var starters: [BoxedKey: FetchStarter] = [:]
    /// The commands that an outbox still knows; `nil` before an outbox is registered.
    var knownCommands: Set<UUID>?
    /// The commands that change one element in every list.
    var elementCommands: [UUID: ElementCommand] = [:]
    /// The keys that have replaced temporary ones.
    var replacedKeys = TemporaryKeys<BoxedKey, BoxedKey>()
    /// The temporary keys of entities that are not created, because the creation has failed or was taken back; `false` for those
    /// that have another creation now.
    var abandonedKeys = TemporaryKeys<BoxedKey, Bool>()
    /// The observation of a shared cacher, which ends with the store.
    var changes: ChangeObservation?
    /// Whether the store is closed: only the saves of content accepted before still run.
    var isClosed = false
    /// Whether the cacher was emptied after the end.
    var isEmptied = false
    /// The calls of `close()` that wait until the cacher is idle.
    var idleWaiters: [SharedResult<Bool>] = []
    /// The keys that users have changed since each watch began.
    var watches: [CallerID: ChangedKeys] = [:]
    /// The state of linked stores; `nil` for a store that neither has links nor is the target of one.
    var links: LinkState?

    /// Returns the key that has replaced a temporary key, or any other key unchanged.
    func resolve(_ param: BoxedKey) -> BoxedKey { replacedKeys.isEmpty ? param : replacedKeys[param] ?? param }

    /// The live key with a parameter, if there is one; all live keys for `nil`.
    func liveKeys(_ param: BoxedKey?) -> [Cell<LiveKey>] { param.map { [live[resolve($0)]].compactMap { $0 } } ?? live.values }

    mutating func replaceKey(_ temporary: BoxedKey, with param: BoxedKey) {
        replacedKeys.replace(temporary, with: param)
        links?.replaced(temporary, by: param)
    }

    /// Forgets an idle key. A key with a failed save stays; if there are too many of these, the oldest is forgotten.
    mutating func retire(_ cell: Cell<LiveKey>, _ effects: inout Effects) {
        guard cell.value.machine.saving.failure != nil else { return drop(&cell.value, &effects) }
        let live = live
        guard let dropped = queue.dropExcessFailure(where: { live[$0]?.value.isIdle() ?? true }) else { return }
        report(.droppedUnsaved, dropped, &effects)
        if let cell = live[dropped] { drop(&cell.value, &effects) }
    }

    private mutating func drop(_ key: inout LiveKey, _ effects: inout Effects) {
        live.remove(key.param)
        effects.retired.append(key.param)
        idleIndexes.keep(key.machine.sides.mergeIndex, of: key.param, key.machine.book.held?.record.details, &effects.leftovers)
        if let content = key.machine.book.held?.record.content { effects.discarded.append(content) }
        if let overlay = key.machine.book.overlay { effects.discarded.append(overlay) }
        key.machine.forgetFailures(into: &effects.leftovers)
        if let timer = key.timer { effects.signals.append(.cancellation(timer.task)) }
    }

    mutating func report(_ kind: StoreEventKind, _ param: BoxedKey?, _ effects: inout Effects) {
        events += 1
        effects.signals.append(.event(StoreEvent(number: events, param: param, kind: kind)))
    }
}

/// The lock of an engine, which names the mistake if user code that runs under the lock calls the same store.
///
/// An engine runs small pieces of user code under its lock: patches, changes of a stream's value, identities of elements, decisions on
/// retries, and the hashing, comparison and release of keys. A call of the store from there could only wait for itself.
struct EngineLock: ~Copyable {
    private let lock: Lock<EngineState>
    /// The thread that holds the lock; zero if none does. Only the holder writes it, so a thread never reads its own number by mistake.
    private let holder = Atomic<UInt>(0)

    init(_ state: sending EngineState) {
        lock = Lock(state)
    }

    /// Calls a closure with exclusive access to the state. The program stops with a message if the calling thread holds the lock already.
    borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending EngineState) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        let thread = currentThread()
        precondition(
            holder.load(ordering: .relaxed) != thread,
            "a closure that a store runs under its lock has called the same store: a patch of mutate or of a command, a change of a live "
                + "value, an element's identity, a content's cost and RetryPolicy.shouldRetry may only use their arguments; call the store "
                + "in a new Task")
        return try lock.withLock { state throws(Failure) in
            holder.store(thread, ordering: .relaxed)
            defer { holder.store(0, ordering: .relaxed) }
            return try body(&state)
        }
    }
}

/// The effects of a transition that wait until the lock is released, because each of them may run user code.
struct Effects: Sendable {
    enum Signal {
        case resume(SharedResult<CallerResult<BoxedContent>>, CallerResult<BoxedContent>)
        case cancellation(Task<Void, Never>)
        // Indirect, because only stores with an event hook send events.
        indirect case event(StoreEvent<BoxedKey>)
    }

    /// The suspensions of observers that have a state to take. Most transitions have only these and one discarded content.
    var observers = Few<Suspension>.none
    var signals = Few<Signal>.none
    /// Content that is no longer needed. Its release may run a `deinit` of user code.
    var discarded = Few<BoxedContent>.none
    /// Forgotten keys, which are user objects as well.
    var retired = Few<BoxedKey>.none
    /// Other user objects that are no longer needed: patches, errors, and records.
    var leftovers: [any Sendable] = []
    /// The changes of entities that other stores show.
    var marks = Few<LinkMark>.none
    /// The effects of transitions in the stores of entities.
    var linked: [(engine: StoreEngine, effects: Effects)] = []

    var isEmpty: Bool {
        observers.isEmpty && signals.isEmpty && discarded.isEmpty && retired.isEmpty && leftovers.isEmpty && marks.isEmpty && linked.isEmpty
    }

    mutating func deliver(_ onEvent: (@Sendable (StoreEvent<BoxedKey>) -> Void)?) {
        if !marks.isEmpty || !linked.isEmpty { return deliverLinked(onEvent) }
        // Releases first, because a resumed caller may request the next page of this list. The list grows in place only if memory holds the
        // only reference to it.
        if !retired.isEmpty { discarded = .none }
        guard !signals.isEmpty else { return observers.forEach { $0.resume() } }
        signals.forEach { signal in
            switch signal {
            case .resume(let shared, let result): shared.put(result)
            case .cancellation, .event: break
            }
        }
        observers.forEach { $0.resume() }
        signals.forEach { if case .cancellation(let task) = $0 { task.cancel() } }
        if let onEvent { signals.forEach { if case .event(let event) = $0 { onEvent(event) } } }
    }
}
