internal import StoreCore

/// The callers, observers and running pass of a synchronizer behind one lock; independent of the work of a pass.
final class SyncHub: Sendable {
    typealias Outcome = Result<SyncReport, SyncError>
    /// Publishes the progress of a pass, with the number of the publication.
    private typealias Actions = SyncLifecycle.Actions
    typealias Publish = @Sendable (_ report: SyncReport, _ serial: Int) -> Void

    private struct State: Sendable {
        var lifecycle = SyncLifecycle()
        var lastID = 0
        /// The outcomes of calls that have not returned yet.
        var outcomes: [Int: Outcome] = [:]
        var observers: Set<Int> = []
        /// The callers with a new outcome, and zero for the observers after a new state.
        var changes = ChangedParts.nothing
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

        mutating func end(_ callers: Set<Int>, _ outcome: Outcome) {
            for id in callers {
                outcomes[id] = outcome
                changes.insert(id)
            }
        }

        mutating func show(_ state: LoadingState<SyncReport>) {
            shown = state
            version += 1
            changes.insert(SyncHub.observers)
        }
    }

    /// The part of the state that observers wait for; that of a caller is its identifier, which is positive.
    private static let observers = 0

    /// Guards the lifecycle, the callers, the observers and the shown state. Under it: decide and register. Outside it: cancel.
    private let state = WatchedState(State()) { $0.changes.take() }
    private let run: @Sendable (SyncLifecycle.Pass, @escaping Publish) async -> Outcome

    init(run: @escaping @Sendable (SyncLifecycle.Pass, @escaping Publish) async -> Outcome) {
        self.run = run
    }

    var isSyncing: Bool { state.read { $0.lifecycle.phase != .idle } }

    func snapshot() -> SyncSnapshot {
        state.read { state in
            SyncSnapshot(
                isSyncing: state.lifecycle.phase != .idle, callers: state.lifecycle.callerCount + state.outcomes.count,
                observers: state.observers.count, report: state.shown?.content, error: state.shown?.error)
        }
    }

    // MARK: Callers

    func sync(_ overrides: SyncOverrides, isolation: isolated (any Actor)? = #isolation) async throws -> SyncReport {
        try Task.checkCancellation()
        let marks = PassMark.all
        let id: Int? = act { state in
            // The run waits for the processor's call that made this call, so this call must not wait for the run.
            if let current = state.lifecycle.current, marks.contains(PassMark(hub: ObjectIdentifier(self), pass: current.number)) {
                return (nil, Actions())
            }
            let id = state.makeID()
            return (id, state.lifecycle.callerArrived(id, overrides: overrides))
        }
        guard let id else {
            throw SyncError(
                .calledFromWithin,
                "cannot synchronize: sync() was called inside a call of the processor, for which the run waits; call it after the run, "
                    + "or in a detached task that the processor does not wait for")
        }
        // Only the cancellation of the task ends the wait without an outcome.
        _ = try? await state.wait(for: id) { $0.outcomes[id] }
        let outcome = act { state in
            let outcome = state.outcomes.removeValue(forKey: id)
            return (outcome, outcome == nil ? state.lifecycle.callerLeft(id) : Actions())
        }
        guard let outcome else { throw CancellationError() }
        return try outcome.get()
    }

    func cancel() {
        act { ((), $0.lifecycle.cancelRequested()) }
    }

    // MARK: Passes

    /// Runs a closure under the lock, and carries out its actions; cancels a task outside the lock.
    ///
    /// - Parameter outcome: The outcome of the pass that has ended, for its callers.
    @discardableResult
    private func act<Value: Sendable>(outcome: Outcome? = nil, _ body: (_ state: inout State) -> (Value, Actions)) -> Value {
        let (value, cancelled) = state.update { state -> (Value, Task<Void, Never>?) in
            let (value, actions) = body(&state)
            state.end(actions.cancelled, .failure(.cancelled))
            if let outcome { state.end(actions.answered, outcome) }
            let cancelled = actions.cancelsWork ? state.task : nil
            if let pass = actions.starts { start(pass, &state) }
            return (value, cancelled)
        }
        cancelled?.cancel()
        return value
    }

    private func start(_ pass: SyncLifecycle.Pass, _ state: inout State) {
        state.serial = 0
        state.show(.loading(content: SyncReport(pass: pass.number)))
        let marks = PassMark.all.union([PassMark(hub: ObjectIdentifier(self), pass: pass.number)])
        // Detached, because callers share the pass: it inherits no caller's task-local values, and no caller's cancellation.
        state.task = Task.detached(priority: Task.currentPriority) { [self] in
            let outcome = await PassMark.$all.withValue(marks) { await run(pass) { self.show($0, $1) } }
            ended(outcome)
        }
    }

    private func ended(_ outcome: Outcome) {
        act(outcome: outcome) { state in
            switch outcome {
            case .success(let report): state.show(.completed(report))
            case .failure(let error): state.show(.error(rawError: error, content: error.report))
            }
            state.task = nil
            return ((), state.lifecycle.passEnded())
        }
    }

    private func show(_ report: SyncReport, _ serial: Int) {
        state.update { state in
            // The publication arrived late: a newer one was faster, or the pass has ended.
            guard state.lifecycle.current?.number == report.pass, serial > state.serial else { return }
            state.serial = serial
            state.show(.loading(content: report))
        }
    }

    // MARK: Observers

    struct Step: Sendable {
        var state: LoadingState<SyncReport>
        var version: UInt64
    }

    func join() -> Int {
        state.update { state in
            let id = state.makeID()
            state.observers.insert(id)
            state.lifecycle.observerJoined()
            return id
        }
    }

    func leaveObserving(_ id: Int) {
        act { state in ((), state.observers.remove(id) == nil ? Actions() : state.lifecycle.observerLeft()) }
    }

    /// Waits for a state that the observer has not seen; returns `nil` once the task is canceled, and the observer leaves.
    func next(_ id: Int, seen: UInt64, isolation: isolated (any Actor)? = #isolation) async -> Step? {
        // The wait fails only if the task is canceled.
        let step = try? await state.wait(for: Self.observers) { state -> Step?? in
            guard state.observers.contains(id) else { return .some(nil) }
            guard state.version > seen, let shown = state.shown else { return nil }
            return Step(state: shown, version: state.version)
        }
        if step == nil { leaveObserving(id) }
        return step ?? nil
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
