internal import Foundation

/// The parts of a response body, such as its lines. A part may span several pieces of the body.
struct BodyParts<Part: Sendable>: AsyncSequence, Sendable {
    let bytes: RemoteBytes
    /// Makes a parser, which appends the parts that a piece completes, also before it throws; `nil` is the end of the body.
    let makeParser: @Sendable () -> (Data?, inout [Part]) throws -> Void

    struct AsyncIterator: AsyncIteratorProtocol {
        private var base: RemoteBytes.AsyncIterator
        private let parse: (Data?, inout [Part]) throws -> Void
        private var ready: [Part] = []
        /// The error of the parser, which follows the parts before it.
        private var failure: (any Error)?
        private var isAtEnd = false

        fileprivate init(_ parts: BodyParts) {
            base = parts.bytes.makeAsyncIterator()
            parse = parts.makeParser()
        }

        mutating func next() async throws -> Part? {
            while ready.isEmpty, !isAtEnd {
                // Until the next parts, because none follow an error.
                isAtEnd = true
                let piece = try await base.next()
                var parts: [Part] = []
                do {
                    try parse(piece, &parts)
                    isAtEnd = piece == nil
                } catch {
                    failure = error
                }
                // Reversed, because removing the last element takes constant time.
                ready = parts.reversed()
            }
            if let part = ready.popLast() { return part }
            if let failure = failure.take() { throw failure }
            return nil
        }
    }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }
}

struct LineSplitter {
    let limit: Int
    private var line: [UInt8] = []
    private var lastWasCR = false
    /// Whether a line is too long, so that the splitter must not be used any more.
    private(set) var isTooLong = false

    init(limit: Int) { self.limit = limit }

    /// Returns the lines that these bytes complete, up to one that is too long.
    mutating func take(_ piece: Data) -> [String] {
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
                guard line.count < limit else {
                    isTooLong = true
                    return lines
                }
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
