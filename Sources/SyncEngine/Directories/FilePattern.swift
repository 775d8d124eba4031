/// A pattern of gitignore, compiled to a machine that reads each byte of a path once.
///
/// The rules are those of git's `wildmatch`. Patterns and paths are compared by their bytes. The time of a comparison grows with the product
/// of both lengths, for every pattern: the machine follows all possibilities at the same time and never goes back.
struct FilePattern: Hashable, Sendable {
    /// Whether the pattern re-includes what earlier patterns exclude.
    let isNegated: Bool
    let isOfDirectories: Bool
    /// Whether the pattern is compared with the last name of a path instead of the whole path.
    private let isOfNames: Bool
    private let tokens: [Token]

    private enum Token: Hashable {
        case byte(UInt8)
        /// `?`: a byte other than a slash.
        case any
        /// `[…]`: a byte of a set, other than a slash.
        case set(ByteSet)
        /// `*`: any bytes other than slashes.
        case star
        /// `**`: any bytes.
        case deep
        /// Before `**/`: these three tokens may be skipped.
        case optional
    }

    /// Compiles a line of a gitignore file; `nil` for blank lines, for comments, and for patterns that match nothing, such as `[a`.
    init?(line: String) {
        var text = Self.withoutTrailingSpaces(Array(line.utf8))[...]
        guard text.first != UInt8(ascii: "#") else { return nil }
        isNegated = text.first == UInt8(ascii: "!")
        if isNegated { text.removeFirst() }
        isOfDirectories = text.last == UInt8(ascii: "/")
        if isOfDirectories { text.removeLast() }
        isOfNames = !text.contains(UInt8(ascii: "/"))
        if text.first == UInt8(ascii: "/") { text.removeFirst() }
        guard !text.isEmpty, let tokens = Self.compile(Array(text)) else { return nil }
        self.tokens = tokens
    }

    /// Removes spaces at the end, unless a backslash escapes them.
    private static func withoutTrailingSpaces(_ text: [UInt8]) -> [UInt8] {
        var end = text.startIndex
        var index = text.startIndex
        while index < text.endIndex {
            let isEscape = text[index] == UInt8(ascii: "\\")
            index += isEscape && index + 1 < text.endIndex ? 2 : 1
            if isEscape || text[index - 1] != UInt8(ascii: " ") { end = index }
        }
        return Array(text[..<end])
    }

    private static func compile(_ text: [UInt8]) -> [Token]? {
        var tokens: [Token] = []
        var index = 0
        while index < text.count {
            switch text[index] {
            case UInt8(ascii: "\\"):
                guard index + 1 < text.count else { return nil }
                tokens.append(.byte(text[index + 1]))
                index += 2
            case UInt8(ascii: "?"):
                tokens.append(.any)
                index += 1
            case UInt8(ascii: "["):
                guard let (set, end) = ByteSet.parse(text, at: index) else { return nil }
                tokens.append(.set(set))
                index = end
            case UInt8(ascii: "*"):
                let end = text[index...].firstIndex { $0 != UInt8(ascii: "*") } ?? text.count
                // Git compares the text before the first special character on its own, so stars behind it count as leading ones.
                let isFirst = text[..<index].allSatisfy { !"*?[\\".utf8.contains($0) }
                let isSlashBefore = isFirst || text[index - 1] == UInt8(ascii: "/")
                let rest = text[end...]
                let isDeep =
                    end - index > 1 && isSlashBefore && (rest.isEmpty || rest.starts(with: "/".utf8) || rest.starts(with: "\\/".utf8))
                if isDeep, rest.starts(with: "/".utf8) { tokens.append(.optional) }
                tokens.append(isDeep ? .deep : .star)
                index = end
            default:
                tokens.append(.byte(text[index]))
                index += 1
            }
        }
        return tokens
    }

    var stateCount: Int { tokens.count + 1 }

    /// Returns whether the pattern matches a path without a trailing slash; `states` has memory of at least `stateCount` elements each.
    func matches(_ path: ArraySlice<UInt8>, isDirectory: Bool, _ states: inout (now: [Bool], next: [Bool])) -> Bool {
        if isOfDirectories, !isDirectory { return false }
        let text = isOfNames ? path.lastIndex(of: UInt8(ascii: "/")).map { path[($0 + 1)...] } ?? path : path
        for state in 0...tokens.count { states.now[state] = state == 0 }
        spread(&states.now)
        for byte in text {
            for state in 0...tokens.count { states.next[state] = false }
            var isAlive = false
            for (state, token) in tokens.enumerated() where states.now[state] {
                switch token {
                case .star where byte != UInt8(ascii: "/"), .deep: states.next[state] = true
                case .byte(byte): states.next[state + 1] = true
                case .any where byte != UInt8(ascii: "/"): states.next[state + 1] = true
                case .set(let set) where byte != UInt8(ascii: "/") && set.contains(byte): states.next[state + 1] = true
                default: continue
                }
                isAlive = true
            }
            guard isAlive else { return false }
            spread(&states.next)
            swap(&states.now, &states.next)
        }
        return states.now[tokens.count]
    }

