import Testing
@testable import SyncEngine

/// The assignment of waiters to flushes of the disk.
struct FlushSharingTests {
    /// Events: `a` a waiter arrives, `l` a waiter leaves the next flush, `b` the flush begins, `+` it succeeds, `-` it fails.
    ///
    /// Results: `wN` waits for flush N, `dN` waits and begins it, `xN` fails at once. `d` the next flush is due, `y` and `n` whether a
    /// flush begins, `.` none.
    @Test(arguments: [
        ("a b +", "d1 y ."),
        ("a a a b +", "d1 w1 w1 y ."),
        ("a b a a + b +", "d1 y w2 w2 d y ."),
        ("a b a + a b a + b +", "d1 y w2 d w2 y w3 d y ."),
        ("a b + a b +", "d1 y . d2 y ."),
        ("a b a l +", "d1 y w2 . ."),
        ("a b a a l + b", "d1 y w2 w2 . d y"),
        ("a b a l a + b", "d1 y w2 . w2 d y"),
        ("a l b a b", "d1 . n d1 y"),
        ("a l a b", "d1 . w1 y"),
        ("a b l l a + b", "d1 y . . w2 d y"),
        ("a b a + l b a", "d1 y w2 d . n d2"),
        ("b a b b a +", "n d1 y n w2 d"),
        ("a b -", "d1 y ."),
        ("a b a - a", "d1 y w2 . x2"),
        ("a b a + b - a a", "d1 y w2 d y . x3 x3"),
    ])
    func `S9: all waiters that arrive before a flush begins share it`(events: String, results: String) {
        var sharing = FlushSharing()
        var given: [String] = []
        for event in events.split(separator: " ") {
            switch event {
            case "a":
                let (number, isToBegin) = sharing.arrived()
                given.append((isToBegin ? "d" : sharing.isWell(number) == false ? "x" : "w") + "\(number)")
            case "l":
                sharing.left(sharing.lastBegun + 1)
                given.append(".")
            case "b": given.append(sharing.begins() ? "y" : "n")
            default: given.append(sharing.ended(well: event == "+") ? "d" : ".")
            }
        }
        #expect(given.joined(separator: " ") == results)
    }

    @Test func `S9: a failed flush fails waiters of the next flush, but not of earlier ones`() {
        var sharing = FlushSharing()
        _ = (sharing.arrived(), sharing.begins(), sharing.arrived())
        #expect([1, 2].map { sharing.isWell($0) } == [nil, nil])
        _ = (sharing.ended(well: true), sharing.begins(), sharing.arrived())
        #expect([1, 2, 3].map { sharing.isWell($0) } == [true, nil, nil])
        _ = sharing.ended(well: false)
        #expect([1, 2, 3].map { sharing.isWell($0) } == [true, false, false])
    }

    /// Runs every history of arrivals and departures; a due flush may begin at any time.
    @Test func `S9: in every history of eight events, no flush that began before a waiter arrived resumes it with success`() {
        let (count, kinds) = (8, 5)
        let histories = (0..<count).reduce(1) { total, _ in total * kinds }
        for history in 0..<histories {
            var sharing = FlushSharing()
            var isDue = false
            var begun: [Int: Int] = [:]
            var came: [(number: Int, at: Int)] = []
            var rest = history
            for clock in 0..<count {
                defer { rest /= kinds }
                switch rest % kinds {
                case 0:
                    let (number, isToBegin) = sharing.arrived()
                    came.append((number, clock))
                    if isToBegin, isDue || sharing.isRunning { return record(history, "two flushes run at once") }
                    isDue = isDue || isToBegin
                case 1:
                    guard let index = came.lastIndex(where: { sharing.isWell($0.number) == nil }) else { continue }
                    sharing.left(came.remove(at: index).number)
                case 2 where isDue:
                    isDue = false
                    if sharing.begins() { begun[sharing.lastBegun] = clock }
                case let kind where kind > 2 && sharing.isRunning: isDue = sharing.ended(well: kind == 3)
                default: continue
                }
            }
            for (number, at) in came where sharing.isWell(number) == true {
                guard let start = begun[number], start > at else {
                    return record(history, "flush \(number) succeeds for a waiter that arrived at \(at)")
                }
            }
            // Every waiter has a flush that will begin.
            if !sharing.isRunning, !isDue, came.contains(where: { sharing.isWell($0.number) == nil }) {
                return record(history, "a waiter waits forever")
            }
        }
    }

    private func record(_ history: Int, _ complaint: String) { Issue.record("history \(history): \(complaint)") }
}
