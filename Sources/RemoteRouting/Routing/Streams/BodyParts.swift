internal import Foundation

/// The parts of a response body, such as its lines. A part may span several pieces of the body.
struct BodyParts<Part: Sendable>: AsyncSequence, Sendable {
    let bytes: RemoteBytes
    /// Makes a parser, which returns the parts that a piece completes; `nil` is the end of the body.
    let makeParser: @Sendable () -> (Data?) throws -> [Part]

    struct AsyncIterator: AsyncIteratorProtocol {
        private var base: RemoteBytes.AsyncIterator
        private let parse: (Data?) throws -> [Part]
        private var ready: [Part] = []
        private var isAtEnd = false

        fileprivate init(_ parts: BodyParts) {
            base = parts.bytes.makeAsyncIterator()
            parse = parts.makeParser()
        }

        /// Returns the next part; `nil` at the end.
        ///
        /// - Throws: ``RemoteError``; with ``RemoteError/Code/bodyTooLarge`` for a part over the limit.
        mutating func next() async throws -> Part? {
            while ready.isEmpty, !isAtEnd {
                // Until the next parts, because none follow an error.
                isAtEnd = true
                let piece = try await base.next()
                // Reversed, because removing the last element takes constant time.
                ready = try parse(piece).reversed()
                isAtEnd = piece == nil
            }
            return ready.popLast()
        }
    }

    /// Creates the iterator; only one can read the body.
    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }
}

/// A splitter of bytes into lines, which may span several pieces.
struct LineSplitter {
    let limit: Int
    private var line: [UInt8] = []
    private var lastWasCR = false

    init(limit: Int) { self.limit = limit }

    /// Returns the lines that these bytes complete; `nil` if a line is too long.
    mutating func take(_ piece: Data) -> [String]? {
        var lines: [String] = []
        for byte in piece {
            let follows = lastWasCR
            lastWasCR = byte == 0x0D
            switch byte {
            case 0x0A where follows: break
            case 0x0A, 0x0D:
                lines.append(String(decoding: line, as: UTF8.self))
                line.removeAll(keepingCapacity: true)
            default:
                guard line.count < limit else { return nil }
                line.append(byte)
            }
        }
        return lines
    }

    /// Returns the text after the last line ending; `nil` if there is none.
    mutating func finish() -> String? {
        defer { line = [] }
        return line.isEmpty ? nil : String(decoding: line, as: UTF8.self)
    }
}
