// Fetches and timers: tasks of the store's own, which report back with their ticket.

extension StoreEngine {
    func startFetch(
        _ ticket: Ticket, _ order: FetchOrder, _ param: BoxedKey, _ scope: FetchScope, at start: MonotonicInstant?
    ) -> Task<Void, Never> {
        // Weak, so that a store that nobody holds is freed with its fetch; one that runs to completion holds the store itself.
        let keeper = rules.policy.unwantedFetch == .complete ? self : nil
        let report = reporter(for: param)
        // Detached: the first caller's priority, but not his task-locals, which would be an accident for everybody else.
        return Task.detached(priority: Task.currentPriority) { [weak self, fetches] in
            let result = await scope.run { await fetches.run(order, param, report, at: start) }
            (keeper ?? self)?.fetchFinished(ticket, order, param, result, nil)
        }
    }

    func fetchFinished(
        _ ticket: Ticket, _ order: FetchOrder, _ param: BoxedKey, _ result: Result<Fetched<BoxedContent>, any Error>, _ lease: Lease?
    ) {
        let isLive = turnIfLive(param) { key, turn in
            _ = key.takeFetch(ticket)
            switch order {
            case .content:
                let isAccepted = lease != nil && key.machine.flight?.ticket == ticket
                key.machine.fetchFinished(ticket, result, &turn)
                if let lease { self.settle(lease, of: &key, result, isAccepted: isAccepted) }
            case .page(let direction, key: _):
                lendList(to: &key, direction, ticket, result, &turn)
                key.machine.pageFinished(direction, ticket, result, &turn)
            }
        }
        // The key has been forgotten meanwhile, and with it whoever would say so.
        if !isLive { report(.droppedAsOutdated(order.target), param) }
    }

    /// Takes a list that is about to grow out of the memory in front, which mirrors it again in the same turn: a list of which somebody
    /// else holds a snapshot is copied as a whole for each page. Whoever reads it meanwhile waits for the engine.
    private func lendList(
        to key: inout Key, _ direction: PageDirection, _ ticket: Ticket, _ result: Result<Fetched<BoxedContent>, any Error>,
        _ turn: inout Turn
    ) {
        guard let front, key.machine.willExtend(direction, ticket, result), let held = key.machine.held?.record.content else { return }
        if let drop = front.lend(key.param, held) { turn.leftovers.append(drop) }
    }

    /// Gives fetches a way to report; `nil` where nobody listens.
    func reporter(for param: BoxedKey) -> (@Sendable (StoreEventKind) -> Void)? {
        guard onEvent != nil else { return nil }
        return { [weak self] kind in self?.report(kind, param) }
    }

    func report(_ kind: StoreEventKind, _ param: BoxedKey?) {
        guard let onEvent else { return }
        var effects = Effects()
        state.withLock { $0.report(kind, param, &effects) }
        effects.deliver(onEvent)
    }

    // MARK: Time

    /// Sees to it that the machine is told the time when it wants to be.
    func arm(_ key: inout Key, _ effects: inout Effects) {
        guard let wake = key.machine.nextWake else { return }
        // A timer that fires too early only looks again; so a deadline that keeps moving away costs no new timer each time.
        if let timer = key.timer {
            if timer.deadline <= wake { return }
            effects.parcels.append(.cancellation(timer.task))
        }
        let id = nextID()
        let (param, time) = (key.param, time)
        let task = Task.detached { [weak self] in
            // The only failure is cancellation, and then somebody else watches the clock or nobody needs to.
            guard (try? await time.sleep(until: wake)) != nil else { return }
            self?.timerFired(id, param)
        }
        key.timer = (wake, id, task)
    }

    private func timerFired(_ id: CallerID, _ param: BoxedKey) {
        turnIfLive(param) { key, turn in
            guard key.timer?.id == id else { return }
            key.timer = nil
            key.machine.timerFired(&turn)
        }
    }
}
