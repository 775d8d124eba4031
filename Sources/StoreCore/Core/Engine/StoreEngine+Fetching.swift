// Fetches and timers: tasks of the store, which report back with their ticket.

extension StoreEngine {
    /// Returns the work of a fetch, which runs in a task of its own.
    func work(of order: FetchOrder, _ ticket: Ticket, for key: inout Key, at start: MonotonicInstant?) -> FetchStarter.Work {
        let scope = FetchScope(key.identified(), .one(fetches.running))
        if case .values(let last) = order { return stream(ticket, after: last, key.param, scope, at: start) }
        // An explicit refresh returns the origin's current content, even if another user is fetching.
        if rules.isShared, order.target == .content, key.machine.origin.flight?.forceRefresh == false {
            return leasedFetch(ticket, order, key.param, scope, at: start)
        }
        return fetch(ticket, order, key.param, scope, at: start)
    }

    private func fetch(
        _ ticket: Ticket, _ order: FetchOrder, _ param: BoxedKey, _ scope: FetchScope, at start: MonotonicInstant?
    ) -> FetchStarter.Work {
        // Weak, so that a store without references is released with its fetch. A fetch that runs to completion retains the store.
        let keeper = rules.policy.unwantedFetch == .complete ? self : nil
        let report = reporter(for: param)
        return { [weak self, fetches] in
            defer { scope.work.end() }
            let result = await scope.run { await fetches.run(order, param, report, at: start) }
            (keeper ?? self)?.fetchFinished(ticket, order, param, result, nil)
        }
    }

    func fetchFinished(
        _ ticket: Ticket, _ order: FetchOrder, _ param: BoxedKey, _ result: Result<Fetched<BoxedContent>, any Error>, _ lease: Lease?
    ) {
        let isLive = withEffects { state, effects -> Bool in
            let param = state.resolve(param)
            if case .success = result, order.target == .content, !state.watches.isEmpty {
                state.note(.fetched, of: param) { $0.start < ticket.number }
            }
            guard let key = state.live[param] else { return false }
            take(key, &state, &effects) { key, transition in
                transition.isOwn = true
                _ = key.takeFetch(ticket)
                switch order {
                case .content, .values:
                    let isAccepted = lease != nil && key.machine.origin.flight?.ticket == ticket
                    key.machine.fetchFinished(ticket, result, &transition)
                    if let lease { self.settle(lease, of: &key, result, isAccepted: isAccepted) }
                case .page(let direction, key: _):
                    if key.machine.willExtend(direction, ticket, result) { lendContent(of: &key, &transition) }
                    key.machine.pageFinished(direction, ticket, result, &transition)
                }
            }
            return true
        }
        // The key has been forgotten, so its machine cannot report the dropped result.
        guard !isLive else { return }
        lease?.end(.abandoned)
        report(.droppedAsOutdated(order.target), param)
    }

    /// Creates the reporting closure of a fetch; `nil` without an event hook.
    func reporter(for param: BoxedKey) -> (@Sendable (StoreEventKind) -> Void)? {
        guard onEvent != nil else { return nil }
        return { [weak self] kind in self?.report(kind, param) }
    }

    func report(_ kind: StoreEventKind, _ param: BoxedKey?) {
        guard onEvent != nil else { return }
        withEffects { state, effects in state.report(kind, param, &effects) }
    }

    // MARK: Time

    func arm(_ key: inout Key, _ effects: inout Effects) {
        guard let wake = key.machine.nextWake else { return }
        // A timer that fires early only checks again, so a deadline that keeps moving later needs no new timer.
        if let timer = key.timer {
            if timer.deadline <= wake { return }
            effects.signals.append(.cancellation(timer.task))
        }
        let id = nextID()
        let (param, time) = (key.param, time)
        let task = Task.detached { [weak self] in
            // `sleep` throws only if it is canceled: then a newer timer runs, or none is needed.
            guard (try? await time.sleep(until: wake)) != nil else { return }
            self?.timerFired(id, param)
        }
        key.timer = (wake, id, task)
    }

    private func timerFired(_ id: CallerID, _ param: BoxedKey) {
        transitionIfLive(param) { key, transition in
            guard key.timer?.id == id else { return }
            key.timer = nil
            key.machine.timerFired(&transition)
        }
    }
}

/// A task with the task-local values of its creator, which waits for the fetch that it will run (C22).
///
/// Task-local values can only be inherited at the creation of a task. A fetch that begins after a read of the cache therefore gets the task
/// that was created when its first caller arrived. A starter that is released unused ends its task.
final class FetchStarter: Sendable {
    typealias Work = @concurrent @Sendable () async -> Void

    /// The fetch to run; `nil` if the starter was released unused.
    private let work = SharedResult<Work?>()
    private let task: Task<Void, Never>

    /// Creates a waiting task, with the priority and the task-local values of the current one.
    init() {
        // The time limit of a fetch that causes this one is not the limit of this one.
        task = Fetches.$limited.withValue(nil) { [work] in
            // Ignores cancellation while it waits, because the work reports the end of its fetch even if it is canceled.
            Task<Void, Never> { await work.value(onCancel: {})?() }
        }
    }

    deinit { work.put(nil) }

    func run(_ work: @escaping Work) -> Task<Void, Never> {
        self.work.put(work)
        return task
    }
}
