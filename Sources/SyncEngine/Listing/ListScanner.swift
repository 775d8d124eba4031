/// A machine that splits a list of JSON objects into its items while its bytes arrive, and finds the end of the list.
///
/// It has no input or output. The first character decides between two layouts: NDJSON has one object on each line, and JSON has the objects
/// in one array. In both, the last object may be the end marker `{"count": n}`.
struct ListScanner: Sendable {
    /// The reason why bytes are not a complete list.
    enum Fault: Error, Hashable, Sendable {
        /// The first character begins neither an object nor an array.
        case noList(beginning: [UInt8])
        /// A character is not allowed at its place, after so many items.
        case unexpected(UInt8, afterItems: Int)
        /// Text follows the end marker or the array.
        case pastEnd(afterItems: Int)
        case tooLarge(item: Int)
        case tooLong(limit: Int64)
        /// The bytes end within an item, or before the array is closed.
        case cut(afterItems: Int)
        /// The bytes end after a complete line, and neither a marker nor a length marks the end of the list.
        case noEnd(afterItems: Int)
        case wrongLength(found: Int64, announced: Int64)
    }

    private enum Layout { case lines, array }

    private enum Place {
        /// Before the first character, which decides between lines and an array.
        case beginning
        /// An item may begin; in an array without items, the array may also end.
        case item(mayClose: Bool)
        case inside
        /// After an item: a line break or a comma must follow.
        case separator
        /// After the end marker: only white space and the end of an array may follow.
        case marked
        /// After the array's closing bracket: only white space may follow.
        case closed
    }

    /// The longest end marker, with room for white space.
    private static let longestMarker = 128

    private let limit: Int
    private let byteLimit: Int64
    private var layout = Layout.lines
    private var place = Place.beginning
    private var depth = 0
    private var isInString = false
    private var isEscaped = false
    /// The bytes of an item from earlier pieces.
    private var partial: [UInt8] = []
    /// Complete items, as the inside of an array.
    private var ready: [UInt8] = []
    /// The first bytes, for the error message if they are not a list.
    private var beginning: [UInt8] = []
    private var markedCount: Int?
    private var byteCount: Int64 = 0
    private var itemCount = 0

    /// Creates a scanner with limits for an item and for the list, in bytes.
    init(limit: Int, byteLimit: Int64 = .max) {
        (self.limit, self.byteLimit) = (limit, byteLimit)
    }

    /// Scans the next bytes; an item may begin in one piece and end in another.
    mutating func take(_ piece: [UInt8]) throws(Fault) {
        byteCount += Int64(piece.count)
        guard byteCount <= byteLimit else { throw .tooLong(limit: byteLimit) }
        var index = 0
        while index < piece.count {
            if case .inside = place {
                index = try takeInside(piece, from: index)
            } else {
                try takeOutside(piece, at: index)
                // The opening brace belongs to the item.
                if case .inside = place { continue }
                index += 1
            }
        }
    }

    /// Returns the items completed since the last call as a JSON array; `nil` if there are none.
    mutating func takeItems() -> [UInt8]? {
        guard !ready.isEmpty else { return nil }
        ready.append(UInt8(ascii: "]"))
        return exchange(&ready, with: [])
    }

    /// Returns the end of the list after its last byte. Without a marked end, or with a wrong length, the list may have been cut.
    func end(length: Int64?) throws(Fault) -> SourceEnd {
        if let length, length != byteCount { throw .wrongLength(found: byteCount, announced: length) }
        switch place {
        case .inside: throw .cut(afterItems: itemCount)
        case .marked where layout == .lines, .closed: return .complete(count: markedCount)
        case _ where layout == .array: throw .cut(afterItems: itemCount)
        // NDJSON ends every line. A list without its last line break was cut or is still being written.
        case .separator: throw .cut(afterItems: itemCount)
        case _ where beginning.count < 3 && !beginning.isEmpty: throw .noList(beginning: beginning)
        default:
            guard length != nil else { throw .noEnd(afterItems: itemCount) }
            return .complete()
        }
    }

    // MARK: Outside of items

