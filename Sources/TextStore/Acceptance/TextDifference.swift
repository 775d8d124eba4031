/// The lines and words in which two texts differ.
///
/// ```swift
/// let change = TextDifference(from: "one\ntwo", to: "one\nthree")
/// for line in change.lines {
///     switch line {
///     case .same(let text): print("  \(text)")
///     case .removed(let text): print("- \(text)")
///     case .added(let text): print("+ \(text)")
///     case .changed(let words): print("~ \(words)")
///     }
/// }
/// ```
///
/// <doc:Evidence> shows the changes since an acceptance.
public struct TextDifference: Hashable, Sendable {
    /// A line of either text, without its end.
    public enum Line: Hashable, Sendable {
        /// A line of both texts.
        case same(String)
        /// A line of the old text only.
        case removed(String)
        /// A line of the new text only.
        case added(String)
        /// A line in which some words have changed.
        case changed([Word])
    }

    /// A part of a changed line: a word with its spaces, or a change of them.
    public enum Word: Hashable, Sendable {
        /// A part of both lines.
        case same(String)
        /// A part of the old line only.
        case removed(String)
        /// A part of the new line only.
        case added(String)
    }

    /// The lines of both texts in their order; the removed, changed, and same ones form the old text, and all but the removed ones the new.
    public var lines: [Line]

    /// Whether the texts have the same lines.
    public var isEmpty: Bool {
        lines.allSatisfy { line in
            if case .same = line { true } else { false }
        }
    }

    /// Compares two texts line by line, and similar lines word by word.
    ///
    /// - Parameters:
    ///   - old: The old text.
    ///   - new: The new text.
    /// - Complexity: Proportional to the texts, and at most to the product of 1 000 and their lines. Longer parts without a common unique line
    ///   count as replaced.
    public init(from old: String, to new: String) {
        lines = []
        var removed: [String] = [], added: [String] = []
        for line in Self.steps(from: Self.lines(of: old), to: Self.lines(of: new)) {
            switch line {
            case .removed(let line): removed.append(line)
            case .added(let line): added.append(line)
            case .same(let line):
                replace(removed, by: added)
                (removed, added) = ([], [])
                lines.append(.same(line))
            }
        }
        replace(removed, by: added)
    }

    private static func lines(of text: String) -> [String] {
        text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map { String(Substring($0)) }
    }

    /// Adds lines that replace others, and pairs those that are similar.
    private mutating func replace(_ old: [String], by new: [String]) {
        var removed: [String] = [], added: [String] = []
        func flushed() -> [Line] { removed.map { Line.removed($0) } + added.map { .added($0) } }
        for place in 0..<max(old.count, new.count) {
            let pair = (old.indices.contains(place) ? old[place] : nil, new.indices.contains(place) ? new[place] : nil)
            if case (let left?, let right?) = pair, let words = Self.words(from: left, to: right) {
                lines += flushed() + [.changed(words)]
                (removed, added) = ([], [])
            } else {
                if let line = pair.0 { removed.append(line) }
                if let line = pair.1 { added.append(line) }
            }
        }
        lines += flushed()
    }

    /// Returns the changed words of two lines; `nil` if less than half of the letters are the same.
    private static func words(from old: String, to new: String) -> [Word]? {
        var words: [Word] = [], same = 0
        // The text of a word grows in place, because a line may be as long as its file.
        var last: Word?, text = ""
        func finish() {
            switch last {
            case .same?: words.append(.same(text))
            case .removed?: words.append(.removed(text))
            case .added?: words.append(.added(text))
            case nil: break
            }
        }
        for step in steps(from: parts(of: old), to: parts(of: new)) {
            let (part, isLike) =
                switch (last, step) {
                case (.same?, .same(let found)), (.removed?, .removed(let found)), (.added?, .added(let found)): (found, true)
                case (_, .same(let found)), (_, .removed(let found)), (_, .added(let found)): (found, false)
                }
            if case .same = step, !part.allSatisfy(\.isWhitespace) { same += part.utf8.count }
            if !isLike {
                finish()
                (last, text) = (step, "")
            }
            text += part
        }
        finish()
        return same * 2 >= min(old.utf8.count, new.utf8.count) && same > 0 ? words : nil
    }

    /// Splits a line into words, spaces, and single signs; an ideograph or a syllable of East Asia is a word.
    private static func parts(of line: String) -> [String] {
        enum Kind { case word, space, single }
        func kind(_ character: Character) -> Kind {
            if character.isWhitespace { return .space }
            guard character.isLetter || character.isNumber, let scalar = character.unicodeScalars.first?.value else { return .single }
            return (0x2E80...0xD7FF).contains(scalar) || (0xF900...0xFAFF).contains(scalar) || scalar >= 0x20000 ? .single : .word
        }
        var parts: [String] = [], last = Kind.single
        for character in line {
            let next = kind(character)
            if next == last, next != .single { parts[parts.count - 1].append(character) } else { parts.append(String(character)) }
            last = next
        }
        return parts
    }
}

