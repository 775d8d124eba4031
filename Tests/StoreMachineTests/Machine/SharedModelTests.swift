import Foundation
import Testing
import Trials
import StoreCoreTesting
@testable import StoreCore

/// Checks D1 to D3 in every order of the steps of two stores over one shared cacher: the machines and queues are real, the cacher is a model.
///
/// `STOREHOUSE_SEEDS=N` checks N times as many orders of each scenario.
struct SharedModelTests {
    static let scenarios: [[[SharedModel.Operation]]] = [
        [[.edit], [.edit]], [[.edit, .edit], [.edit]], [[.set], [.edit]], [[.set], [.set]], [[.clear], [.edit]],
        [[.fetch], [.set]], [[.fetch], [.edit]], [[.fetch], [.clear]], [[.fetch, .edit], [.edit]], [[.edit, .fetch], [.edit]],
        [[.invalidate], [.edit]], [[.invalidate], [.set]], [[.clear, .invalidate], [.set]],
        [[.removeAll, .invalidate], [.set]], [[.fetch, .set], [.fetch]], [[.removeAll], [.edit]],
        [[.removeAll], [.fetch]], [[.removeAll], [.set]], [[.removeAll], [.set, .edit]],
        [[.edit, .removeAll], [.set, .edit]], [[.set, .removeAll], []], [[.removeAll, .set], []],
        [[.set, .removeAll, .set], []], [[.set, .removeAll, .set], [.fetch]], [[.set, .removeAll], [.invalidate]],
    ]

    @Test(arguments: scenarios)
    func `D1 to D3: in every order of steps two stores end with one record and lose no update and no invalidation`(
        scenario: [[SharedModel.Operation]]
    ) {
        check(scenario, faults: 0)
    }

    @Test(arguments: scenarios, 1...2)
    func `D3, D8: the same while saves fail, and each lost update is reported`(scenario: [[SharedModel.Operation]], faults: Int) {
        check(scenario, faults: faults)
    }

    private func check(_ scenario: [[SharedModel.Operation]], faults: Int) {
        for isObserved in [true, false] {
            for gaps in 0...1 { check(scenario, SharedModel.Conditions(faults: faults, gaps: gaps, isObserved: isObserved)) }
        }
    }

    private func check(_ scenario: [[SharedModel.Operation]], _ conditions: SharedModel.Conditions) {
        var choices: [(taken: Int, count: Int)] = []
        var runs = 0
        // A model runs on one thread, in which the thread sanitizer has little to find.
        let limit = states(300, quick: 4)
        repeat {
            let model = SharedModel(scenario, conditions)
            var index = 0
            // A choice beyond those of the last order is the first option.
            model.run { count in
                if index == choices.count { choices.append((0, count)) }
                defer { index += 1 }
                return choices[index].taken
            }
            runs += 1
            if let violation = model.violation {
                Issue.record("\(violation), with \(conditions), after \(model.history)")
                return
            }
            // The next order: the last choice that has another option.
            while let last = choices.last, last.taken + 1 >= last.count { choices.removeLast() }
            if !choices.isEmpty { choices[choices.count - 1].taken += 1 }
        } while !choices.isEmpty && runs < limit
        // The orders beyond the limit are sampled.
        guard !choices.isEmpty else { return }
        for seed in 0..<limit {
            let model = SharedModel(scenario, conditions)
            var random = SplitMix(seed: seed)
            model.run { random.below($0) }
            if let violation = model.violation {
                Issue.record("\(violation), with \(conditions) and seed \(seed), after \(model.history)")
                return
            }
        }
    }
}

/// Two stores and the cacher between them.
final class SharedModel {
    enum Operation: String, Sendable { case edit, set, clear, fetch, invalidate, removeAll }

    struct Conditions {
        /// The number of saves that may fail, and of times that the announcements of changes may be lost.
        var faults = 0
        var gaps = 0
        /// Whether each key has an observer.
        var isObserved = true
    }

    /// A step that may come next.
    enum Step: Hashable {
        /// The next operation of a user begins, or an edit that was refused is applied again.
        case begin(Int), reapply(Int)
        /// The oldest call of a user reaches the cacher, and returns.
        case perform(Int), end(Int)
        /// The save of a user fails, or is tried again.
        case fail(Int), retry(Int)
        /// A user learns of the next change, or only that changes were lost.
        case deliver(Int), loseChanges(Int)
        case endFetch(Int)
    }

