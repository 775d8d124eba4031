import Testing
@testable import SyncEngine

/// Which flush of the disk is whose.
struct FlushSharingTests {
    /// `a` somebody comes, `l` somebody leaves the next flush, `+` the flush ends, `-` it fails; what each of them gives stands below it:
    /// `bN` begins flush N, `wN` waits for it, `xN` is told at once that it failed, `.` nothing.
    @Test(arguments: [
        ("a +", "b1 ."),
        ("a a a +", "b1 w2 w2 b2"),
        ("a a + a + +", "b1 w2 b2 w3 b3 ."),
        ("a + a +", "b1 . b2 ."),
        ("a a l +", "b1 w2 . ."),
        ("a a a l +", "b1 w2 w2 . b2"),
        ("a a l a +", "b1 w2 . w2 b2"),
        ("a l l a +", "b1 . . w2 b2"),
        ("a -", "b1 ."),
        ("a a - a", "b1 w2 . x2"),
        ("a a + - a a", "b1 w2 b2 . x3 x3"),
    ])
    func `S9 whoever comes while a flush runs shares the next one`(events: String, answers: String) {
        var sharing = FlushSharing()
        var given: [String] = []
        for event in events.split(separator: " ") {
            switch event {
            case "a":
                switch sharing.arrived() {
                case .begin(let number): given.append("b\(number)")
                case .wait(let number): given.append(sharing.isWell(number) == false ? "x\(number)" : "w\(number)")
                }
            case "l":
                sharing.left(sharing.lastBegun + 1)
                given.append(".")
            default:
                switch sharing.ended(well: event == "+") {
                case .begin(let number): given.append("b\(number)")
                case .rest: given.append(".")
                }
            }
        }
        #expect(given.joined(separator: " ") == answers)
    }

    @Test func `S9 a flush that fails fails those too who wait for the next one, and none before it`() {
        var sharing = FlushSharing()
        #expect(sharing.arrived() == .begin(1))
        #expect(sharing.arrived() == .wait(2))
        #expect(sharing.isWell(1) == nil)
        #expect(sharing.ended(well: true) == .begin(2))
        #expect(sharing.isWell(1) == true)
        #expect(sharing.isWell(2) == nil)
        #expect(sharing.arrived() == .wait(3))
        #expect(sharing.ended(well: false) == .rest)
        #expect([1, 2, 3].map { sharing.isWell($0) } == [true, false, false])
    }

    @Test func `S9 in every history of eight events nobody is answered by a flush that began before he came`() {
        let count = 8
        for history in 0..<(1 << (2 * count)) {
            var sharing = FlushSharing()
            var clock = 0
            var begun: [Int: Int] = [:]
            var came: [(number: Int, at: Int)] = []
            for event in 0..<count {
                clock += 1
                switch (history >> (2 * event)) & 3 {
                case 0, 1:
                    switch sharing.arrived() {
                    case .begin(let number):
                        came.append((number, clock))
                        clock += 1
                        begun[number] = clock
                    case .wait(let number): came.append((number, clock))
                    }
                case let kind:
                    guard sharing.isRunning else { continue }
                    if case .begin(let number) = sharing.ended(well: kind == 2) { begun[number] = clock }
                }
            }
            for (number, at) in came where sharing.isWell(number) == true {
                guard let start = begun[number], start > at else {
                    Issue.record("history \(history): flush \(number) answers somebody who came at \(at)")
                    return
                }
            }
            // Nobody is left who waits for a flush that nobody begins.
            if !sharing.isRunning, came.contains(where: { sharing.isWell($0.number) == nil }) {
                Issue.record("history \(history): somebody waits for ever")
                return
            }
        }
    }
}
