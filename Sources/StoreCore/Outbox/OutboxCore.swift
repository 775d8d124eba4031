#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Drives the machine of an outbox, and carries out its actions: the log, the stores, the deliveries.
///
/// Each decision is made under the lock of the log, after the entries of other processes were applied. What a call changes is in the log
/// before it is visible.
actor OutboxCore {
    private let log: OutboxLog
    private let policy: OutboxPolicy
    private let time: any TimeSource
    private let onEvent: (@Sendable (OutboxEvent) -> Void)?
    /// The number of changes, for observers.
    nonisolated let version = WatchedState<UInt64>(1)
    /// The running attempts, for `clear()`.
    private let attempts = WatchedState<[UUID: Task<PerformedCommand, any Error>]>([:])

    private var machine: OutboxMachine
    private var registrations: [String: OutboxRegistration] = [:]
    /// The commands that are being submitted, which need not be decoded.
    private var fresh: [UUID: BoundCommand] = [:]
    /// The changes in the stores.
    private var shown: [UUID: [BoundPatch]] = [:]
    /// The stores that have not saved the change of a delivered command.
    private var unsettled: [UUID: [BoundPatch]] = [:]
    private var responses: [UUID: PerformedCommand] = [:]
    /// The records of newer versions.
    private var foreign: [Data]
    /// The number of records in the log.
    private var recordCount: Int
    private var events: UInt64 = 0
    private var lease: DeliveryLease?
    private var leasing: Task<Void, Never>?
    private var leaseNumber = 0
    private var wake: (instant: MonotonicInstant, task: Task<Void, Never>)?
    private var triggers: [Task<Void, Never>] = []
    private var isShutDown = false

    init(
        log: OutboxLog, policy: OutboxPolicy, time: any TimeSource, onEvent: (@Sendable (OutboxEvent) -> Void)?
    ) throws {
        (self.log, self.policy, self.time, self.onEvent) = (log, policy, time, onEvent)
        var machine = OutboxMachine(rules: policy.rules)
        machine.woke(time.now)
        let news = try log.read()
        let date = time.date
        (foreign, recordCount) = ([], news.records.count)
        for record in news.records {
            if let entry = OutboxEntry(record) { machine.apply(entry, date: date) } else { foreign.append(record) }
            if case .unknown? = OutboxEntry(record)?.fact { foreign.append(record) }
        }
        // No type is registered yet, so there is nothing to show.
        _ = machine.takeActions()
        self.machine = machine
        for damage in news.damages {
            events += 1
            onEvent?(OutboxEvent(number: events, command: nil, kind: .damaged(bytes: damage.length, reason: damage.reason)))
        }
    }

    /// Follows the changes of other processes.
    nonisolated func follow() {
        log.observe { [weak self] in
            guard let self else { return }
            Task { await self.refresh() }
        }
    }

    func shutDown() {
        isShutDown = true
        machine.stop()
        log.endObserving()
        for task in triggers { task.cancel() }
        wake?.task.cancel()
        leasing?.cancel()
        for task in attempts.current.values { task.cancel() }
        if attempts.current.isEmpty { lease = nil }
    }

    // MARK: The log

    /// Applies the entries of other processes.
    private func refresh() {
        do {
            let news = try log.read()
            guard !news.isEmpty else { return }
            machine.woke(time.now)
            take(news)
        } catch {
            report(.logFault(error), nil)
        }
        carryOut()
    }

    private func take(_ news: OutboxLog.News) {
        let date = time.date
        for damage in news.damages { report(.damaged(bytes: damage.length, reason: damage.reason), nil) }
        if news.wasReplaced { (foreign, recordCount) = ([], 0) }
        recordCount += news.records.count
        var entries: [OutboxEntry] = []
        entries.reserveCapacity(news.records.count)
        for record in news.records {
            guard let entry = OutboxEntry(record) else {
                foreign.append(record)
                continue
            }
            if entry.fact == .unknown { foreign.append(record) }
            entries.append(entry)
        }
        if news.wasReplaced {
            machine.replaceAll(entries, date: date)
        } else {
            for entry in entries { machine.apply(entry, date: date) }
        }
    }

    /// Decides on entries under the lock of the log, appends them, and applies them. The caller carries out the actions.
    ///
    /// - Parameter decide: Returns the entries; the entries of other processes are applied.
    /// - Returns: Whether there were any entries.
    @discardableResult
    private func transact(_ decide: () throws -> [OutboxEntry]) throws -> Bool {
        machine.woke(time.now)
        var entries: [OutboxEntry] = []
        try log.append(durability: policy.durability) { news in
            take(news)
            entries = try decide()
            return entries.map(\.record)
        }
        let date = time.date
        recordCount += entries.count
        for entry in entries { machine.apply(entry, date: date) }
        return !entries.isEmpty
    }

    private func entry(_ item: OutboxMachine.Item, _ fact: OutboxEntry.Fact) -> OutboxEntry {
        OutboxEntry(id: item.id, lane: item.lane, fact: fact)
    }

    /// Replaces the log by a shorter one when most of its records are outdated.
    private func compactIfNeeded() {
        guard recordCount > 1_024, recordCount > 4 * machine.items.count else { return }
        do {
            try log.compact { news in
                take(news)
                let records = machine.entries().map(\.record) + foreign
                recordCount = records.count
                return records
            }
        } catch {
            report(.logFault(error), nil)
            // Tried again after as many records.
            recordCount = 0
        }
    }

    // MARK: Actions

    private func carryOut() {
        var actions = machine.takeActions()
        while !actions.isEmpty {
            for action in actions { carryOut(action) }
            actions = machine.takeActions()
        }
        compactIfNeeded()
        updateLease()
        armWake()
        version.update { $0 += 1 }
    }

    private func carryOut(_ action: OutboxMachine.Action) {
        switch action {
        case .begin(let id): begin(id)
        case .perform(let id, let attempt): Task { await deliver(id, attempt) }
        case .rewrite(let id): rewrite(id)
        case .show(let id, let superseded): show(id, insteadOf: superseded)
        case .hide(let id): hide(id)
        case .confirm(let id): confirm(id)
        }
    }

    private func bind(_ item: OutboxMachine.Item) -> BoundCommand? {
        guard let registration = registrations[item.submission.name], !item.isUnreadable else { return nil }
        do {
            return try registration.bind(item.submission.payload, item.submission.version)
        } catch {
            machine.markUnreadable(item.id)
            report(.undecodable(name: item.submission.name, error), item.id)
            return nil
        }
    }

    private func show(_ id: UUID, insteadOf superseded: UUID?) {
        if let superseded, superseded != id { report(.superseded, superseded) }
        let old = superseded.flatMap { shown.removeValue(forKey: $0) } ?? []
        let bound = fresh.removeValue(forKey: id)
        guard let item = machine.items[id], item.status != .failed, let command = bound ?? bind(item) else {
            for patch in old { patch.engine.dropCommand(superseded ?? id, of: patch.key) }
            return
        }
        let mark = CommandMark(id: id, order: item.order)
        for patch in command.patches {
            patch.engine.showCommand(
                mark, of: patch.key, insteadOf: superseded, isDelivered: item.status == .delivered, patch.apply)
        }
        // The others show something else now.
        for patch in old where !command.patches.contains(where: { $0.engine === patch.engine && $0.key == patch.key }) {
            patch.engine.dropCommand(superseded ?? id, of: patch.key)
        }
        if !command.patches.isEmpty { shown[id] = command.patches }
    }

    private func hide(_ id: UUID) {
        for patch in shown.removeValue(forKey: id) ?? [] { patch.engine.dropCommand(id, of: patch.key) }
        unsettled[id] = nil
    }

    /// Folds the change of a delivered command into the content of each store.
    private func confirm(_ id: UUID) {
        let response = responses.removeValue(forKey: id)?.response ?? .none
        guard let item = machine.items[id] else { return }
        guard let patches = shown[id], let first = patches.first else {
            // Without a registration there is no way to know the stores.
            if registrations[item.submission.name] != nil { retire([id]) }
            return
        }
        unsettled[id] = patches
        for patch in patches {
            let response = patch.engine === first.engine && patch.key == first.key ? response : .none
            Task.detached { [weak self] in
                let settled: @Sendable ([UUID]) async -> Void = { [weak self] folded in await self?.settled(folded, in: patch) }
                await patch.engine.settleCommand(id, of: patch.key, response, saved: settled)
            }
        }
    }

    /// A store has saved content that contains the changes of these commands.
    private func settled(_ ids: [UUID], in settled: BoundPatch) {
        var complete: [UUID] = []
        for id in ids {
            unsettled[id]?.removeAll { $0.engine === settled.engine && $0.key == settled.key }
            if unsettled[id]?.isEmpty == true { complete.append(id) }
        }
        retire(complete)
        carryOut()
    }

    private func retire(_ ids: [UUID]) {
        guard !ids.isEmpty else { return }
        do {
            try transact { ids.compactMap { machine.items[$0] }.map { entry($0, .retired) } }
        } catch {
            // The next process retires them.
            return report(.logFault(error), nil)
        }
        for id in ids {
            unsettled[id] = nil
            for patch in shown.removeValue(forKey: id) ?? [] { patch.engine.retireCommands([id], of: patch.key) }
        }
    }

    private func rewrite(_ id: UUID) {
        guard let item = machine.items[id], item.status == .pending, let command = bind(item) else { return }
        do {
            let command = command.replacing(machine.replacements)
            let submission = try submission(of: command, item.submission.name, try command.encode(), date: item.submission.date)
            fresh[id] = command
            try transact {
                machine.items[id]?.status == .pending ? [OutboxEntry(id: id, lane: command.lane, fact: .replaced(submission))] : []
            }
        } catch {
            fresh[id] = nil
            report(.logFault(error), id)
            later { await $0.rewriteAgain(id) }
        }
    }

    private func rewriteAgain(_ id: UUID) {
        rewrite(id)
        carryOut()
    }

    /// Calls a function after the first back-off delay.
    private func later(_ body: @escaping @Sendable (OutboxCore) async -> Void) {
        let instant = time.now.advanced(by: policy.backOff)
        Task { [weak self, time] in
            try? await time.sleep(until: instant)
            if let self { await body(self) }
        }
    }

    // MARK: Deliveries

    private func begin(_ id: UUID) {
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
            return machine.ended(id, retryAfter: policy.delay(after: 1, unit: .random(in: 0..<1)))
        }
        if machine.mayBegin(id) { machine.began(id) } else { machine.ended(id) }
    }

    private func deliver(_ id: UUID, _ attempt: Int) async {
        let isHeld = await lease?.isHeld() ?? false
        if !isHeld {
            lease = nil
            machine.setDeliverer(false)
        }
        guard isHeld, !isShutDown, machine.mayBegin(id), let item = machine.items[id], let command = bind(item) else {
            machine.ended(id)
            return carryOut()
        }
        for patch in command.patches { patch.engine.beginCommand(id, of: patch.key) }
        report(.attemptBegan(attempt), id)
        version.update { $0 += 1 }
        let delivery = Delivery(id: item.submission.delivery, attempt: attempt)
        let task = Task.detached { try await command.perform(delivery) }
        attempts.update { $0[id] = task }
        let deadline = Task { [weak self, time, instant = time.now.advanced(by: policy.attemptTimeout)] in
            guard (try? await time.sleep(until: instant)) != nil else { return }
            await self?.passedDeadline(id)
        }
        let result = await task.result
        deadline.cancel()
        await finish(id, attempt, result)
        attempts.update { $0[id] = nil }
    }

    private func passedDeadline(_ id: UUID) {
        guard let task = attempts.read({ $0[id] }) else { return }
        task.cancel()
        machine.passedDeadline(id)
        report(.attemptOverdue, id)
        carryOut()
    }

    /// Logs the end of an attempt, however long that takes: a success that is not logged would be delivered again.
    private func finish(_ id: UUID, _ attempt: Int, _ result: Result<PerformedCommand, any Error>) async {
        var (fact, event) = fact(attempt, result)
        if case .success(let performed) = result { responses[id] = performed }
        if fact == nil, !isShutDown {
            machine.halt()
            report(event, id)
        }
        // The end of the outbox cancels its attempts, which is no failure of theirs.
        if isShutDown, case .failure = result { fact = nil }
        while let pending = fact {
            do {
                let isLogged = try transact {
                    guard let item = machine.items[id], item.status == .pending, machine.isActive(id) else { return [] }
                    let isDone = registrations[item.submission.name]?.engines.isEmpty == true
                    if case .delivered = pending, isDone { return [entry(item, pending), entry(item, .retired)] }
                    return [entry(item, pending)]
                }
                if isLogged { report(event, id) } else { responses[id] = nil }
                fact = nil
            } catch {
                report(.logFault(error), id)
                guard !isShutDown else { break }
                try? await time.sleep(until: time.now.advanced(by: policy.delay(after: 1, unit: 1)))
            }
        }
        machine.ended(id)
        carryOut()
        if isShutDown, attempts.current.count <= 1 { lease = nil }
    }

    /// The fact that the end of an attempt adds to the log; `nil` for a fatal failure.
    private func fact(
        _ attempt: Int, _ result: Result<PerformedCommand, any Error>
    ) -> (OutboxEntry.Fact?, OutboxEvent.Kind) {
        let error: any Error
        switch result {
        case .success(let performed): return (.delivered(replacement: performed.replacement?.text), .delivered)
        case .failure(let failure): error = failure
        }
        let advice = error as? any FailureAdvising
        // Bounded, because an error may carry a whole response.
        let text = String("\(error)".prefix(500))
        switch advice?.failureKind ?? .transient {
        case .transient, .cancelled:
            let delay = advice?.retryAfter.map { max(.zero, $0) } ?? policy.delay(after: attempt, unit: .random(in: 0..<1))
            let deferral = OutboxEntry.Deferral(
                attempts: attempt, date: time.date, delay: delay, isRequested: advice?.retryAfter != nil, error: text)
            return (.deferred(deferral), .deferred(attempt: attempt, delay: delay, error))
        case .permanent:
            return (.failed(OutboxEntry.Failure(attempts: attempt, date: time.date, error: text)), .failed(error))
        case .fatal:
            return (nil, .stopped(error))
        }
    }

    private func updateLease() {
        guard machine.needsLease, !isShutDown else {
            leasing?.cancel()
            leasing = nil
            leaseNumber += 1
            if lease != nil, !machine.needsLease || attempts.read({ $0.isEmpty }) {
                lease = nil
                machine.setDeliverer(false)
            }
            return
        }
        guard lease == nil, leasing == nil else { return }
        leasing = Task { [weak self, log, leaseNumber] in
            do {
                let lease = try await log.acquireDelivery()
                await self?.granted(lease, leaseNumber)
            } catch {
                await self?.leaseFailed(error, leaseNumber)
            }
        }
    }

    private func granted(_ lease: DeliveryLease, _ number: Int) {
        guard number == leaseNumber, !isShutDown else { return }
        leasing = nil
        self.lease = lease
        do {
            // The last deliverer may have delivered what seems to be pending here.
            take(try log.read())
            machine.woke(time.now)
            machine.setDeliverer(true)
        } catch {
            report(.logFault(error), nil)
            self.lease = nil
            return later { await $0.lookAgain() }
        }
        carryOut()
    }

    private func leaseFailed(_ error: any Error, _ number: Int) {
        guard number == leaseNumber, !isShutDown else { return }
        report(.logFault(error), nil)
        later { await $0.lookAgain() }
    }

    private func lookAgain() {
        leasing = nil
        carryOut()
    }

    private func armWake() {
        guard let next = machine.nextWake, !isShutDown else {
            wake?.task.cancel()
            wake = nil
            return
        }
        guard wake?.instant != next else { return }
        wake?.task.cancel()
        let task = Task { [weak self, time] in
            guard (try? await time.sleep(until: next)) != nil else { return }
            await self?.wokeUp()
        }
        wake = (next, task)
    }

    private func wokeUp() {
        wake = nil
        machine.woke(time.now)
        carryOut()
    }

    // MARK: Requests

    func register(_ registration: OutboxRegistration) {
        precondition(
            registrations[registration.name] == nil,
            "a command named \(registration.name) is registered twice; register each type once, and give each type its own name")
        registrations[registration.name] = registration
        machine.woke(time.now)
        machine.register(registration.name, version: registration.version)
        let items = machine.commands { $0.submission.name == registration.name && $0.status != .failed }
        for engine in registration.engines { engine.knowCommands(items.lazy.filter { $0.status == .delivered }.map(\.id)) }
        for item in items {
            if !registration.engines.isEmpty { show(item.id, insteadOf: nil) }
            if item.isUnreadable {
                report(.undecodable(name: item.submission.name, nil), item.id)
            } else if item.status == .delivered {
                confirm(item.id)
            } else if item.submission.references.contains(where: { machine.replacements[$0] != nil }) {
                rewrite(item.id)
            }
        }
        carryOut()
    }

    func start() {
        machine.woke(time.now)
        if !machine.isStarted {
            var names: Set<String> = []
            for item in machine.commands() where registrations[item.submission.name] == nil && item.status == .pending {
                if names.insert(item.submission.name).inserted { report(.undecodable(name: item.submission.name, nil), item.id) }
            }
        }
        machine.start()
        carryOut()
    }

    func start<Trigger: AsyncSequence & Sendable>(_ trigger: Trigger) {
        start()
        triggers.append(
            Task.detached { [weak self] in
                do {
                    for try await _ in trigger {
                        guard let self, !Task.isCancelled else { break }
                        await triggered()
                        await Task.yield()
                    }
                } catch {
                    // An error ends only this trigger.
                }
            })
    }

    private func triggered() {
        machine.woke(time.now)
        machine.triggered()
        carryOut()
    }

    func resume() {
        machine.woke(time.now)
        machine.resume()
        carryOut()
    }

    func submit<Value: Command>(_ command: Value) throws -> UUID {
        let bound = try bindNew(command)
        let payload = try bound.encode()
        let id = UUID()
        defer { carryOut() }
        do {
            try transact {
                guard machine.pendingCount + machine.failedCount < policy.countLimit,
                    machine.byteCount + payload.count <= policy.byteLimit
                else { throw full }
                let bound = try upToDate(bound)
                fresh[id] = bound.command
                var submission = try submission(of: bound.command, Value.name, bound.payload ?? payload, date: time.date)
                if let earlier = machine.supersedable(in: bound.command.lane)?.submission, earlier.name == Value.name,
                    bound.command.supersedes(earlier.payload, earlier.version)
                {
                    submission.supersedes = machine.supersedable(in: bound.command.lane)?.id
                }
                return [OutboxEntry(id: id, lane: bound.command.lane, fact: .submitted(submission))]
            }
        } catch {
            fresh[id] = nil
            throw error
        }
        report(.submitted(name: Value.name), id)
        return id
    }

    private var full: StoreError {
        StoreError(
            .outboxFull,
            "submitting a command: the outbox has \(machine.pendingCount + machine.failedCount) commands of \(machine.byteCount) bytes; "
                + "deliver or discard some, or raise the limits of its policy")
    }

    private func bindNew<Value: Command>(_ command: Value) throws -> BoundCommand {
        guard let registration = registrations[Value.name] else {
            throw StoreError(.unregisteredCommand, "submitting a command \(Value.name): register its type first")
        }
        return registration.bindValue(command)
    }

    /// The command with identifiers replaced that are no longer temporary, and its payload if it differs.
    private func upToDate(_ command: BoundCommand) throws -> (command: BoundCommand, payload: Data?) {
        guard command.references.contains(where: { machine.replacements[$0] != nil }) else { return (command, nil) }
        let command = command.replacing(machine.replacements)
        return (command, try command.encode())
    }

    private func submission(
        of command: BoundCommand, _ name: String, _ payload: Data, date: Date
    ) throws -> OutboxEntry.Submission {
        guard let registration = registrations[name] else { throw StoreError(.unregisteredCommand, "encoding a command \(name)") }
        return OutboxEntry.Submission(
            name: name, version: registration.version, subject: command.subject,
            // Any other identifier is not temporary.
            references: command.references.filter { machine.creators[$0] != nil && $0 != command.creates },
            creates: command.creates, supersedes: nil, delivery: UUID(), date: date, payload: payload)
    }

    func cancel(_ id: UUID) throws -> CancelOutcome {
        defer { carryOut() }
        var outcome = CancelOutcome.unknown
        try transact {
            guard let item = machine.items[id], item.status != .delivered else { return [] }
            guard item.status == .pending, !item.isAttempted else {
                outcome = .alreadyDelivering
                return []
            }
            outcome = .canceled
            return [entry(item, .canceled)]
        }
        if outcome == .canceled { report(.canceled, id) }
        return outcome
    }

    func retry(_ id: UUID) throws -> Bool {
        try change(id, .retried) { $0.status == .failed ? .retried : nil }
    }

    func discard(_ id: UUID) throws -> Bool {
        try change(id, .discarded) { item in
            item.status == .failed || (item.status == .pending && machine.isUndecodable(item)) ? .discarded : nil
        }
    }

    func replace<Value: Command>(_ id: UUID, with command: Value) throws -> Bool {
        let bound = try bindNew(command)
        let payload = try bound.encode()
        defer { carryOut() }
        let isReplaced = try transact {
            guard let item = machine.items[id], item.status == .failed || (item.status == .pending && machine.isUndecodable(item))
            else { return [] }
            let bound = try upToDate(bound)
            let submission = try submission(of: bound.command, Value.name, bound.payload ?? payload, date: item.submission.date)
            return [OutboxEntry(id: id, lane: bound.command.lane, fact: .replaced(submission))]
        }
        if isReplaced { report(.replaced, id) }
        return isReplaced
    }

    private func change(
        _ id: UUID, _ event: OutboxEvent.Kind, _ decide: (OutboxMachine.Item) -> OutboxEntry.Fact?
    ) throws -> Bool {
        defer { carryOut() }
        let isChanged = try transact {
            guard let item = machine.items[id], let fact = decide(item) else { return [] }
            return [entry(item, fact)]
        }
        if isChanged { report(event, id) }
        return isChanged
    }

    /// Drops all commands, and waits for running attempts.
    func empty() async throws -> Int {
        var count = 0
        do {
            try log.compact { news in
                take(news)
                count = machine.pendingCount + machine.failedCount
                machine.clear()
                return []
            }
        } catch {
            machine.halt()
            carryOut()
            throw error
        }
        (foreign, recordCount, responses, unsettled) = ([], 0, [:], [:])
        carryOut()
        report(.cleared(count: count), nil)
        let running = attempts.current
        for task in running.values { task.cancel() }
        guard !running.isEmpty else { return count }
        let instant = time.now.advanced(by: policy.clearTimeout)
        await withTaskGroup { [attempts, time] group in
            group.addTask { _ = try? await attempts.wait { $0.keys.contains(where: { running[$0] != nil }) ? nil : () } }
            group.addTask { try? await time.sleep(until: instant) }
            await group.next()
            group.cancelAll()
        }
        return count
    }

    // MARK: Observing

    func state(of subject: String?) -> OutboxState {
        guard let subject else {
            return OutboxState(
                pendingCount: machine.pendingCount, deliveringCount: attempts.read { $0.count }, failedCount: machine.failedCount,
                undecodableCount: machine.undecodableCount, isStopped: machine.isStopped,
                commands: commands(after: 0, limit: 100))
        }
        let items = machine.commands(changing: subject).filter { $0.status != .delivered }
        let commands = items.map { command($0) }
        func count(_ status: OutboxCommand.Status) -> Int { commands.count { $0.status == status } }
        return OutboxState(
            pendingCount: items.count - count(.failed), deliveringCount: count(.delivering), failedCount: count(.failed),
            undecodableCount: count(.undecodable), isStopped: machine.isStopped, commands: Array(commands.prefix(100)))
    }

    func commands(after order: UInt64, limit: Int) -> [OutboxCommand] {
        machine.commands(after: order, limit: max(0, limit)) { $0.status != .delivered }.map { command($0) }
    }

    private func command(_ item: OutboxMachine.Item) -> OutboxCommand {
        let status: OutboxCommand.Status =
            if item.status == .failed { .failed } else if attempts.read({ $0[item.id] != nil }) { .delivering } else if machine
                .isUndecodable(item)
            { .undecodable } else { .pending }
        let next = item.notBefore.flatMap { _ in item.deferral.map { $0.date.addingTimeInterval($0.delay.timeInterval) } }
        return OutboxCommand(
            id: item.id, name: item.submission.name, lane: item.lane, submittedAt: item.submission.date, status: status,
            attempts: item.attempts, nextAttempt: status == .pending ? next : nil,
            lastError: item.failure?.error ?? item.deferral?.error, payload: item.submission.payload, order: item.order)
    }

    /// Whether no command is left, for tests.
    var isEmpty: Bool { machine.items.isEmpty }

    private var undelivered: Int { machine.pendingCount - machine.undecodableCount }

    func drain(until timeout: Duration) async -> DrainOutcome {
        let instant = time.now.advanced(by: timeout)
        await withTaskGroup { [version, time] group in
            group.addTask { [weak self] in
                var seen: UInt64 = 0
                while let count = await self?.undelivered, count > 0 {
                    let known = seen
                    guard let next = try? await version.wait(until: { $0 > known ? $0 : nil }) else { return }
                    seen = next
                }
            }
            group.addTask { try? await time.sleep(until: instant) }
            await group.next()
            group.cancelAll()
        }
        return undelivered > 0 ? .pending(undelivered) : .drained
    }

    private func report(_ kind: OutboxEvent.Kind, _ command: UUID?) {
        events += 1
        onEvent?(OutboxEvent(number: events, command: command, kind: kind))
    }
}

extension OutboxCore: CacheScopeMember {
    func clear() async throws { _ = try await empty() }

    /// Commands are on disk when they are submitted.
    func waitUntilSaved() async throws {}
}
