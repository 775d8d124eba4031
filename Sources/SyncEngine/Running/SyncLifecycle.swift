/// The machine of callers and passes, without a lock, task or clock.
///
/// ```text
///            callerArrived            callerArrived: queued for the next pass
///     idle ───────────────▶ running ◀────┐
///      ▲                     │   │       │ passEnded, and another pass has callers
///      │      passEnded      │   │ cancelRequested, or nothing waits or observes
///      └─────────────────────┘   ▼       │
///      └──────────────────── cancelling ─┘
/// ```
struct SyncLifecycle: Hashable, Sendable {
    typealias Caller = Int

    enum Phase: Hashable, Sendable {
        case idle, running, cancelling
    }

    /// A pass and the callers that get its outcome.
    struct Pass: Hashable, Sendable {
        var number: Int
        /// The overrides of each caller; a caller that leaves before the pass begins takes its overrides with it.
        var allowances: [Caller: SyncOverrides] = [:]

        var callers: Set<Caller> { Set(allowances.keys) }
        var overrides: SyncOverrides { allowances.values.reduce(into: []) { $0.formUnion($1) } }
    }

    private(set) var phase = Phase.idle
    /// The running pass; `nil` when idle.
    private(set) var current: Pass?
    /// The pass that begins when the running one has ended; `nil` if none was requested.
    private(set) var next: Pass?
    private(set) var observerCount = 0
    /// The number of callers without an outcome.
    var callerCount: Int { (current?.allowances.count ?? 0) + (next?.allowances.count ?? 0) }
    private var lastNumber = 0

    /// The effects of an event, in the order of their execution.
    struct Actions: Hashable, Sendable {
        /// The callers that get the error of a canceled run.
        var cancelled: Set<Caller> = []
        /// The callers that get the outcome of the pass that has just ended.
        var answered: Set<Caller> = []
        /// Whether the task of the running pass is canceled.
        var cancelsWork = false
        var starts: Pass?
    }

    // MARK: Events

    /// Adds a caller of `sync()` to the next pass, and starts the pass if none runs.
    mutating func callerArrived(_ caller: Caller, overrides: SyncOverrides) -> Actions {
        // A running pass may have read its list before this call, so the caller needs a pass that begins later.
        var pass = next ?? makePass()
        pass.allowances[caller] = overrides
        next = pass
        return Actions(starts: startIfIdle())
    }

    /// Removes a caller after the cancellation of its task. Does nothing if the caller already has its result.
    mutating func callerLeft(_ caller: Caller) -> Actions {
        if current?.allowances.removeValue(forKey: caller) == nil { next?.allowances[caller] = nil }
        return settle()
    }

    mutating func observerJoined() {
        observerCount += 1
    }

    /// Removes an observer; cancels the run if no caller and no other observer is left.
    mutating func observerLeft() -> Actions {
        observerCount -= 1
        return settle()
    }

    mutating func cancelRequested() -> Actions {
        let cancelled = (current?.callers ?? []).union(next?.callers ?? [])
        current?.allowances = [:]
        next = nil
        return Actions(cancelled: cancelled, cancelsWork: cancelWork())
    }

    /// Ends the running pass, after all calls of the processor have returned.
    mutating func passEnded() -> Actions {
        let answered = current?.callers ?? []
        current = nil
        phase = .idle
        return Actions(answered: answered, starts: startIfIdle())
    }

    // MARK: Rules

    private mutating func makePass() -> Pass {
        lastNumber += 1
        return Pass(number: lastNumber)
    }

    private mutating func startIfIdle() -> Pass? {
        guard phase == .idle, let pass = next else { return nil }
        next = nil
        current = pass
        phase = .running
        return pass
    }

    private mutating func cancelWork() -> Bool {
        guard phase == .running else { return false }
        phase = .cancelling
        return true
    }

    /// Cancels passes that have neither callers nor observers.
    private mutating func settle() -> Actions {
        guard observerCount == 0 else { return Actions() }
        if next?.allowances.isEmpty == true { next = nil }
        let isUnwanted = next == nil && current?.allowances.isEmpty == true
        return Actions(cancelsWork: isUnwanted ? cancelWork() : false)
    }
}
