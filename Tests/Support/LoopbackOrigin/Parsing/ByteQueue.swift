/// Bytes that have arrived but are not parsed yet.
struct ByteQueue {
    private var bytes: [UInt8] = []
    private var start = 0
    /// The end of the search for a line feed, so that a line that arrives byte by byte is not searched again from its start.
    private var searched = 0

    var count: Int { bytes.count - start }
    var isEmpty: Bool { count == 0 }

    /// All unparsed bytes, for the record of a refused request.
    var waiting: ArraySlice<UInt8> { bytes[start...] }

    mutating func append(_ more: some Collection<UInt8>) {
        if start == bytes.count {
            bytes.removeAll(keepingCapacity: true)
            start = 0
            searched = 0
        } else if start > 65_536 {
            bytes.removeFirst(start)
            searched = max(0, searched - start)
            start = 0
        }
        bytes.append(contentsOf: more)
    }

    /// Removes and returns up to `count` bytes.
    mutating func take(upTo count: Int) -> ArraySlice<UInt8> {
        let end = min(start + count, bytes.count)
        defer { start = end }
        return bytes[start..<end]
    }

    /// Removes and returns the bytes up to and including the next line feed; `nil` if none has arrived.
    mutating func takeLine() -> ArraySlice<UInt8>? {
        searched = max(searched, start)
        guard let end = bytes[searched...].firstIndex(of: UInt8(ascii: "\n")) else {
            searched = bytes.count
            return nil
        }
        defer { start = end + 1 }
        return bytes[start...end]
    }
}
