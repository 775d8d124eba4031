/// Who waits for which pass, and which pass runs: the whole of it, without a lock, a task or a clock.
///
/// ```text
///            callerArrived            callerArrived: queued for the pass after this one
///     idle ───────────────▶ running ◀────┐
///      ▲                     │   │       │ passEnded, and somebody wants another pass
///      │      passEnded      │   │ cancelled, or nobody wants it any more
///      └─────────────────────┘   ▼       │
///      └──────────────────── cancelling ─┘
/// ```
struct SyncLifecycle: Hashable, Sendable {
    typealias Caller = Int

    /// What runs.
    enum Phase: Hashable, Sendable {
        case idle, running, cancelling
    }

    /// A pass and those who get its outcome.
    struct Pass: Hashable, Sendable {
        var number: Int
        /// What each of them lets pass; whoever leaves before the pass begins takes it with him.
        var allowances: [Caller: SyncOverrides] = [:]

        var callers: Set<Caller> { Set(allowances.keys) }
        /// What the safety gate lets pass: what any of the callers has said.
        var overrides: SyncOverrides { allowances.values.reduce(into: []) { $0.formUnion($1) } }
    }

    private(set) var phase = Phase.idle
    /// The pass that runs; `nil` when idle.
    private(set) var current: Pass?
    /// The pass that begins after it.
    private(set) var next: Pass?
    private(set) var observerCount = 0
    private var lastNumber = 0

    /// What is to be done after an event, in this order.
    struct Actions: Hashable, Sendable {
        /// Callers who are told that the run was cancelled.
        var cancelled: Set<Caller> = []
        /// Callers who get the outcome of the pass that has just ended.
        var answered: Set<Caller> = []
        /// The task of the pass that runs is to be cancelled.
        var cancelsWork = false
        /// The pass that is to be started.
        var starts: Pass?
    }

    // MARK: Events

    /// Somebody calls `sync()`.
    mutating func callerArrived(_ caller: Caller, overrides: SyncOverrides) -> Actions {
        var actions = Actions()
        // A pass that has begun may have read its list before this call: the caller is owed one that begins after it.
        var pass = next ?? makePass()
        pass.allowances[caller] = overrides
        next = pass
        startIfIdle(&actions)
        return actions
    }

    /// A caller's own task was cancelled. Legal after his answer was decided: then he is no longer known, and nothing happens.
    mutating func callerLeft(_ caller: Caller) -> Actions {
        if current?.allowances.removeValue(forKey: caller) == nil { next?.allowances[caller] = nil }
        return settle()
    }

    /// Somebody begins to observe.
    mutating func observerJoined() {
        observerCount += 1
    }

    /// Somebody no longer observes.
    mutating func observerLeft() -> Actions {
        observerCount -= 1
        return settle()
    }

    /// Somebody calls `cancel()`.
    mutating func cancelRequested() -> Actions {
        var actions = Actions()
        actions.cancelled = (current?.callers ?? []).union(next?.callers ?? [])
        current?.allowances = [:]
        next = nil
        cancelWork(&actions)
        return actions
    }

    /// The pass that ran has ended, with all calls of the processor.
    mutating func passEnded() -> Actions {
        var actions = Actions()
        actions.answered = current?.callers ?? []
        current = nil
        phase = .idle
        startIfIdle(&actions)
        return actions
    }

    // MARK: Rules

    private mutating func makePass() -> Pass {
        lastNumber += 1
        return Pass(number: lastNumber)
    }

    private mutating func startIfIdle(_ actions: inout Actions) {
        guard phase == .idle, let pass = next else { return }
        next = nil
        current = pass
        phase = .running
        actions.starts = pass
    }

    private mutating func cancelWork(_ actions: inout Actions) {
        guard phase == .running else { return }
        phase = .cancelling
        actions.cancelsWork = true
    }

    /// Somebody has left: what nobody wants is not done.
    private mutating func settle() -> Actions {
        var actions = Actions()
        guard observerCount == 0 else { return actions }
        if next?.allowances.isEmpty == true { next = nil }
        if next == nil, current?.allowances.isEmpty == true { cancelWork(&actions) }
        return actions
    }
}
