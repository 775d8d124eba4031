/// The bytes after a head on the wire, as pieces that may repeat, so that large bodies take little memory.
struct WireBody {
    struct Piece {
        var bytes: [UInt8]
        var times = 1

        var count: Int { bytes.count * times }
    }

    private(set) var pieces: [Piece]
    /// The number of bytes taken from the first piece.
    private var offset = 0
    private(set) var count: Int

    init(_ pieces: [Piece]) {
        self.pieces = pieces.filter { $0.count > 0 }
        count = pieces.reduce(0) { $0 + $1.count }
    }

    /// Removes all but the first `length` bytes.
    mutating func cut(to length: Int) {
        var room = length
        let kept = pieces.flatMap { piece in
            let whole = min(piece.times, room / piece.bytes.count)
            room -= whole * piece.bytes.count
            guard whole < piece.times else { return [piece] }
            let part = Array(piece.bytes.prefix(room))
            room = 0
            return [Piece(bytes: piece.bytes, times: whole), Piece(bytes: part)]
        }
        self = WireBody(kept)
    }

    /// Removes and returns the next `length` bytes, or the rest.
    mutating func take(upTo length: Int) -> [UInt8] {
        var taken: [UInt8] = []
        let wanted = min(length, count)
        taken.reserveCapacity(wanted)
        while taken.count < wanted, let piece = pieces.first {
            let position = offset % piece.bytes.count
            let part = piece.bytes[position...].prefix(wanted - taken.count)
            taken += part
            offset += part.count
            if offset == piece.count {
                pieces.removeFirst()
                offset = 0
            }
        }
        count -= taken.count
        return taken
    }

    /// Returns the same bytes in chunked coding without the last chunk, in chunks of at most `size` bytes.
    func chunked(by size: Int) -> WireBody {
        var chunks: [Piece] = []
        for piece in pieces {
            // Gathering a short repeating piece fills whole chunks instead of making one of each repetition.
            let repetitions = max(1, size / piece.bytes.count)
            let (full, rest) = piece.times.quotientAndRemainder(dividingBy: repetitions)
            for (block, times) in [(repetitions, full), (rest, 1)] where block * times > 0 {
                let bytes = Array(repeatElement(piece.bytes, count: block).joined())
                chunks += Self.chunks(of: bytes, size: size, times: times)
            }
        }
        return WireBody(chunks)
    }

    mutating func append(_ bytes: [UInt8]) {
        pieces.append(Piece(bytes: bytes))
        count += bytes.count
    }

    private static func chunks(of bytes: [UInt8], size: Int, times: Int) -> [Piece] {
        let encoded = stride(from: 0, to: bytes.count, by: size).map { start in
            let part = bytes[start..<min(start + size, bytes.count)]
            return Array("\(String(part.count, radix: 16))\r\n".utf8) + part + [0x0D, 0x0A]
        }
        return [Piece(bytes: Array(encoded.joined()), times: times)]
    }
}
