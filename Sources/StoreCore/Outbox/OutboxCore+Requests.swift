#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif
internal import StoreCore
internal import StoreFiles

// The calls of the outbox.

extension OutboxCore {
    func register(_ registration: OutboxRegistration) {
        guard !isClosed else { return }
        precondition(
            registrations[registration.name] == nil,
            "a command named \(registration.name) is registered twice; register each type once, and give each type its own name")
        registrations[registration.name] = registration
        machine.woke(time.now)
        machine.register(registration.name, version: registration.version)
        let items = machine.commands { $0.submission.name == registration.name && $0.status != .failed }
        // The entities of delivered commands move when these are settled.
        let moving = Set(items.filter { $0.status == .delivered }.compactMap(\.submission.creates))
        for (temporary, replacement) in machine.replacements {
            registration.replaceKey(temporary, with: replacement, unlessShown: moving.contains(temporary))
        }
        // A record may name a command that the log has lost the delivery of, or one of a type that is registered later.
        for engine in registration.engines { engine.knowCommands(machine.items.keys) }
        for item in machine.commands(where: { $0.submission.name == registration.name && $0.status == .failed }) { abandon(item) }
        show(items)
        for item in items {
            if item.isUnreadable {
                report(.undecodable(name: item.submission.name, nil), item.id)
            } else if item.status == .delivered {
                settle(item)
            } else if isOutdated(item) {
                rewrite(item.id)
            }
        }
        carryOut()
    }

    func start() {
        // The outbox may have been released since the call.
        guard !isShutDown else { return }
        machine.woke(time.now)
        if !machine.isStarted {
            var names: Set<String> = []
            for item in machine.commands() where registrations[item.submission.name] == nil && item.status == .pending {
                if names.insert(item.submission.name).inserted { report(.undecodable(name: item.submission.name, nil), item.id) }
            }
        }
        dateDelays()
        machine.start()
        carryOut()
    }

    /// Dates the delays anew that seem to begin in the future, because the clock was ahead. Otherwise they would begin again with each launch.
    private func dateDelays() {
        let date = time.date
        func isAhead(_ item: OutboxMachine.Item) -> Bool { item.status == .pending && item.deferral.map { $0.date > date } ?? false }
        guard machine.items.values.contains(where: isAhead) else { return }
        do {
            _ = try transact {
                machine.items.values.filter(isAhead).compactMap { item in
                    guard var deferral = item.deferral else { return nil }
                    deferral.date = date
                    return entry(item, .deferred(deferral))
                }
            }
        } catch {
            report(.logFault(error), nil)
        }
    }

    func start<Trigger: AsyncSequence & Sendable>(_ trigger: Trigger) {
        start()
        guard !isShutDown else { return }
        triggers.append(
            Task.detached { [weak self] in
                do {
                    for try await _ in trigger {
                        guard let self, !Task.isCancelled else { break }
                        await update { $0.triggered() }
                        await Task.yield()
                    }
                } catch {
                    // An error ends only this trigger.
                }
            })
    }

    func resume() {
        if !isClosed { update { $0.resume() } }
    }

    func submit<Value: Command>(_ command: Value) throws -> UUID {
        let registration = try registration(Value.name)
        let bound = try registration.bindValue(command)
        let payload = try encoder.encode(command)
        let id = UUID.random()
        try change(id, .submitted(name: Value.name)) {
            let (bound, payload) = try upToDate(bound, payload, registration)
            var submission = submission(of: bound, registration, payload, date: time.date, delivery: id)
            var (count, bytes) = (machine.pendingCount + machine.failedCount + 1, machine.byteCount + payload.count)
            if let earlier = machine.supersedable(in: bound.lane), earlier.submission.name == Value.name,
                let command = bound.value as? Value, let draft = (known(earlier) ?? bind(earlier))?.value as? Value,
                command.supersedes(draft)
            {
                submission.supersedes = earlier.id
                (count, bytes) = (count - 1, bytes - earlier.submission.payload.count)
            }
            guard count <= policy.countLimit, bytes <= policy.byteLimit else { throw full }
            latest = (id, bound)
            return [OutboxEntry(id: id, lane: bound.lane, fact: .submitted(submission))]
        }
        return id
    }

    /// Decides on the entries of a request, reports the event if there are any, and carries out the actions.
    @discardableResult
    private func change(_ id: UUID, _ event: OutboxEvent.Kind, _ decide: () throws -> [OutboxEntry]) throws -> Bool {
        defer { carryOut() }
        let isChanged = try transact(decide)
        if isChanged { report(event, id) }
        return isChanged
    }

    var full: StoreError {
        StoreError(
            .outboxFull,
            "submitting a command: the outbox has \(machine.pendingCount + machine.failedCount) commands of \(machine.byteCount) bytes; "
                + "deliver or discard some, or raise the limits of its policy")
    }

    func registration(_ name: String) throws -> OutboxRegistration {
        guard let registration = registrations[name] else {
            throw StoreError(.unregisteredCommand, "submitting a command \(name): register its type first")
        }
        return registration
    }

    /// Replaces the identifiers of a command that are no longer temporary.
    ///
    /// Refuses a command that refers to an entity that will never exist: the origin does not know its temporary identifier.
    private func upToDate(
        _ command: BoundCommand, _ payload: Data, _ registration: OutboxRegistration
    ) throws -> (command: BoundCommand, payload: Data) {
        var (command, payload) = (command, payload)
        if command.references.contains(where: { machine.replacements[$0] != nil }) {
            (command, payload) = try replaceIdentifiers(of: command, registration, machine.replacements)
        }
        let missing = command.references.first { $0 != command.creates && machine.isAbandoned($0) }
        guard let missing else { return (command, payload) }
        throw StoreError(
            .entityNotCreated,
            "submitting a command: it refers to the temporary key \(missing), and the command that creates its entity was taken back; "
                + "create the entity again first")
    }

