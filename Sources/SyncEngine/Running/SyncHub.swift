internal import StoreCore

/// The callers, observers and running pass of a synchronizer behind one lock; independent of the work of a pass.
final class SyncHub: Sendable {
    typealias Outcome = Result<SyncReport, SyncError>

    private enum Ending: Sendable {
        case outcome(Outcome)
        /// The caller's own task was canceled.
        case left
    }

    private struct Caller {
        var waiting: CheckedContinuation<Void, Never>?
        var ending: Ending?
    }

    private struct State {
        var lifecycle = SyncLifecycle()
        var lastID = 0
        var callers: [Int: Caller] = [:]
        /// The observers, each with its continuation while it waits.
        var observers: [Int: CheckedContinuation<Void, Never>?] = [:]
        var task: Task<Void, Never>?
        /// The current state for observers; `nil` before the first pass.
        var shown: LoadingState<SyncReport>?
        var version: UInt64 = 0
        /// The serial number of the running pass's last publication; older ones that arrive late are dropped.
        var serial = 0

        mutating func makeID() -> Int {
            lastID += 1
            return lastID
        }

        mutating func show(_ state: LoadingState<SyncReport>, _ effects: inout Effects) {
            shown = state
            version += 1
            for (id, waiting) in observers {
                guard let waiting else { continue }
                observers[id] = .some(nil)
                effects.woken.append(waiting)
            }
        }
    }

    /// Effects that are performed outside the lock.
    private struct Effects {
        var woken: [CheckedContinuation<Void, Never>] = []
        var cancelled: Task<Void, Never>?

        func deliver() {
            cancelled?.cancel()
            for waiting in woken { waiting.resume() }
        }
    }

    /// Guards the lifecycle, the callers, the observers and the shown state. Under it: decide and register. Outside it: resume and cancel.
    private let state = Lock(State())
    private let makeBoard: @Sendable (Int, @escaping @Sendable (SyncReport, Int) -> Void) -> ProgressBoard
    private let run: @Sendable (SyncLifecycle.Pass, ProgressBoard) async -> Outcome

    init(
        makeBoard: @escaping @Sendable (Int, @escaping @Sendable (SyncReport, Int) -> Void) -> ProgressBoard,
        run: @escaping @Sendable (SyncLifecycle.Pass, ProgressBoard) async -> Outcome
    ) {
        self.makeBoard = makeBoard
        self.run = run
    }

    var isSyncing: Bool { state.withLock { $0.lifecycle.phase != .idle } }

    /// The number of calls of `sync()` that have not returned.
    var callerCount: Int { state.withLock { $0.callers.count } }

    /// The number of observers.
    var observerCount: Int { state.withLock { $0.observers.count } }

    // MARK: Callers

    func sync(_ overrides: SyncOverrides, isolation: isolated (any Actor)? = #isolation) async throws -> SyncReport {
        try Task.checkCancellation()
        let marks = PassMark.all
        let id: Int? = act { state, effects in
            // The run waits for the processor's call that made this call, so this call must not wait for the run.
            if let current = state.lifecycle.current, marks.contains(PassMark(hub: ObjectIdentifier(self), pass: current.number)) {
                return nil
            }
            let id = state.makeID()
            state.callers[id] = Caller()
            apply(state.lifecycle.callerArrived(id, overrides: overrides), outcome: nil, &state, &effects)
            return id
        }
        guard let id else {
            throw SyncError(
                .calledFromWithin,
                "cannot synchronize: sync() was called inside a call of the processor, for which the run waits; call it after the run, "
                    + "or in a detached task that the processor does not wait for")
        }
        await withTaskCancellationHandler {
            // Captures the isolation. Otherwise the closure would run on no actor, which costs two hops for every call from an actor.
            _ = isolation
            await withCheckedContinuation { (waiting: CheckedContinuation<Void, Never>) in
                let mustWait = state.withLock { state in
                    guard state.callers[id]?.ending == nil else { return false }
                    state.callers[id]?.waiting = waiting
                    return true
                }
                if !mustWait { waiting.resume() }
            }
        } onCancel: {
            leave(id)
        }
        let ending = state.withLock { state in state.callers.removeValue(forKey: id)?.ending }
        switch ending {
        case .outcome(let outcome): return try outcome.get()
        case .left, nil: throw CancellationError()
        }
    }

    private func leave(_ id: Int) {
        act { state, effects in
            // The caller's result may have been decided just before.
            guard state.callers[id]?.ending == nil else { return }
            end(id, .left, &state, &effects)
            apply(state.lifecycle.callerLeft(id), outcome: nil, &state, &effects)
        }
    }

    func cancel() {
        act { state, effects in apply(state.lifecycle.cancelRequested(), outcome: nil, &state, &effects) }
    }

    private func end(_ id: Int, _ ending: Ending, _ state: inout State, _ effects: inout Effects) {
        state.callers[id]?.ending = ending
        if let waiting = state.callers[id]?.waiting {
            state.callers[id]?.waiting = nil
            effects.woken.append(waiting)
        }
    }

