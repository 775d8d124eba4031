#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif
internal import StoreCore
internal import StoreFiles

// Deliveries. The first attempt of a command is logged before it begins, and every result is logged. Only the holder of the lease delivers.

extension OutboxCore {
    /// The commands with an attempt that begins or runs in this process, even for an outbox that was shut down.
    private static let performing = WatchedState<Set<UUID>>([])
    /// The commands that outboxes have left behind during an attempt when they were shut down, until the deadline of the attempt.
    static let leftBehind = Lock<Set<UUID>>([])

    func begin(_ id: UUID) {
        // Precedes the look at the log: an attempt of another outbox that ended before has logged its result.
        guard Self.performing.update({ $0.insert(id).inserted }) else {
            machine.hold(id)
            machine.ended(id)
            Task { [weak self] in
                // Nothing cancels this task. An attempt that never returns holds only the lane of its command.
                try? await Self.performing.wait { $0.contains(id) ? nil : () }
                await self?.update { $0.release(id) }
            }
            return
        }
        do {
            if machine.items[id]?.isAttempted == true {
                take(try log.read())
            } else {
                try transact {
                    guard machine.mayBegin(id), let item = machine.items[id] else { return [] }
                    return [entry(item, .attempted)]
                }
            }
        } catch {
            report(.logFault(error), id)
            Self.performing.update { $0.remove(id) }
            return machine.ended(id, retryAfter: policy.faultDelay)
        }
        if machine.mayBegin(id) { return machine.began(id) }
        Self.performing.update { $0.remove(id) }
        machine.ended(id)
    }

    func deliver(_ id: UUID, _ attempt: Int) async {
        let scope = WorkScope(running)
        defer { scope.end() }
        // The look may change the file of the lease.
        let isHeld = isShutDown ? false : await lease?.isHeld() ?? false
        if !isHeld {
            lease = nil
            machine.setDeliverer(false)
        }
        // Another process may have replaced the command since its attempt was logged. Under its new identity, none was attempted.
        guard isHeld, !isShutDown, machine.mayBegin(id), let item = machine.items[id], item.isAttempted, let command = bind(item) else {
            Self.performing.update { $0.remove(id) }
            machine.ended(id)
            return carryOut()
        }
        for patch in command.patches { patch.attempt(id, isElsewhere: false) }
        report(.attemptBegan(attempt), id)
        version.update { $0 += 1 }
        let delivery = Delivery(id: item.submission.delivery, attempt: attempt)
        let task = Task.detached { try await scope.run { try await command.perform(delivery) } }
        attempts.update { $0[id] = task }
        let deadline = Task { [weak self, time, instant = time.now.advanced(by: policy.attemptTimeout)] in
            guard (try? await time.sleep(until: instant)) != nil else { return }
            await self?.passedDeadline(id, task)
        }
        let result = await task.result
        deadline.cancel()
        await finish(delivery, of: item, result)
    }

    func passedDeadline(_ id: UUID, _ task: Task<PerformedCommand, any Error>) {
        // The attempt may have ended meanwhile, and the next one may have begun.
        guard attempts.read({ $0[id] == task }) else { return }
        task.cancel()
        Self.leftBehind.withLock { _ = $0.remove(id) }
        machine.passedDeadline(id)
        report(.attemptOverdue, id)
        carryOut()
    }

    /// Logs the end of an attempt, and retries until this succeeds: a command with a success that is not logged would be delivered again.
    func finish(_ delivery: Delivery, of performed: OutboxMachine.Item, _ result: Result<PerformedCommand, any Error>) async {
        let id = performed.id
        var (fact, event) = fact(performed, attempt: delivery.attempt, result)
        if case .success(let performed) = result { responses[id] = performed }
        if fact == nil, !isShutDown {
            if counts(delivery, of: id) {
                machine.halt()
                report(event, id)
            } else {
                report(.resultDropped(result.map { _ in }), id)
            }
        }
        // Shutting down cancels the attempts, which says nothing about their commands.
        if isShutDown, case .failure = result { fact = nil }
        while let pending = fact {
            do {
                let isLogged = try transact(evenIfClosed: true) {
                    guard counts(delivery, of: id), let item = machine.items[id] else { return [] }
                    guard case .delivered(let replacement, _) = pending else { return [entry(item, pending)] }
                    if registrations[item.submission.name]?.engines.isEmpty == true {
                        return [entry(item, pending), entry(item, .retired)]
                    }
                    return [entry(item, pending)] + rewrites(after: item, replacement)
                }
                report(isLogged ? event : .resultDropped(result.map { _ in }), id)
                if !isLogged { responses[id] = nil }
                fact = nil
            } catch {
                report(.logFault(error), id)
                guard !isShutDown else { break }
                // Shutting down ends the wait, and then the last attempt to log the result follows at once.
                let wait = Task { [time, policy] in
                    _ = try? await time.sleep(until: time.now.advanced(by: policy.faultDelay))
                }
                logWaits[id] = wait
                await wait.value
                logWaits[id] = nil
            }
        }
        attempts.update { $0[id] = nil }
        Self.leftBehind.withLock { _ = $0.remove(id) }
        Self.performing.update { $0.remove(id) }
        machine.ended(id)
        carryOut()
    }

