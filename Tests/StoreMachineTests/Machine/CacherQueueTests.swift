internal import Foundation
import Testing
import Trials

@testable import StoreCore

/// Checks the cacher's queue in every order of a few requests and ends of calls, against a list of requests in plain order.
///
/// `STOREHOUSE_SEEDS=N` searches N times as many states.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct CacherQueueTests {
    /// Breadth first, so that the first violation has the shortest history.
    @Test func `C6: every order of requests and ends starts the calls that the rules allow`() async {
        let limit = states(10_000)
        var seen: Set<QueueWorld> = [QueueWorld()]
        var frontier: [(world: QueueWorld, history: [QueueEvent])] = [(QueueWorld(), [])]
        while !frontier.isEmpty, seen.count < limit {
            var reached: [(world: QueueWorld, history: [QueueEvent])] = []
            for (world, history) in frontier where seen.count < limit {
                await Task.yield()
                for event in world.events {
                    var next = world
                    next.apply(event)
                    if let violation = next.violation ?? next.trace {
                        Issue.record("\(violation), after \(history + [event])")
                        return
                    }
                    if seen.insert(next).inserted { reached.append((next, history + [event])) }
                }
            }
            frontier = reached
        }
        if isLongRun { print("\(seen.count) states\(seen.count < limit ? ", complete" : "")") }
    }

    @Test func `C15: keys that were read at once cost nothing after their calls have ended`() {
        var queue = CacherQueue<Int>()
        for key in 0..<1_000 { queue.load(key, Ticket(number: UInt64(key) + 1)) }
        #expect(queue.capacity >= 1_000)
        for key in 0..<1_000 { queue.callEnded(key) }
        #expect(queue.capacity == 0)
    }

    /// A fact about failed saves.
    enum Fact: Hashable {
        case failed(Int), recovered(Int), second
    }

    @Test(arguments: [nil, 0, 1, 2])
    func `C6: after a successful save the oldest failed save that may be tried is tried again after the minimum interval`(idle: Int?) {
        let facts = (0..<3).flatMap { [Fact.failed($0), .recovered($0)] } + [.second]
        func explore(_ queue: CacherQueue<Int>, _ failures: [(key: Int, time: Int)], _ now: Int, _ history: [Fact]) {
            let expected = failures.first { $0.key != idle }.flatMap { $0.time + 2 <= now ? $0.key : nil }
            let retry = queue.nextRetry(after: .seconds(2), now: instant(now), where: { $0 != idle })
            #expect(retry == expected, "after \(history) at \(now)")
            guard history.count < 5, retry == expected else { return }
            for fact in facts {
                var (next, left, time) = (queue, failures, now)
                switch fact {
                case .failed(let key):
                    next.saveFailed(key, at: instant(now))
                    left = failures.filter { $0.key != key } + [(key, now)]
                case .recovered(let key):
                    next.saveRecovered(key)
                    left.removeAll { $0.key == key }
                case .second: time += 1
                }
                explore(next, left, time, history + [fact])
            }
        }
        explore(CacherQueue(), [], 0, [])
    }

    @Test(arguments: [0, 1, 3])
    func `C6: beyond the limit the oldest failed save of an idle key is dropped`(busy: Int) {
        var queue = CacherQueue<Int>()
        let count = CacherQueue<Int>.failureLimit + 2
        for key in 0..<count { queue.saveFailed(key, at: instant(key)) }
        var dropped: [Int] = []
        while let key = queue.dropExcessFailure(where: { $0 >= busy }) { dropped.append(key) }
        #expect(dropped == Array(busy..<max(busy, 2)))
        #expect(queue.nextRetry(after: .zero, now: .distantFuture, where: { _ in true }) == (busy == 0 ? 2 : 0))
    }

    @Test func `C6: a record from before a failed clear is not loaded again, and one that was saved since is`() {
        var queue = CacherQueue<Int>()
        let began = Date(timeIntervalSince1970: 100)
        for fails in [true, true, false] {
            queue.removeAll()
            queue.clearingEnded(began: began, fails: fails)
            // The date counts for the records of other users only.
            #expect(queue.isCleared(0, nil) == fails)
            #expect(queue.isCleared(0, began) == fails)
            #expect(queue.isCleared(0, began.addingTimeInterval(.nan)) == fails)
            #expect(!queue.isCleared(0, began.addingTimeInterval(1)))
            queue.saved(0)
            #expect(!queue.isCleared(0, nil))
            #expect(!queue.isCleared(0, began.addingTimeInterval(-1)))
            #expect(queue.isCleared(1, nil) == fails)
        }
    }
}

