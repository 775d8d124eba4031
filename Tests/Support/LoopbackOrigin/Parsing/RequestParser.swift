/// A complete request.
struct ParsedRequest {
    let head: RequestHead
    var body: [UInt8] = []
    var trailers = LoopbackOrigin.Headers()
}

/// Parses the bytes of one connection into requests: a state machine without I/O that accepts bytes in any pieces.
struct RequestParser {
    enum Output {
        /// The head has arrived, and the client waits for permission to send the body.
        case continueExpected
        case request(ParsedRequest)
    }

    private enum Stage {
        case requestLine
        case fields(RequestHead)
        case body(missing: Int)
        case chunkSize
        case chunk(missing: Int)
        case chunkEnd
        case trailers
    }

    private let limits: LoopbackOrigin.Limits
    private(set) var queue = ByteQueue()
    private var stage = Stage.requestLine
    /// The request with the arriving body; stored outside the stage so that the body grows in place.
    private var draft: ParsedRequest?
    private var trailerBytes = 0

    init(limits: LoopbackOrigin.Limits) { self.limits = limits }

    mutating func append(_ bytes: some Collection<UInt8>) { queue.append(bytes) }

    /// Returns the next complete output; `nil` until more bytes arrive.
    ///
    /// After an error the connection cannot continue, because the start of the next request is unknown.
    mutating func next() throws(MalformedRequest) -> Output? {
        while true {
            switch stage {
            case .requestLine:
                guard let line = try line(limit: limits.requestLine, status: 414) else { return nil }
                // RFC 9112, section 2.2, requires empty lines before a request to be ignored.
                if line.elementsEqual([0x0D, 0x0A]) { continue }
                stage = .fields(try RequestHead(requestLine: line))
            case .fields(var head):
                let room = limits.head - head.raw.count
                guard let line = try line(limit: room, status: 431) else { return nil }
                let isComplete = try head.add(line: line)
                stage = .fields(head)
                if isComplete, let output = try begin(head) { return output }
            case .body(let missing):
                guard try fill(missing, next: Stage.body) else { return nil }
                return finish()
            case .chunkSize:
                guard let line = try line(limit: 4096, status: 400) else { return nil }
                let size = try chunkSize(line)
                stage = size == 0 ? .trailers : .chunk(missing: size)
            case .chunk(let missing):
                guard try fill(missing, next: Stage.chunk) else { return nil }
                stage = .chunkEnd
            case .chunkEnd:
                guard let line = try line(limit: 2, status: 400) else { return nil }
                guard line.count == 2, try RequestHead.withoutLineEnd(line).isEmpty else {
                    throw MalformedRequest("a chunk is longer than its size")
                }
                stage = .chunkSize
            case .trailers:
                guard let line = try line(limit: limits.head - trailerBytes, status: 431) else { return nil }
                trailerBytes += line.count
                guard let field = try RequestHead.field(line) else { return finish() }
                draft?.trailers.add(field.name, field.value)
            }
        }
    }

    /// Sets the stage after a complete head; returns an output if the client waits for permission.
    private mutating func begin(_ head: RequestHead) throws(MalformedRequest) -> Output? {
        switch try head.framing() {
        case .length(let length):
            guard length <= limits.body else { throw MalformedRequest(413, "the body is too large") }
            stage = .body(missing: length)
            draft = ParsedRequest(head: head)
            return head.expectsContinue && length > 0 ? .continueExpected : nil
        case .chunked:
            stage = .chunkSize
            trailerBytes = 0
            draft = ParsedRequest(head: head)
            return head.expectsContinue ? .continueExpected : nil
        }
    }

    /// Moves up to `missing` bytes into the body; returns whether the body is complete.
    private mutating func fill(_ missing: Int, next: (Int) -> Stage) throws(MalformedRequest) -> Bool {
        let bytes = queue.take(upTo: missing)
        draft?.body += bytes
        guard draft?.body.count ?? 0 <= limits.body else { throw MalformedRequest(413, "the body is too large") }
        stage = next(missing - bytes.count)
        return bytes.count == missing
    }

    private mutating func finish() -> Output? {
        stage = .requestLine
        defer { draft = nil }
        return draft.map(Output.request)
    }

    private mutating func line(limit: Int, status: Int) throws(MalformedRequest) -> ArraySlice<UInt8>? {
        let line = queue.takeLine()
        guard line?.count ?? queue.count <= limit else { throw MalformedRequest(status, "a line is too long") }
        return line
    }

    private func chunkSize(_ line: ArraySlice<UInt8>) throws(MalformedRequest) -> Int {
        let content = try RequestHead.withoutLineEnd(line)
        let digits = content.prefix { $0 != UInt8(ascii: ";") && $0 != 0x20 && $0 != 0x09 }
        let text = String(decoding: digits, as: UTF8.self)
        guard !text.isEmpty, text.allSatisfy(\.isHexDigit), let size = Int(text, radix: 16) else {
            throw MalformedRequest("a chunk size is a hexadecimal number")
        }
        guard size <= limits.body - (draft?.body.count ?? 0) else { throw MalformedRequest(413, "the body is too large") }
        return size
    }
}
