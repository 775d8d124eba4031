// Fetches and timers: tasks of the store's own, which report back with their ticket.

extension StoreEngine {
    func startFetch(_ ticket: Ticket, _ order: FetchOrder, _ param: Param) -> Task<Void, Never> {
        // Weak, so that a store that nobody holds is freed with its fetch; one that runs to completion holds the store itself.
        let keeper = rules.policy.unwantedFetch == .complete ? self : nil
        let run = FetchRun(respond: respond, retry: rules.policy.retry, time: time, merge: rules.merge)
        let report = reporter(for: param)
        // Detached: the first caller's priority, but not his task-locals, which would be an accident for everybody else.
        return Task.detached(priority: Task.currentPriority) { [weak self] in
            let result = await run(order, param, report)
            (keeper ?? self)?.fetchFinished(ticket, order, param, result)
        }
    }

    private func fetchFinished(_ ticket: Ticket, _ order: FetchOrder, _ param: Param, _ result: Result<Fetched<Content>, any Error>) {
        let isLive = turnIfLive(param) { key, turn in
            _ = key.takeFetch(ticket)
            switch order {
            case .content:
                key.machine.fetchFinished(ticket, result, &turn)
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
        to key: inout Key, _ direction: PageDirection, _ ticket: Ticket, _ result: Result<Fetched<Content>, any Error>, _ turn: inout Turn
    ) {
        guard let front, key.machine.willExtend(direction, ticket, result), let held = key.machine.held?.record.content else { return }
        if let drop = front.lend(key.param, held) { turn.leftovers.append(drop.records) }
    }

    /// Gives fetches a way to report; `nil` where nobody listens.
    private func reporter(for param: Param) -> (@Sendable (StoreEventKind) -> Void)? {
        guard onEvent != nil else { return nil }
        return { [weak self] kind in self?.report(kind, param) }
    }

    func report(_ kind: StoreEventKind, _ param: Param?) {
        guard let onEvent else { return }
        var outbox = Outbox<Param, Content>()
        state.withLock { $0.report(kind, param, &outbox) }
        outbox.deliver(onEvent)
    }

    // MARK: Time

    /// Sees to it that the machine is told the time when it wants to be.
    func arm(_ key: inout Key, _ outbox: inout Outbox<Param, Content>) {
        guard let wake = key.machine.nextWake else { return }
        // A timer that fires too early only looks again; so a deadline that keeps moving away costs no new timer each time.
        if let timer = key.timer {
            if timer.deadline <= wake { return }
            outbox.parcels.append(.cancellation(timer.task))
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

    private func timerFired(_ id: CallerID, _ param: Param) {
        turnIfLive(param) { key, turn in
            guard key.timer?.id == id else { return }
            key.timer = nil
            key.machine.timerFired(&turn)
        }
    }
}

/// One fetch, with its attempts and, for a list that is refreshed whole, its pages.
struct FetchRun<Param: Hashable & Sendable, Content: Sendable>: Sendable {
    let respond: Respond<Param, Content>
    let retry: RetryPolicy
    let time: any TimeSource
    let merge: PageMerge<Content>?

    typealias Report = @Sendable (StoreEventKind) -> Void

    func callAsFunction(_ order: FetchOrder, _ param: Param, _ report: Report?) async -> Result<Fetched<Content>, any Error> {
        report?(.fetchBegan(order.target))
        // A look at the clock is for who listens.
        let began = report == nil ? .distantPast : time.now
        let result: Result<Fetched<Content>, any Error>
        do {
            result = .success(try await fetch(order, param, report))
        } catch {
            result = .failure(error)
        }
        report?(.fetchEnded(order.target, duration: began.duration(to: time.now), outcome(of: result)))
        return result
    }

    private func outcome(of result: Result<Fetched<Content>, any Error>) -> StoreEventKind.FetchOutcome {
        // Only the store cancels this task, so its flag tells a cancelled fetch from one that failed with a cancellation of its own.
        if Task.isCancelled { return .cancelled }
        switch result {
        case .success(let fetched): if case .notModified = fetched.response.result { return .notModified } else { return .modified }
        case .failure(let error): return .failed(error)
        }
    }

    private func fetch(_ order: FetchOrder, _ param: Param, _ report: Report?) async throws -> Fetched<Content> {
        switch order {
        case .page(let direction, let key):
            return Fetched(response: try await attempt(.page(direction, key: key, param), order.target, report))
        case .content(let validator, let pages):
            var response = try await attempt(.content(param, revalidating: validator), order.target, report)
            let loaded = try await extend(&response, by: pages, param, report)
            return Fetched(response: response, pages: loaded)
        }
    }

    /// Fetches the pages beside the first one with the keys that each answer gives, in order.
    private func extend(
        _ response: inout OriginResponse<Content>, by wanted: PageCounts, _ param: Param, _ report: Report?
    ) async throws -> PageCounts {
        var loaded = PageCounts()
        guard wanted != loaded, let merge, case .modified(var content, let freshness, let validator) = response.result else {
            return loaded
        }
        var index: AnyObject?
        var freshnessOfAll = freshness
        for (direction, count) in [(PageDirection.next, wanted.next), (.prev, wanted.prev)] {
            for _ in 0..<count {
                guard let key = direction == .next ? response.nextKey : response.prevKey, !key.isEmpty else { break }
                let page = try await attempt(.page(direction, key: key, param), .page(direction), report)
                guard case .modified(let elements, let pageFreshness, _) = page.result else {
                    throw StoreError(.nothingToConfirm, "fetching a page: the origin confirmed a page that it was not asked to confirm")
                }
                _ = merge(&content, elements, direction, &index)
                if pageFreshness.storage == .forbidden { freshnessOfAll.storage = .forbidden }
                switch direction {
                case .next: (response.nextKey, loaded.next) = (page.nextKey, loaded.next + 1)
                case .prev: (response.prevKey, loaded.prev) = (page.prevKey, loaded.prev + 1)
                }
            }
        }
        response.result = .modified(content, freshnessOfAll, validator)
        return loaded
    }

    private func attempt(
        _ request: OriginRequest<Param>, _ target: StoreEventKind.Target, _ report: Report?
    ) async throws -> OriginResponse<Content> {
        var attempt = 1
        while true {
            do {
                return try await respond(request)
            } catch {
                guard !Task.isCancelled, let delay = retry.delay(after: error, attempt: attempt, unit: .random(in: 0..<1)) else {
                    throw error
                }
                report?(.retried(target, attempt: attempt, delay: delay, error))
                try await time.sleep(until: time.now.advanced(by: delay))
                attempt += 1
            }
        }
    }
}
