import StoreCore
import Testing
import Trials

@testable import TextStore

/// T20: the lines and words in which two texts differ.
struct TextDifferenceTests {
    private func old(_ difference: TextDifference) -> String { text(of: difference, isOld: true) }

    private func new(_ difference: TextDifference) -> String { text(of: difference, isOld: false) }

    private func text(of difference: TextDifference, isOld: Bool) -> String {
        difference.lines.compactMap { line -> String? in
            switch line {
            case .same(let text): text
            case .removed(let text): isOld ? text : nil
            case .added(let text): isOld ? nil : text
            case .changed(let words):
                words.map { word -> String in
                    switch word {
                    case .same(let text): text
                    case .removed(let text): isOld ? text : ""
                    case .added(let text): isOld ? "" : text
                    }
                }.joined()
            }
        }.joined(separator: "\n")
    }

    @Test func `T20: similar lines differ by words, and others as a whole`() {
        let difference = TextDifference(
            from: "Terms\nYou may borrow three books at a time.\nGone\nBe kind.",
            to: "Terms\nYou may borrow five books at a time.\nBe kind.\nNew")
        #expect(
            difference.lines == [
                .same("Terms"),
                .changed([
                    .same("You may borrow "), .removed("three"), .added("five"), .same(" books at a time."),
                ]), .removed("Gone"), .same("Be kind."), .added("New"),
            ])
        #expect(!difference.isEmpty && TextDifference(from: "a\nb", to: "a\nb").isEmpty)
        #expect(
            TextDifference(from: "本を三冊借りられます", to: "本を五冊借りられます").lines == [
                .changed([.same("本を"), .removed("三"), .added("五"), .same("冊借りられます")])
            ])
    }

    @Test(arguments: [
        ("", ""), ("", "a"), ("a", ""), ("a\n", "a"), ("\r\n", "\n"), ("a\r\nb", "a\nb"), ("\n\n\n", "\n"), ("é", "e\u{301}"),
    ])
    func `T20: both texts follow from their difference, at the edges`(before: String, after: String) {
        let difference = TextDifference(from: before, to: after)
        #expect(old(difference) == before && new(difference) == after)
    }

    @Test func `T20: both texts follow from their difference, for random texts`() {
        for seed in seeds(UInt64(3_000), quick: 200) {
            var dice = SplitMix(seed: seed)
            let words = ["book", "cat", "the", "you", "must", "not", " ", ",", "\n", "\n", "é", "本", "\r\n", ""]
            func text() -> [String] {
                (0..<Int.random(in: 0...40, using: &dice)).map { _ in words[Int.random(in: 0..<words.count, using: &dice)] }
            }
            let before = text()
            var after = before
            for _ in 0..<Int.random(in: 0...6, using: &dice) where !after.isEmpty {
                let place = Int.random(in: 0..<after.count, using: &dice)
                if Bool.random(using: &dice) { after.remove(at: place) } else { after.insert(contentsOf: text().prefix(3), at: place) }
            }
            let (left, right) = (before.joined(separator: " "), after.joined(separator: " "))
            let difference = TextDifference(from: left, to: right)
            #expect(old(difference) == left && new(difference) == right, "seed \(seed)")
            if left == right { #expect(difference.isEmpty, "seed \(seed)") }
        }
    }

    /// Compares with the lengths that the recursion of the definition gives.
    @Test func `T20: short lists keep a longest common subsequence`() {
        func longest(_ left: ArraySlice<Int>, _ right: ArraySlice<Int>) -> Int {
            guard let i = left.first, let j = right.first else { return 0 }
            if i == j { return 1 + longest(left.dropFirst(), right.dropFirst()) }
            return max(longest(left.dropFirst(), right), longest(left, right.dropFirst()))
        }
        for seed in seeds(UInt64(500), quick: 60) {
            var dice = SplitMix(seed: seed)
            func list() -> [Int] { (0..<Int.random(in: 0...9, using: &dice)).map { _ in Int.random(in: 0..<4, using: &dice) } }
            let (left, right) = (list(), list())
            let steps = TextDifference.steps(from: left.map { "\($0)" }, to: right.map { "\($0)" })
            let same = steps.filter { if case .same = $0 { true } else { false } }
            #expect(same.count == longest(left[...], right[...]), "seed \(seed): \(left) \(right)")
        }
    }

    @Test func `T20: long texts without a common line, and with many, are compared in time and completely`() {
        let count = isWholeRun ? 60_000 : 10_000
        let long = (0..<count).map { "old \($0)" }.joined(separator: "\n"),
            other = (0..<count).map { "new \($0)" }.joined(separator: "\n")
        let replaced = TextDifference(from: long, to: other)
        #expect(old(replaced) == long && new(replaced) == other)
        let lines = (0..<count).map { "line \($0)" }
        let changed = lines.enumerated().compactMap { $0 % 100 == 7 ? nil : $0 % 100 == 50 ? "another one" : $1 }
        let difference = TextDifference(from: lines.joined(separator: "\n"), to: changed.joined(separator: "\n"))
        #expect(difference.lines.count { if case .same = $0 { true } else { false } } == count - count / 50)
        #expect(new(difference) == changed.joined(separator: "\n"))
    }

    @Test(.enabled(if: isWholeRun, "short texts do not show the cost"))
    func `T20: the time for one long line is that for as many short ones`() {
        let words = (0..<100_000).map { "word\($0)" }
        func time(_ separator: String) -> Duration {
            let before = words.joined(separator: separator)
            let began = ContinuousClock.now
            #expect(!TextDifference(from: before, to: before + separator + "end").isEmpty)
            return ContinuousClock.now - began
        }
        // Copying the text before each word would take far longer.
        #expect(time(" ") < time("\n") * 20)
    }
}