    // MARK: Passes

    /// Runs a closure under the lock, and performs its effects outside.
    private func act<Value: Sendable>(_ body: (inout State, inout Effects) -> Value) -> Value {
        let (value, effects) = state.withLock { state in
            var effects = Effects()
            let value = body(&state, &effects)
            return (value, effects)
        }
        effects.deliver()
        return value
    }

    private func apply(_ actions: SyncLifecycle.Actions, outcome: Outcome?, _ state: inout State, _ effects: inout Effects) {
        for id in actions.cancelled { end(id, .outcome(.failure(.cancelled)), &state, &effects) }
        if let outcome {
            for id in actions.answered { end(id, .outcome(outcome), &state, &effects) }
        }
        if actions.cancelsWork { effects.cancelled = state.task }
        if let pass = actions.starts { start(pass, &state, &effects) }
    }

    private func start(_ pass: SyncLifecycle.Pass, _ state: inout State, _ effects: inout Effects) {
        state.serial = 0
        state.show(.loading(content: SyncReport(pass: pass.number)), &effects)
        let board = makeBoard(pass.number) { [self] report, serial in show(report, serial) }
        let marks = PassMark.all.union([PassMark(hub: ObjectIdentifier(self), pass: pass.number)])
        // Detached, because callers share the pass: it inherits no caller's task-local values, and no caller's cancellation.
        state.task = Task.detached(priority: Task.currentPriority) { [self] in
            let outcome = await PassMark.$all.withValue(marks) { await run(pass, board) }
            ended(outcome)
        }
    }

    private func ended(_ outcome: Outcome) {
        act { state, effects in
            switch outcome {
            case .success(let report): state.show(.completed(report), &effects)
            case .failure(let error): state.show(.error(rawError: error, content: error.report), &effects)
            }
            state.task = nil
            apply(state.lifecycle.passEnded(), outcome: outcome, &state, &effects)
        }
    }

    private func show(_ report: SyncReport, _ serial: Int) {
        act { state, effects in
            // The publication arrived late: a newer one was faster, or the pass has ended.
            guard state.lifecycle.current?.number == report.pass, serial > state.serial else { return }
            state.serial = serial
            state.show(.loading(content: report), &effects)
        }
    }

    // MARK: Observers

    /// A state delivered to an observer, with its version.
    struct Step: Sendable {
        var state: LoadingState<SyncReport>
        var version: UInt64
    }

    func join() -> Int {
        state.withLock { state in
            let id = state.makeID()
            state.observers[id] = .some(nil)
            state.lifecycle.observerJoined()
            return id
        }
    }

    func leaveObserving(_ id: Int) {
        act { state, effects in
            guard let waiting = state.observers.removeValue(forKey: id) else { return }
            if let waiting { effects.woken.append(waiting) }
            apply(state.lifecycle.observerLeft(), outcome: nil, &state, &effects)
        }
    }

    /// Waits for a state that the observer has not seen; returns `nil` after the observer has left.
    func next(_ id: Int, seen: UInt64, isolation: isolated (any Actor)? = #isolation) async -> Step? {
        while true {
            await withTaskCancellationHandler {
                _ = isolation
                await withCheckedContinuation { (waiting: CheckedContinuation<Void, Never>) in
                    let mustWait = state.withLock { state in
                        guard state.observers[id] != nil, state.version <= seen else { return false }
                        state.observers[id] = .some(waiting)
                        return true
                    }
                    if !mustWait { waiting.resume() }
                }
            } onCancel: {
                leaveObserving(id)
            }
            let found: Step?? = state.withLock { state in
                guard state.observers[id] != nil else { return .some(nil) }
                guard state.version > seen, let shown = state.shown else { return nil }
                return Step(state: shown, version: state.version)
            }
            if let found { return found }
        }
    }
}

/// An observer, which leaves when its iterator is released.
final class SyncObserver: LoadingStateSource {
    private let hub: SyncHub
    private var id: Int?
    private var seen: UInt64 = 0

    init(_ hub: SyncHub) {
        self.hub = hub
    }

    deinit {
        if let id { hub.leaveObserving(id) }
    }

    func next() async -> LoadingState<SyncReport>? {
        let id = self.id ?? hub.join()
        self.id = id
        guard let step = await hub.next(id, seen: seen) else { return nil }
        seen = step.version
        return step.state
    }
}

/// A mark of tasks that work for a pass.
struct PassMark: Hashable, Sendable {
    /// The marks of the passes for which the current task works.
    @TaskLocal static var all: Set<PassMark> = []

    var hub: ObjectIdentifier
    var pass: Int
}

extension SyncError {
    /// The error that callers get after `cancel()`.
    static let cancelled = SyncError(.cancelled, "cannot finish the run: cancel() was called; call sync() to resume")
}