    /// Adds the states that are reached without reading a byte. All of them come later, so one turn finds them.
    private func spread(_ states: inout [Bool]) {
        for (state, token) in tokens.enumerated() where states[state] {
            switch token {
            case .star, .deep: states[state + 1] = true
            case .optional:
                states[state + 1] = true
                states[state + 3] = true
            case .byte, .any, .set: continue
            }
        }
    }
}

/// A set of bytes, as in `[a-z]`.
private struct ByteSet: Hashable, Sendable {
    private var words: SIMD4<UInt64> = .zero

    func contains(_ byte: UInt8) -> Bool { words[Int(byte >> 6)] >> UInt64(byte & 63) & 1 == 1 }

    private mutating func insert(_ byte: UInt8) { words[Int(byte >> 6)] |= 1 << UInt64(byte & 63) }

    /// Parses a set by the rules of git.
    ///
    /// - Returns: The set and the index behind it; `nil` if it has no end or an unknown class, so that its pattern matches nothing.
    static func parse(_ text: [UInt8], at start: Int) -> (ByteSet, Int)? {
        func byte(_ index: Int) -> UInt8? { index < text.count ? text[index] : nil }
        var set = ByteSet()
        var index = start + 1
        let isNegated = byte(index) == UInt8(ascii: "!") || byte(index) == UInt8(ascii: "^")
        if isNegated { index += 1 }
        /// The byte before, which may begin a range.
        var before: UInt8?
        repeat {
            guard var current = byte(index) else { return nil }
            if current == UInt8(ascii: "-"), let first = before, let end = byte(index + 1), end != UInt8(ascii: "]") {
                index += 1
                var last = end
                if last == UInt8(ascii: "\\") {
                    index += 1
                    guard let escaped = byte(index) else { return nil }
                    last = escaped
                }
                if first <= last { for byte in first...last { set.insert(byte) } }
                before = nil
            } else if current == UInt8(ascii: "["), byte(index + 1) == UInt8(ascii: ":") {
                guard let end = text[(index + 2)...].firstIndex(of: UInt8(ascii: "]")) else { return nil }
                if end > index + 2, text[end - 1] == UInt8(ascii: ":") {
                    guard let isMember = named(text[(index + 2)..<(end - 1)]) else { return nil }
                    for byte in 0...0x7F as ClosedRange<UInt8> where isMember(byte) { set.insert(byte) }
                    index = end
                    before = nil
                } else {
                    set.insert(current)
                    before = current
                }
            } else {
                if current == UInt8(ascii: "\\") {
                    index += 1
                    guard let escaped = byte(index) else { return nil }
                    current = escaped
                }
                set.insert(current)
                before = current
            }
            index += 1
        } while byte(index) != UInt8(ascii: "]")
        if isNegated { set.words = ~set.words }
        return (set, index + 1)
    }

    /// The members of a class such as `alpha`; `nil` for an unknown name.
    private static func named(_ name: ArraySlice<UInt8>) -> ((UInt8) -> Bool)? {
        func isLower(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte) }
        func isUpper(_ byte: UInt8) -> Bool { (0x41...0x5A).contains(byte) }
        func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
        func isLetterOrDigit(_ byte: UInt8) -> Bool { isLower(byte) || isUpper(byte) || isDigit(byte) }
        switch String(decoding: name, as: UTF8.self) {
        case "alnum": return isLetterOrDigit
        case "alpha": return { isLower($0) || isUpper($0) }
        case "blank": return { $0 == 0x20 || $0 == 0x09 }
        case "cntrl": return { $0 < 0x20 || $0 == 0x7F }
        case "digit": return isDigit
        case "graph": return { (0x21...0x7E).contains($0) }
        case "lower": return isLower
        case "print": return { (0x20...0x7E).contains($0) }
        case "punct": return { (0x21...0x7E).contains($0) && !isLetterOrDigit($0) }
        case "space": return { (0x09...0x0D).contains($0) || $0 == 0x20 }
        case "upper": return isUpper
        case "xdigit": return { isDigit($0) || (0x41...0x46).contains($0) || (0x61...0x66).contains($0) }
        default: return nil
        }
    }
}