    /// The cacher: one key, and the log of its changes.
    private struct Server {
        var content: Int?
        var isInvalidated = false
        var revision = Revision.none
        var floor: UInt64 = 0
        var log: [(revision: Revision, removesAll: Bool)] = []
        /// The time and the writer of each change that is no result of a fetch.
        var updates: [(time: Int, writer: UInt64)] = []

        var next: UInt64 { (log.last?.revision.number ?? 0) + 1 }
    }

    private enum Call {
        case load(Ticket, Int??, isInvalidated: Bool)
        case save(CacheRecord<Int>?, Revision?, SaveOutcome<Int>?)
        case removeAll(Revision?)
    }

    private final class User {
        let writer: UInt64
        let position = WatchedState(Revision.none)
        var machine: KeyMachine<Int>
        var queue = CacherQueue<Int>()
        var operations: [Operation]
        /// Whether any of the operations removes the content.
        let clears: Bool
        var delivered = 0
        var calls: [Call] = []
        var fetch: (ticket: Ticket, content: Int)?
        var edits: [CallerID: Int] = [:]
        var refused: [Int] = []

        init(_ writer: UInt64, _ operations: [Operation]) {
            self.writer = writer
            self.operations = operations
            clears = operations.contains(.clear) || operations.contains(.removeAll)
            machine = KeyMachine(rules: KeyRules(position: { [position] in position.current }))
        }
    }

    private struct Unavailable: Error {}

    private var server = Server()
    private let users: [User]
    private var tickets = TicketCounter()
    private var time = 0
    private var lastID: CallerID = 0
    private var nextBit = 1
    /// The time at which the fetch of a content began.
    private var fetchTimes: [Int: Int] = [:]
    /// Whether the operations only edit content, or fetch it while no save fails. A fetch may replace an edit that could not be saved.
    private let changesContent: Bool
    /// The latest change of the cacher when a store invalidated the content.
    private var invalidated: Revision?
    /// The faults and gaps that may still come.
    private var conditions: Conditions
    /// The number of changes that were reported as dropped.
    private var drops = 0
    private(set) var history: [Step] = []
    private(set) var violation: String?
    private let clock = ManualTime()

    init(_ scenario: [[Operation]], _ conditions: Conditions) {
        self.conditions = conditions
        users = scenario.enumerated().map { User(UInt64($0.offset + 1), $0.element) }
        changesContent = scenario.joined().allSatisfy { $0 == .edit || ($0 == .fetch && conditions.faults == 0) }
        server.content = 0
        server.revision = Revision(number: 1, writer: 9)
        server.log = [(server.revision, false)]
        for user in users {
            user.delivered = 1
            user.position.update { $0 = server.revision }
            if conditions.isObserved {
                transition(user) { $0.observerJoined(forceRefresh: false, &$1) }
            } else {
                // Without an observer, nothing fetches the content again after it was removed.
                transition(user) { _ = $0.callerArrived(0, needing: .cached, &$1) }
            }
        }
    }

    /// Runs all steps, in the order of the choices between as many options.
    func run(_ choose: (_ count: Int) -> Int) {
        while violation == nil {
            let steps = steps
            if steps.isEmpty { break }
            apply(steps[choose(steps.count)])
        }
        checkEnd()
    }

    // MARK: Steps

    private var steps: [Step] {
        guard history.count < 400 else {
            violation = "the stores do not come to rest"
            return []
        }
        return users.indices.flatMap { index -> [Step] in
            let user = users[index]
            var steps: [Step] = []
            if !user.operations.isEmpty, user.machine.origin.isKnown { steps.append(.begin(index)) }
            if !user.refused.isEmpty, user.machine.origin.isKnown { steps.append(.reapply(index)) }
            switch user.calls.first {
            case nil: break
            case .save(_, _, nil):
                steps.append(.perform(index))
                if conditions.faults > 0 { steps.append(.fail(index)) }
            case .load(_, .none, _), .removeAll(nil): steps.append(.perform(index))
            default: steps.append(.end(index))
            }
            if user.delivered < server.log.count {
                steps.append(.deliver(index))
                if conditions.gaps > 0 { steps.append(.loseChanges(index)) }
            }
            if user.fetch != nil { steps.append(.endFetch(index)) }
            if user.machine.saving.failure != nil, user.calls.isEmpty { steps.append(.retry(index)) }
            return steps
        }
    }

