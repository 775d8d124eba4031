import Foundation

@testable import StoreOutbox
@testable import StoreCore

/// An event of the model of an outbox.
enum OutboxStep: Hashable {
    enum Ending: Hashable, CaseIterable { case success, transient, requested, permanent, fatal }

    case submit(lane: Int)
    case draft(lane: Int)
    /// Creates an entity under a temporary identifier.
    case create(lane: Int)
    /// Refers to the entity of the newest creating command.
    case refer(lane: Int)
    case cancel(Int)
    case discard(Int)
    case retry(Int)
    case end(Int, Ending)
    case retire(Int)
    case wake
    case trigger
    case resume
    case restart
    case compact
    case clear
    case loseLease
    case grantLease
}

/// A machine, its log, and a simple model of what must be true, which is written without regard to the machine.
struct OutboxWorld {
    /// A command as the laws describe it.
    struct Expected: Hashable {
        enum Status: Hashable { case pending, failed, delivered, gone }

        var number: Int
        var lane: Int
        var order: Int
        var isDraft = false
        var isCreating = false
        /// The command that creates the entity which this one refers to; `nil` once its identifier is replaced.
        var creator: Int?
        var status = Status.pending
        var isAttempted = false
        /// The failed command that made this one fail.
        var cause: Int?
    }

    let rules: OutboxMachine.Rules
    private(set) var machine: OutboxMachine
    private(set) var log: [OutboxEntry] = []
    private(set) var expected: [Expected] = []
    private(set) var violations: [String] = []
    /// The commands that are being performed.
    private(set) var performing: [Int] = []
    /// The shown patches.
    private var visible: Set<UUID> = []
    private var confirmed: Set<UUID> = []
    private var now = MonotonicInstant(nanoseconds: 0)
    private var lastOrder = 0
    private var deliveryIDs: [UUID: UUID] = [:]

    init(_ rules: OutboxMachine.Rules) {
        self.rules = rules
        machine = OutboxMachine(rules: rules)
        boot()
    }

    private mutating func boot() {
        machine.woke(now)
        for entry in log { machine.apply(entry, date: date) }
        // The engine shows the patches when the types are registered.
        _ = machine.takeActions()
        machine.register("c", version: 1)
        visible = Set(machine.commands { $0.status == .pending }.map(\.id))
        confirmed = Set(machine.commands { $0.status == .delivered }.map(\.id))
        for item in machine.commands()
        where item.status == .pending && item.submission.references.contains(where: { machine.replacements[$0] != nil }) {
            rewrite(item.id)
        }
        machine.start()
        machine.setDeliverer(true)
        carryOut()
    }

    private var date: Date { Date(timeIntervalSinceReferenceDate: MonotonicInstant(nanoseconds: 0).duration(to: now).timeInterval) }