extension TextDifference {
    /// The largest product of two parts' lengths for which the longest common subsequence is computed.
    private static var limit: Int { 1_000_000 }

    /// Returns the steps from one list to another: the longest common subsequence stays, apart from very long parts without a common unique
    /// element.
    static func steps(from old: [String], to new: [String]) -> [Word] {
        // Numbers are compared faster than texts.
        var numbers: [String: Int] = [:]
        func number(_ element: String) -> Int {
            if let known = numbers[element] { return known }
            numbers[element] = numbers.count
            return numbers.count - 1
        }
        var steps: [Word] = []
        let (left, right) = (old.map(number), new.map(number))
        pair(left, right, 0..<old.count, 0..<new.count, depth: 32) { step in
            switch step {
            case (let place?, .some): steps.append(.same(old[place]))
            case (let place?, nil): steps.append(.removed(old[place]))
            case (nil, let place?): steps.append(.added(new[place]))
            case (nil, nil): break
            }
        }
        return steps
    }

    private typealias Step = (Int?, Int?)

    /// Walks over two lists, with the anchors of Bram Cohen's patience difference where they are long.
    private static func pair(
        _ old: [Int], _ new: [Int], _ left: Range<Int>, _ right: Range<Int>, depth: Int, _ step: (Step) -> Void
    ) {
        var (left, right) = (left, right)
        while let i = left.first, let j = right.first, old[i] == new[j] {
            step((i, j))
            (left, right) = (left.dropFirst(), right.dropFirst())
        }
        var ends: [Step] = []
        while let i = left.last, let j = right.last, old[i] == new[j] {
            ends.append((i, j))
            (left, right) = (left.dropLast(), right.dropLast())
        }
        defer { for end in ends.reversed() { step(end) } }
        if !left.isEmpty, !right.isEmpty {
            if left.count.multipliedReportingOverflow(by: right.count).partialValue <= limit, left.count < limit, right.count < limit {
                return common(old, new, left, right, step)
            }
            let anchors = depth > 0 ? anchors(old, new, left, right) : []
            if !anchors.isEmpty {
                for (i, j) in anchors + [(left.upperBound, right.upperBound)] {
                    pair(old, new, left.lowerBound..<i, right.lowerBound..<j, depth: depth - 1, step)
                    guard i < left.upperBound else { break }
                    step((i, j))
                    (left, right) = (i + 1..<left.upperBound, j + 1..<right.upperBound)
                }
                return
            }
        }
        for i in left { step((i, nil)) }
        for j in right { step((nil, j)) }
    }

    /// Walks along the longest common subsequence.
    private static func common(_ old: [Int], _ new: [Int], _ left: Range<Int>, _ right: Range<Int>, _ step: (Step) -> Void) {
        let width = right.count + 1
        var lengths = [Int32](repeating: 0, count: (left.count + 1) * width)
        for i in left.indices.reversed() {
            for j in right.indices.reversed() {
                let (row, column) = (i - left.lowerBound, j - right.lowerBound)
                let place = row * width + column
                lengths[place] =
                    old[i] == new[j] ? lengths[place + width + 1] + 1 : max(lengths[place + width], lengths[place + 1])
            }
        }
        var (i, j) = (left.lowerBound, right.lowerBound)
        while i < left.upperBound || j < right.upperBound {
            let place = (i - left.lowerBound) * width + j - right.lowerBound
            if i < left.upperBound, j < right.upperBound, old[i] == new[j] {
                step((i, j))
                (i, j) = (i + 1, j + 1)
            } else if j == right.upperBound || (i < left.upperBound && lengths[place + width] >= lengths[place + 1]) {
                step((i, nil))
                i += 1
            } else {
                step((nil, j))
                j += 1
            }
        }
    }

    /// Returns the longest ascending sequence of elements that occur once in each part.
    private static func anchors(_ old: [Int], _ new: [Int], _ left: Range<Int>, _ right: Range<Int>) -> [(Int, Int)] {
        func places(_ list: [Int], _ part: Range<Int>) -> [Int: Int] {
            let all: [Int: Int?] = Dictionary(part.map { (list[$0], Optional($0)) }) { _, _ in nil }
            return all.compactMapValues { $0 }
        }
        let rights = places(new, right)
        let unique: [(Int, Int)] = places(old, left).compactMap { element, i in rights[element].map { j in (i, j) } }.sorted { $0.0 < $1.0 }
        // The tops of the piles of patience sorting, and the element before each.
        var tops: [Int] = []
        var before = [Int?](repeating: nil, count: unique.count)
        for (number, pair) in unique.enumerated() {
            var (low, high) = (0, tops.count)
            while low < high {
                let middle = (low + high) / 2
                if unique[tops[middle]].1 < pair.1 { low = middle + 1 } else { high = middle }
            }
            before[number] = low > 0 ? tops[low - 1] : nil
            if low < tops.count { tops[low] = number } else { tops.append(number) }
        }
        var result: [(Int, Int)] = [], next = tops.last
        while let number = next {
            result.append(unique[number])
            next = before[number]
        }
        return result.reversed()
    }
}