    func replaceIdentifiers(
        of command: BoundCommand, _ registration: OutboxRegistration, _ replacements: [String: String]
    ) throws -> (command: BoundCommand, payload: Data) {
        let command = try registration.bindValue(command.value.replacing(IdentifierReplacement(texts: replacements)))
        return (command, try encoder.encode(command.value))
    }

    func submission(
        of command: BoundCommand, _ registration: OutboxRegistration, _ payload: Data, date: Date, delivery: UUID = .random()
    ) -> OutboxEntry.Submission {
        OutboxEntry.Submission(
            name: registration.name, version: registration.version, subject: command.subject,
            // Any other identifier is not temporary.
            references: command.references.filter { machine.creators[$0] != nil && $0 != command.creates },
            creates: command.creates, supersedes: nil, delivery: delivery, date: date, payload: payload)
    }

    func cancel(_ id: UUID) throws -> CancelOutcome {
        var outcome = CancelOutcome.unknown
        try change(id, .canceled) {
            guard let item = machine.items[id], item.status != .delivered else { return [] }
            outcome = item.status == .pending && !item.isAttempted ? .canceled : .alreadyDelivering
            return outcome == .canceled ? [entry(item, .canceled)] : []
        }
        return outcome
    }

    func retry(_ id: UUID) throws -> Bool {
        try change(id, .retried) {
            guard let item = machine.items[id], item.status == .failed else { return [] }
            return [entry(item, .retried)]
        }
    }

    func discard(_ id: UUID) throws -> DiscardOutcome {
        var outcome = DiscardOutcome.unknown
        try change(id, .discarded) {
            outcome = self.outcome(ofDiscarding: id)
            guard outcome.isDone, let item = machine.items[id] else { return [] }
            return [entry(item, .discarded)]
        }
        return outcome
    }

    private func outcome(ofDiscarding id: UUID) -> DiscardOutcome {
        guard let item = machine.items[id], item.status != .delivered else { return .unknown }
        // An attempt that has passed its deadline counts as failed. If it never returns, nothing else would remove the command.
        if machine.isActive(id) ? !machine.overdue.contains(id) : Self.leftBehind.withLock({ $0.contains(id) }) { return .delivering }
        // After a refusal, the origin has not performed the command.
        let isRefused = item.status == .failed && item.failure?.isGivenUp != true
        return item.isAttempted && !isRefused ? .perhapsPerformed : .discarded
    }

    func replace<Value: Command>(_ id: UUID, with command: Value) throws -> DiscardOutcome {
        let registration = try registration(Value.name)
        let bound = try registration.bindValue(command)
        let payload = try encoder.encode(command)
        var outcome = DiscardOutcome.unknown
        try change(id, .replaced) {
            outcome = self.outcome(ofDiscarding: id)
            guard outcome.isDone, let item = machine.items[id] else { return [] }
            let (bound, payload) = try upToDate(bound, payload, registration)
            let submission = submission(of: bound, registration, payload, date: item.submission.date)
            let growth = submission.payload.count - item.submission.payload.count
            guard growth <= 0 || machine.byteCount + growth <= policy.byteLimit else { throw full }
            let replacement = OutboxEntry(id: id, lane: bound.lane, fact: .replaced(submission))
            var later = machine
            later.apply(replacement, date: time.date)
            if later.waitsForItself(id) {
                throw StoreError(
                    .entityNotCreated,
                    "replacing a command: the new one refers to an entity, and its creation waits for this command, so neither would be "
                        + "delivered; refer to another entity")
            }
            return [replacement]
        }
        return outcome
    }

    /// Drops all commands, cancels running attempts, and returns the number of commands.
    func empty() throws -> Int {
        do {
            // The directory may have been deleted, and must not come back.
            try log.compact(creating: false) { news in
                take(news)
                return []
            }
        } catch {
            machine.halt()
            carryOut()
            throw error
        }
        let count = machine.pendingCount + machine.failedCount
        machine.clear()
        (foreign, recordCount, responses, unsettled, latest) = ([], 0, [:], [:], nil)
        for key in moving.keys { moving[key] = [] }
        carryOut()
        report(.cleared(count: count), nil)
        for task in attempts.current.values { task.cancel() }
        return count
    }

    func waitForAttempts() async {
        let running = Set(attempts.current.keys)
        guard !running.isEmpty else { return }
        await wait(atMost: policy.clearTimeout) { [attempts] in try await attempts.wait { running.isDisjoint(with: $0.keys) ? () : nil } }
    }

    /// Waits for a function, which is canceled after a duration.
    ///
    /// - Returns: Whether it has returned without an error.
    @discardableResult
    func wait(atMost duration: Duration, for body: @escaping @Sendable () async throws -> Void) async -> Bool {
        let instant = time.now.advanced(by: duration)
        return await withTaskGroup { [time] group in
            group.addTask { (try? await body()) != nil }
            group.addTask {
                try? await time.sleep(until: instant)
                return false
            }
            defer { group.cancelAll() }
            return await group.next() == true
        }
    }
}

extension UUID {
    /// A random identifier (RFC 9562, version 4). On Linux, `UUID()` opens a file each time.
    fileprivate static func random() -> UUID {
        var random = SystemRandomNumberGenerator()
        let (high, low) = (random.next() & ~0xF000 | 0x4000, random.next() & ~(0b11 << 62) | 0b10 << 62)
        return withUnsafeBytes(of: (high.bigEndian, low.bigEndian)) { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
    }
}