    static func id(_ number: Int) -> UUID {
        UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, UInt8(number / 250), UInt8(number % 250 + 1)))
    }

    // MARK: Events

    func possibleSteps(maxCommands: Int, lanes: Int) -> [OutboxStep] {
        var steps: [OutboxStep] = []
        if expected.count < maxCommands {
            for lane in 0..<lanes {
                steps += [.submit(lane: lane), .draft(lane: lane), .create(lane: lane)]
                if expected.contains(where: \.isCreating) { steps.append(.refer(lane: lane)) }
            }
        }
        for item in expected {
            switch item.status {
            case .pending:
                steps.append(.cancel(item.number))
                // Without an attempt, discarding is the same as canceling.
                if item.isAttempted, !performing.contains(item.number) { steps.append(.discard(item.number)) }
            case .failed: steps += [.retry(item.number), .discard(item.number)]
            case .delivered: steps.append(.retire(item.number))
            case .gone: break
            }
        }
        for number in performing { steps += OutboxStep.Ending.allCases.map { .end(number, $0) } }
        if machine.nextWake != nil { steps += [.wake, .trigger] }
        if machine.isStopped { steps.append(.resume) }
        if !log.isEmpty { steps += [.restart, .compact, .clear] }
        steps.append(machine.isDeliverer ? .loseLease : .grantLease)
        return steps
    }

    mutating func apply(_ step: OutboxStep) {
        machine.woke(now)
        switch step {
        case .submit(let lane): submit(lane)
        case .draft(let lane): submit(lane, isDraft: true)
        case .create(let lane): submit(lane, isCreating: true)
        case .refer(let lane): submit(lane, creator: expected.last { $0.isCreating }?.number)
        case .cancel(let number): cancel(number)
        case .discard(let number): discard(number)
        case .retry(let number): retry(number)
        case .end(let number, let ending): end(number, ending)
        case .retire(let number):
            write(number, .retired)
            expected[number].status = .gone
            confirmed.remove(Self.id(number))
        case .wake:
            guard let next = machine.nextWake else { break }
            now = next
            machine.woke(now)
        case .trigger: machine.triggered()
        case .resume: machine.resume()
        case .restart:
            machine = OutboxMachine(rules: rules)
            performing = []
            boot()
        case .compact:
            let before = machine
            log = machine.entries()
            // Another process sees that the log was replaced.
            machine.replaceAll(log, date: date)
            if durable(machine) != durable(before) { violate("O14", "compaction changes the state") }
        case .clear:
            log = []
            machine.clear()
            for number in expected.indices { expected[number].status = .gone }
        case .loseLease: machine.setDeliverer(false)
        case .grantLease: machine.setDeliverer(true)
        }
        carryOut()
        check()
    }

    private mutating func submit(_ lane: Int, isDraft: Bool = false, isCreating: Bool = false, creator: Int? = nil) {
        let number = expected.count
        var item = Expected(number: number, lane: lane, order: nextOrder(), isDraft: isDraft, isCreating: isCreating, creator: creator)
        var superseded: UUID?
        if isDraft, let last = inLane(lane).last, last.isDraft, !last.isAttempted {
            expected[last.number].status = .gone
            superseded = Self.id(last.number)
        }
        if let creator {
            switch expected[creator].status {
            case .pending: break
            case .failed: (item.status, item.cause) = (.failed, creator)
            case .delivered, .gone: item.creator = nil
            }
            // The creator was canceled or discarded, so its identifier is none.
            if item.creator != nil, machine.creators["t\(creator)"] == nil { item.creator = nil }
        }
        expected.append(item)
        let submission = OutboxEntry.Submission(
            name: "c", version: 1, subject: .none, references: item.creator.map { ["t\($0)"] } ?? [],
            creates: isCreating ? "t\(number)" : nil, supersedes: superseded, delivery: UUID(), date: date, payload: Data())
        write(number, .submitted(submission))
    }

    private mutating func nextOrder() -> Int {
        lastOrder += 1
        return lastOrder
    }

    /// The commands of a lane that are not done, in their order.
    private func inLane(_ lane: Int) -> [Expected] {
        expected.filter { item in
            item.lane == lane && (item.status == .pending || (item.status == .failed && !rules.continuesAfterFailure))
        }.sorted { $0.order < $1.order }
    }

    private mutating func cancel(_ number: Int) {
        write(number, .canceled)
        guard !expected[number].isAttempted else { return }
        expected[number].status = .gone
        failReferrers(to: number, cause: nil)
    }

    private mutating func discard(_ number: Int) {
        write(number, .discarded)
        expected[number].status = .gone
        failReferrers(to: number, cause: nil)
    }

    private mutating func failReferrers(to number: Int, cause: Int?) {
        for other in expected.indices where expected[other].creator == number && expected[other].status == .pending {
            (expected[other].status, expected[other].cause) = (.failed, cause)
            failReferrers(to: other, cause: other)
        }
    }

    private mutating func retry(_ number: Int) {
        write(number, .retried)
        expectRetry(number)
    }

    private mutating func expectRetry(_ number: Int) {
        expected[number].order = nextOrder()
        expected[number].status = .pending
        expected[number].cause = nil
        if let creator = expected[number].creator, expected[creator].status == .failed || expected[creator].status == .gone {
            (expected[number].status, expected[number].cause) = (.failed, expected[creator].status == .failed ? creator : nil)
            return
        }
        let others = expected.filter { $0.cause == number && $0.status == .failed }
        for other in others.sorted(by: { $0.order < $1.order }) { expectRetry(other.number) }
    }

    private mutating func end(_ number: Int, _ ending: OutboxStep.Ending) {
        performing.removeAll { $0 == number }
        guard expected[number].status == .pending else { return machine.ended(Self.id(number)) }
        switch ending {
        case .success:
            write(number, .delivered(replacement: expected[number].isCreating ? "r\(number)" : nil))
            expected[number].status = .delivered
            for other in expected.indices where expected[other].creator == number { expected[other].creator = nil }
        case .transient, .requested:
            let requested = ending == .requested ? Duration.seconds(10) : .zero
            write(number, .deferred(.init(attempts: 1, date: date, delay: .seconds(10), requested: requested, error: "offline")))
        case .permanent:
            write(number, .failed(.init(attempts: 1, date: date, error: "refused")))
            expected[number].status = .failed
            failReferrers(to: number, cause: number)
        case .fatal: machine.halt()
        }
        machine.ended(Self.id(number))
    }

    private mutating func write(_ number: Int, _ fact: OutboxEntry.Fact) {
        let entry = OutboxEntry(id: Self.id(number), lane: OutboxLane(name: "\(expected[number].lane)"), fact: fact)
        // What is written must be what is read.
        guard let read = OutboxEntry(entry.record), read == entry else { return violate("O14", "\(entry) is read as something else") }
        log.append(entry)
        machine.apply(entry, date: date)
        // Two processes may apply an entry that one of them has written.
        let before = durable(machine)
        machine.apply(entry, date: date)
        if durable(machine) != before, fact != .retried { violate("O13", "\(fact) has an effect twice") }
    }

    private mutating func rewrite(_ id: UUID) {
        guard let item = machine.items[id], item.status == .pending else { return }
        var submission = item.submission
        submission.references.removeAll { machine.replacements[$0] != nil }
        submission.delivery = UUID()
        let entry = OutboxEntry(id: id, lane: item.lane, fact: .replaced(submission))
        log.append(entry)
        machine.apply(entry, date: date)
    }

    // MARK: Actions

    private mutating func carryOut() {
        var actions = machine.takeActions()
        while !actions.isEmpty {
            for action in actions { carryOut(action) }
            actions = machine.takeActions()
        }
    }

    private mutating func carryOut(_ action: OutboxMachine.Action) {
        switch action {
        case .begin(let id):
            guard machine.mayBegin(id), let number = number(of: id) else { return machine.ended(id) }
            if machine.items[id]?.isAttempted == false { write(number, .attempted) }
            expected[number].isAttempted = true
            machine.began(id)
        case .perform(let id, _):
            guard let number = number(of: id) else { return violate("O3", "an unknown command is performed") }
            begin(number)
        case .rewrite(let id): rewrite(id)
        case .show(let id, let superseded):
            if let superseded { visible.remove(superseded) }
            visible.insert(id)
        case .drop(let id):
            visible.remove(id)
            confirmed.remove(id)
        case .settle(let item):
            let id = item.id
            visible.remove(id)
            confirmed.insert(id)
        case .replaceKey:
            // The keys of this log are those that the machine had.
            violate("O8", "a key is replaced that was replaced before")
        }
    }

    private func number(of id: UUID) -> Int? { expected.indices.first { Self.id($0) == id } }

    /// A delivery begins: checks everything that the laws demand of it.
    private mutating func begin(_ number: Int) {
        let item = expected[number]
        if item.status != .pending { violate("O5, O11", "\(number) is performed, but is \(item.status)") }
        if let first = inLane(item.lane).first, first.number != number { violate("O3", "\(number) is performed before \(first.number)") }
        if performing.contains(where: { expected[$0].lane == item.lane && expected[$0].status == .pending }) {
            violate("O3", "two commands of a lane are performed")
        }
        if performing.count(where: { expected[$0].status == .pending }) >= rules.width { violate("O3", "too many lanes deliver") }
        if let creator = item.creator { violate("O8", "\(number) is performed before its creator \(creator)") }
        if !machine.isDeliverer { violate("O13", "\(number) is performed without the lease") }
        if machine.isStopped { violate("O5", "\(number) is performed while all lanes are stopped") }
        if let delivery = machine.items[Self.id(number)]?.submission.delivery {
            let known = deliveryIDs[Self.id(number)] ?? delivery
            deliveryIDs[Self.id(number)] = delivery
            if known != delivery { violate("O4", "\(number) is delivered under two identities") }
        }
        performing.append(number)
    }

    // MARK: Laws

    private mutating func violate(_ law: String, _ text: String) { violations.append("\(law): \(text)") }

    private mutating func check() {
        let real = machine.commands().map { "\($0.id) \($0.lane.text) \($0.status) \($0.isAttempted)" }
        let wanted = expected.filter { $0.status != .gone }.sorted { $0.order < $1.order }
            .map { "\(Self.id($0.number)) \($0.lane) \($0.status) \($0.isAttempted)" }
        if real != wanted { violate("O1-O11", "the machine has \(real), expected are \(wanted)") }
        let pending = Set(expected.filter { $0.status == .pending }.map { Self.id($0.number) })
        if visible != pending { violate("O7", "shown are \(visible), expected are \(pending)") }
        let delivered = Set(expected.filter { $0.status == .delivered }.map { Self.id($0.number) })
        if confirmed != delivered { violate("O7", "folded are \(confirmed), expected are \(delivered)") }
        var again = OutboxMachine(rules: rules)
        again.woke(now)
        for entry in log { again.apply(entry, date: date) }
        if durable(again) != durable(machine) { violate("O2", "a restart has \(durable(again)), not \(durable(machine))") }
        var compacted = OutboxMachine(rules: rules)
        compacted.woke(now)
        for entry in machine.entries() { compacted.apply(entry, date: date) }
        if durable(compacted) != durable(machine) { violate("O14", "compaction leaves \(durable(compacted)), not \(durable(machine))") }
        let bytes = machine.commands().reduce(0) { $0 + $1.submission.payload.count }
        if machine.byteCount != bytes { violate("O12", "\(machine.byteCount) bytes are counted, not \(bytes)") }
        if machine.pendingCount != pending.count { violate("O15", "\(machine.pendingCount) are counted as pending") }
    }

    /// The part of the state that a restart keeps.
    private struct Durable: Equatable {
        var items: [OutboxMachine.Item]
        var replacements: [String: String]
    }

    private func durable(_ machine: OutboxMachine) -> Durable {
        let items = machine.commands().map { item in
            var item = item
            // Compaction renumbers the order, and a delay continues from the time at which it is read.
            (item.order, item.notBefore, item.requestedUntil, item.isUnreadable) = (0, nil, nil, false)
            return item
        }
        return Durable(items: items, replacements: machine.replacements)
    }

    /// Everything that distinguishes two states, without names.
    var fingerprint: String {
        let items = machine.commands().map { item -> String in
            let (number, lane) = (number(of: item.id) ?? -1, item.lane.text)
            let wait = item.notBefore.map { now.duration(to: $0) > .zero }
            return "\(number)/\(lane)/\(item.status)/\(item.isAttempted)/\(item.submission.references)/\(String(describing: wait))/"
                + "\(item.requestedUntil != nil)/\(String(describing: item.failure?.cause))/\(machine.isActive(item.id))"
        }
        return
            "\(items) \(expected.map(\.status)) \(performing) \(machine.isStopped) \(machine.isDeliverer) \(machine.replacements.keys.sorted())"
    }

    /// Lets every delivery succeed: every command that does not wait for a failed one must then be delivered.
    func settled() -> OutboxWorld {
        var world = self
        if world.machine.isStopped { world.apply(.resume) }
        if !world.machine.isDeliverer { world.apply(.grantLease) }
        for _ in 0..<100 where world.violations.isEmpty {
            if let number = world.performing.first {
                world.apply(.end(number, .success))
            } else if world.machine.nextWake != nil {
                world.apply(.wake)
            } else {
                break
            }
        }
        let waiting = world.expected.filter { item in
            item.status == .pending && !world.inLane(item.lane).contains { $0.status == .failed && $0.order < item.order }
                && item.creator == nil
        }
        if !waiting.isEmpty { world.violate("O3, O5", "commands wait forever: \(waiting.map(\.number))") }
        return world
    }
}