    private func apply(_ step: Step) {
        history.append(step)
        time += 1
        switch step {
        case .begin(let index): begin(users[index].operations.removeFirst(), users[index])
        case .reapply(let index): edit(users[index].refused.removeFirst(), users[index])
        case .perform(let index): perform(users[index])
        case .end(let index): end(users[index])
        case .fail(let index):
            conditions.faults -= 1
            guard case .save(let record, _, nil) = users[index].calls.removeFirst() else { return }
            transition(users[index]) { $0.saveFinished(Unavailable(), removing: record == nil, &$1) }
            users[index].queue.callEnded(0)
            startCalls(users[index])
        case .retry(let index):
            let id = nextID()
            transition(users[index]) { _ = $0.callerArrived(id, needing: .allSaved, &$1) }
        case .deliver(let index): deliver(users[index])
        case .loseChanges(let index):
            let user = users[index]
            conditions.gaps -= 1
            user.delivered = server.log.count
            transition(user) { $0.changedElsewhere(StoreCore.SharedKey.gap, &$1) }
            user.position.update { $0 = Revision(number: server.next - 1, writer: .max) }
        case .endFetch(let index):
            let user = users[index]
            guard let fetch = user.fetch else { return }
            user.fetch = nil
            transition(user) { $0.fetchFinished(fetch.ticket, .success(Fetched(content: fetch.content, details: nil)), &$1) }
        }
    }

    private func begin(_ operation: Operation, _ user: User) {
        switch operation {
        case .edit:
            let bit = nextBit
            nextBit *= 2
            edit(bit, user)
        case .set: transition(user) { [time] in $0.updated(1_000 * time, &$1) }
        case .clear: transition(user) { $0.cleared(&$1) }
        case .invalidate:
            invalidated = server.revision
            transition(user) { $0.invalidated(&$1) }
        case .fetch:
            let id = nextID()
            transition(user) { _ = $0.callerArrived(id, needing: .refresh, &$1) }
        case .removeAll:
            user.queue.removeAll()
            transition(user) { $0.clearedWithCacher(&$1) }
        }
    }

    private func nextID() -> CallerID {
        lastID += 1
        return lastID
    }

    private func edit(_ bit: Int, _ user: User) {
        // Without content there is nothing to change.
        guard let content = user.machine.book.held?.record.content else { return }
        let id = nextID()
        user.edits[id] = bit
        transition(user) { machine, transition in
            let revision = machine.updated(content | bit, as: .derived, &transition)
            if machine.callerArrived(id, needing: .savedEdit(revision), &transition) != nil { user.edits[id] = nil }
        }
    }

    private func transition(_ user: User, _ body: (inout KeyMachine<Int>, inout KeyMachine<Int>.Transition) -> Void) {
        var transition = KeyMachine<Int>.Transition(time: clock, tickets: tickets)
        body(&user.machine, &transition)
        tickets = transition.tickets
        transition.actions.takeAll().consumeEach { action in
            switch action {
            case .read(let ticket): user.queue.load(0, ticket)
            case .save: user.queue.write(0)
            case .fetch(let ticket, _):
                let content = 1_000_000 * time
                fetchTimes[content] = time
                user.fetch = (ticket, content)
            case .cancel(let ticket): if user.fetch?.ticket == ticket { user.fetch = nil }
            case .resume(let id, let answer):
                guard let bit = user.edits.removeValue(forKey: id) else { return }
                if case .outdated = answer { user.refused.append(bit) }
            case .report(.droppedUnsaved): drops += 1
            case .readEnded, .saveFailed, .saveRecovered, .report: break
            }
        }
        startCalls(user)
    }

    private func startCalls(_ user: User) {
        for call in user.queue.takeCalls() {
            switch call {
            case .load(_, let ticket): user.calls.append(.load(ticket, .none, isInvalidated: false))
            case .write:
                guard user.machine.saving.isRequested else {
                    user.queue.callEnded(0)
                    startCalls(user)
                    continue
                }
                let (record, base) = user.machine.saveBegan()
                user.calls.append(.save(record, base, nil))
            case .keys: break
            case .removeAll: user.calls.append(.removeAll(nil))
            }
        }
    }

    // MARK: The cacher