    private mutating func takeOutside(_ piece: [UInt8], at index: Int) throws(Fault) {
        let byte = piece[index]
        switch place {
        case .beginning: try begin(piece, at: index)
        case .item(let mayClose): try takeItemStart(byte, mayClose: mayClose)
        case .separator:
            switch byte {
            case UInt8(ascii: "\n") where layout == .lines: place = .item(mayClose: false)
            case UInt8(ascii: ",") where layout == .array: place = .item(mayClose: false)
            case UInt8(ascii: "]") where layout == .array: place = .closed
            case _ where Self.isBlank(byte): break
            default: throw .unexpected(byte, afterItems: itemCount)
            }
        case .marked:
            if layout == .array, byte == UInt8(ascii: "]") {
                place = .closed
            } else if !Self.isBlank(byte) {
                throw .pastEnd(afterItems: itemCount)
            }
        case .closed:
            guard Self.isBlank(byte) else { throw .pastEnd(afterItems: itemCount) }
        case .inside: break
        }
    }

    private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

    private mutating func begin(_ piece: [UInt8], at index: Int) throws(Fault) {
        let byte = piece[index]
        // A byte order mark may be split between pieces.
        if beginning.count < 3, byte == Self.byteOrderMark[beginning.count] {
            beginning.append(byte)
            return
        }
        switch byte {
        case _ where !beginning.isEmpty && beginning.count < 3: throw .noList(beginning: beginning + piece[index...].prefix(60))
        case _ where Self.isBlank(byte): return
        case UInt8(ascii: "["):
            layout = .array
            place = .item(mayClose: true)
        case UInt8(ascii: "{"):
            place = .item(mayClose: false)
            try takeItemStart(byte, mayClose: false)
        default: throw .noList(beginning: Array(piece[index...].prefix(60)))
        }
    }

    private mutating func takeItemStart(_ byte: UInt8, mayClose: Bool) throws(Fault) {
        switch byte {
        case UInt8(ascii: "{"): place = .inside
        case UInt8(ascii: "]") where mayClose: place = .closed
        case _ where Self.isBlank(byte): break
        default: throw .unexpected(byte, afterItems: itemCount)
        }
    }

    static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0A).contains(byte) || byte == 0x0D }

    // MARK: Inside of an item

    /// Scans bytes up to the end of the item or of the piece; returns the index of the first byte that was not scanned.
    private mutating func takeInside(_ piece: [UInt8], from start: Int) throws(Fault) -> Int {
        var index = start
        // Uses local variables, because the loop runs once for each byte of the list.
        var (depth, isInString, isEscaped) = (depth, isInString, isEscaped)
        var isWhole = false
        while index < piece.count, !isWhole {
            let byte = piece[index]
            index += 1
            if isInString {
                if isEscaped {
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte == UInt8(ascii: "\"") {
                    isInString = false
                }
            } else if byte == UInt8(ascii: "\"") {
                isInString = true
            } else if byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[") {
                depth += 1
            } else if byte == UInt8(ascii: "}") || byte == UInt8(ascii: "]") {
                depth -= 1
                isWhole = depth == 0
            }
        }
        (self.depth, self.isInString, self.isEscaped) = (depth, isInString, isEscaped)
        guard partial.count + (index - start) <= limit else { throw .tooLarge(item: itemCount + 1) }
        partial += piece[start..<index]
        if isWhole { takeWhole() }
        return index
    }

    private mutating func takeWhole() {
        defer { partial.removeAll(keepingCapacity: true) }
        if partial.count <= Self.longestMarker, let count = Self.count(marker: partial) {
            markedCount = count
            place = .marked
            return
        }
        ready.append(ready.isEmpty ? UInt8(ascii: "[") : UInt8(ascii: ","))
        ready += partial
        itemCount += 1
        place = .separator
    }

    /// Returns the count of an end marker, an object with `count` as its only key; `nil` for any other object.
    static func count(marker: [UInt8]) -> Int? {
        var rest = marker[...]
        func skipBlanks() { rest = rest.drop(while: Self.isBlank) }
        func take(_ text: String) -> Bool {
            skipBlanks()
            guard rest.starts(with: text.utf8) else { return false }
            rest = rest.dropFirst(text.utf8.count)
            return true
        }
        guard take("{"), take("\"count\""), take(":") else { return nil }
        skipBlanks()
        let digits = rest.prefix { (0x30...0x39).contains($0) }
        rest = rest.dropFirst(digits.count)
        guard take("}"), rest.isEmpty, digits.count == 1 || digits.first != UInt8(ascii: "0") else { return nil }
        return Int(String(decoding: digits, as: UTF8.self))
    }
}