    /// Whether the result of an attempt has an effect: its command may have been discarded, cleared or replaced meanwhile.
    ///
    /// A replaced command has another identity.
    private func counts(_ delivery: Delivery, of id: UUID) -> Bool {
        guard let item = machine.items[id], machine.isActive(id) else { return false }
        return item.status == .pending && item.submission.delivery == delivery.id
    }

    func fact(
        _ item: OutboxMachine.Item, attempt: Int, _ result: Result<PerformedCommand, any Error>
    ) -> (OutboxEntry.Fact?, OutboxEvent.Kind) {
        let error: any Error
        switch result {
        case .success(let performed):
            let hasContent = if case .content = performed.response { true } else { false }
            return (.delivered(replacement: performed.replacement?.text, hasContent: hasContent), .delivered)
        case .failure(let failure): error = failure
        }
        let advice = error as? any FailureAdvising
        // Bounded, because an error may carry a whole response. One character may have any number of scalars.
        let text = String("\(error)".unicodeScalars.prefix(500))
        // A closed store says nothing about the command, which a later outbox delivers with a new store.
        let isClosed = (error as? StoreError)?.code == .closed
        switch advice?.failureKind ?? (StoreError.isFinal(error) && !isClosed ? .permanent : .transient) {
        case .transient, .cancelled:
            let date = time.date
            if policy.givesUp(after: attempt, age: Duration(saturating: date.timeIntervalSince(item.submission.date))) {
                let failure = OutboxEntry.Failure(attempts: attempt, date: date, error: text, isGivenUp: true)
                return (.failed(failure), .gaveUp(attempts: attempt, error))
            }
            func delay(own: Duration) -> Duration {
                RetryPolicy.delay(own: own, advised: advice?.retryAfter, limit: policy.adviceLimit)
            }
            let (requested, delay) = (delay(own: .zero), delay(own: policy.delay(after: attempt, unit: .random(in: 0..<1))))
            let deferral = OutboxEntry.Deferral(attempts: attempt, date: date, delay: delay, requested: requested, error: text)
            return (.deferred(deferral), .deferred(attempt: attempt, delay: delay, error))
        case .permanent:
            return (.failed(OutboxEntry.Failure(attempts: attempt, date: time.date, error: text)), .failed(error))
        case .fatal:
            return (nil, .stopped(error))
        }
    }

    func updateLease() {
        guard machine.needsLease, !isShutDown else {
            leasing?.cancel()
            leasing = nil
            if lease != nil, !machine.needsLease || attempts.read({ $0.isEmpty }) {
                lease = nil
                machine.setDeliverer(false)
            }
            return
        }
        guard lease == nil, leasing == nil else { return }
        leasing = Task { [weak self, leases, scope = WorkScope(running)] in
            defer { scope.end() }
            do {
                let lease = try await leases.acquireDelivery()
                await self?.granted(lease)
            } catch {
                await self?.leaseFailed(error)
            }
        }
    }

    /// Called by the task that waits for the lease, which is canceled when the lease is no longer needed.
    func granted(_ lease: DeliveryLease) {
        guard !Task.isCancelled, !isShutDown else { return }
        leasing = nil
        self.lease = lease
        do {
            // The last deliverer may have delivered commands that seem to be pending here.
            take(try log.read())
            machine.woke(time.now)
            machine.setDeliverer(true)
        } catch {
            report(.logFault(error), nil)
            self.lease = nil
            return later { _ in }
        }
        carryOut()
    }

    func leaseFailed(_ error: any Error) {
        guard !Task.isCancelled, !isShutDown else { return }
        report(.logFault(error), nil)
        let failed = leasing
        // Another wait may have begun meanwhile; it stays known, so that it can be canceled.
        later { if $0.leasing == failed { $0.leasing = nil } }
    }

    func armWake() {
        guard let next = machine.nextWake, !isShutDown else {
            wake?.task.cancel()
            wake = nil
            return
        }
        guard wake?.instant != next else { return }
        wake?.task.cancel()
        let task = Task { [weak self, time] in
            // Canceled when another instant takes its place.
            guard (try? await time.sleep(until: next)) != nil else { return }
            await self?.wokeUp()
        }
        wake = (next, task)
    }

    func wokeUp() {
        wake = nil
        update { _ in }
    }
}