    private func perform(_ user: User) {
        switch user.calls[0] {
        case .load(let ticket, _, _): user.calls[0] = .load(ticket, .some(server.content), isInvalidated: server.isInvalidated)
        case .save(let record, let base, _): user.calls[0] = .save(record, base, commit(record, base, user))
        case .removeAll:
            let revision = Revision(number: server.next, writer: user.writer)
            server.log.append((revision, true))
            (server.content, server.revision, server.floor) = (nil, revision, revision.number)
            server.updates.append((time, user.writer))
            user.calls[0] = .removeAll(revision)
        }
    }

    private func commit(_ record: CacheRecord<Int>?, _ base: Revision?, _ user: User) -> SaveOutcome<Int> {
        if let base, server.revision > base, server.revision.writer != user.writer || server.floor > base.number {
            let newer = server.content.map { self.record($0, server.isInvalidated) }
            return .superseded(by: newer, server.revision)
        }
        if record == nil, !user.clears { violation = "a record was removed that no store has cleared" }
        let began = record.flatMap { fetchTimes[$0.content / 1_000 * 1_000] }
        if let began, record.map({ $0.content % 1_000 == 0 && !$0.isInvalidated }) == true {
            // A change before this store's own last change has been overwritten by that.
            let others = server.updates.reversed().prefix { $0.writer != user.writer }
            if others.contains(where: { $0.time > began }) { violation = "the result of an older fetch was saved over a newer change" }
        } else {
            server.updates.append((time, user.writer))
        }
        let revision = Revision(number: server.next, writer: user.writer)
        server.log.append((revision, false))
        (server.content, server.isInvalidated, server.revision) = (record?.content, record?.isInvalidated ?? false, revision)
        return .saved(revision)
    }

    private func record(_ content: Int, _ isInvalidated: Bool) -> CacheRecord<Int> {
        var record = CacheRecord(content: content, fetchedAt: clock.date)
        record.isInvalidated = isInvalidated
        return record
    }

    private func held(_ record: CacheRecord<Int>) -> HeldRecord<Int> {
        HeldRecord(record, remaining: .forever, needsRefresh: false, now: clock.now)
    }

    private func end(_ user: User) {
        switch user.calls.removeFirst() {
        case .load(let ticket, let content, let isInvalidated):
            let loaded = (content ?? nil).map { held(record($0, isInvalidated)) }
            transition(user) { $0.cacheReadFinished(ticket, .success(loaded), &$1) }
            user.queue.callEnded(0)
        case .save(let record, _, .saved(let revision)?):
            transition(user) { $0.saveFinished(nil, removing: record == nil, sharedRevision: revision, &$1) }
            user.queue.callEnded(0)
        case .save(_, _, .superseded(let newer, let revision)?):
            transition(user) { [self] in $0.saveSuperseded(by: newer.map { held($0) }, revision, &$1) }
            user.queue.callEnded(0)
        case .removeAll: user.queue.clearingEnded(began: clock.date, fails: false)
        case .save(_, _, nil): break
        }
        startCalls(user)
    }

    private func deliver(_ user: User) {
        let change = server.log[user.delivered]
        user.delivered += 1
        if change.revision.writer != user.writer {
            transition(user) { machine, transition in
                if change.removesAll {
                    machine.clearedElsewhere(change.revision, &transition)
                } else {
                    machine.changedElsewhere(change.revision, &transition)
                }
            }
        }
        user.position.update { $0 = Revision(number: change.revision.number, writer: .max) }
    }

    // MARK: Laws

    private func checkEnd() {
        guard violation == nil else { return }
        for user in users {
            let machine = user.machine
            if machine.saving.tried != machine.book.revision || machine.saving.isRunning || machine.origin.reading != nil {
                violation = "store \(user.writer) is not at rest"
            } else if machine.book.held?.record.content != server.content {
                violation =
                    "store \(user.writer) has \(String(describing: machine.book.held?.record.content)) "
                    + "and the cacher \(String(describing: server.content))"
            } else if machine.saving.elsewhere.unread != nil || machine.saving.next != nil {
                violation = "store \(user.writer) waits for a change"
            } else if !user.edits.isEmpty {
                violation = "the caller of an edit waits forever"
            }
        }
        if invalidated == server.revision, server.content != nil, !server.isInvalidated { violation = "an invalidation was lost" }
        // The result of a fetch replaces the edits before it.
        if changesContent, server.content ?? 0 < 1_000_000, server.content != nextBit - 1, drops == 0 {
            violation = "an edit was lost: \(String(describing: server.content))"
        }
    }
}
