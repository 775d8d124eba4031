import Testing
@testable import SyncEngine

/// Which flush of the disk is whose.
struct FlushSharingTests {
    /// `a` somebody comes, `l` somebody leaves the next flush, `b` it begins, `+` a flush ends, `-` it fails; what each of them gives stands
    /// below it: `wN` waits for flush N, `dN` the same and sees to it that it begins, `xN` is told at once that it failed, `d` the next one
    /// is to begin, `y` and `n` whether it is still wanted, `.` nothing.
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
    func `S9 whoever comes before a flush begins shares it`(events: String, answers: String) {
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
        #expect(given.joined(separator: " ") == answers)
    }

    @Test func `S9 a flush that fails fails those too who wait for the next one, and none before it`() {
        var sharing = FlushSharing()
        _ = (sharing.arrived(), sharing.begins(), sharing.arrived())
        #expect([1, 2].map { sharing.isWell($0) } == [nil, nil])
        _ = (sharing.ended(well: true), sharing.begins(), sharing.arrived())
        #expect([1, 2, 3].map { sharing.isWell($0) } == [true, nil, nil])
        _ = sharing.ended(well: false)
        #expect([1, 2, 3].map { sharing.isWell($0) } == [true, false, false])
    }

    /// Every history in which somebody comes or leaves, and what is due happens when it likes.
    @Test func `S9 in every history of eight events nobody is answered by a flush that began before he came`() {
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
                    if isToBegin, isDue || sharing.isRunning { return record(history, "two flushes are begun at once") }
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
                    return record(history, "flush \(number) answers somebody who came at \(at)")
                }
            }
            // Nobody is left who waits for a flush that nobody begins, and none is begun that nobody waits for.
            if !sharing.isRunning, !isDue, came.contains(where: { sharing.isWell($0.number) == nil }) {
                return record(history, "somebody waits for ever")
            }
        }
    }

    private func record(_ history: Int, _ complaint: String) {
        Issue.record("history \(history): \(complaint)")
    }
}