/// An event of the queue.
private enum QueueEvent: Hashable {
    case load(Int), write(Int), list, removeAll, end(QueueCall)
}

private typealias QueueCall = CacherQueue<Int>.Call

/// The queue, and the requests that it has got: a request starts when no earlier one stands in its way.
private struct QueueWorld: Hashable {
    var queue = CacherQueue<Int>()
    var waiting: [QueueCall] = []
    var running: [QueueCall] = []
    var isClearingDue = false
    var isClearing = false
    /// How many requests of each kind are still to come.
    var loads = [1, 1]
    var writes = [2, 2]
    var lists = 1
    var clears = 2
    var violation: String?

    var events: [QueueEvent] {
        var events = running.map { QueueEvent.end($0) }
        for key in 0..<2 {
            let isLoading = (waiting + running).contains { if case .load(key, _) = $0 { true } else { false } }
            // A key with content to write knows its record.
            if loads[key] > 0, !isLoading, !waiting.contains(.write(key)) { events.append(.load(key)) }
            if writes[key] > 0, !waiting.contains(.write(key)) { events.append(.write(key)) }
        }
        if lists > 0 { events.append(.list) }
        if clears > 0 { events.append(.removeAll) }
        return events
    }

    mutating func apply(_ event: QueueEvent) {
        switch event {
        case .load(let key):
            loads[key] -= 1
            waiting.append(.load(key, Ticket(number: 0)))
            queue.load(key, Ticket(number: 0))
        case .write(let key):
            writes[key] -= 1
            waiting.append(.write(key))
            queue.write(key)
        case .list:
            lists -= 1
            waiting.append(.keys(0))
            queue.list(0)
        case .removeAll:
            clears -= 1
            waiting.removeAll { if case .write = $0 { true } else { false } }
            isClearingDue = true
            queue.removeAll()
        case .end(let call): end(call)
        }
        start()
    }

    private mutating func end(_ call: QueueCall) {
        running.removeAll { $0 == call }
        switch call {
        case .load(let key, _), .write(let key): queue.callEnded(key)
        case .keys: queue.listingEnded()
        case .removeAll:
            queue.clearingEnded(began: Date(timeIntervalSince1970: 0), fails: false)
            isClearing = false
        }
    }

    /// Starts the requests that may start, and compares them with the queue's.
    private mutating func start() {
        var started: [QueueCall] = []
        if isClearingDue, running.isEmpty {
            (isClearing, isClearingDue) = (true, false)
            started = [.removeAll]
        } else if !isClearingDue, !isClearing {
            for call in waiting where !running.contains(where: { $0.blocks(call) }) && !started.contains(where: { $0.blocks(call) }) {
                started.append(call)
            }
        }
        waiting.removeAll { started.contains($0) }
        running += started
        let calls = queue.takeCalls()
        if Set(calls) != Set(started) || calls.count != started.count { violation = "starts \(calls) instead of \(started)" }
        if queue.running != running.count(where: { $0 != .removeAll }) { violation = "counts \(queue.running) running calls" }
        if running.contains(.removeAll), running.count > 1 { violation = "empties the cacher during \(running)" }
        if queue.isBarred != (isClearingDue || isClearing) { violation = "bars calls although no clear is due" }
    }

    /// The state that remains after the end of all calls, or the rule that these break.
    var trace: String? {
        var world = self
        while let call = world.running.first { world.apply(.end(call)) }
        let isIdle = world.waiting.isEmpty && !world.isClearingDue && !world.isClearing && world.queue == CacherQueue()
        return world.violation ?? (isIdle ? nil : "keeps a trace of ended calls: \(world.queue)")
    }
}

extension QueueCall {
    /// Whether the call of a key keeps another one of the same key waiting.
    fileprivate func blocks(_ other: QueueCall) -> Bool {
        guard let key, let wanted = other.key else { return false }
        return key == wanted
    }

    private var key: Int? {
        switch self {
        case .load(let key, _), .write(let key): key
        case .keys, .removeAll: nil
        }
    }
}
