/// The steps that put a response on the wire: bytes to send, pauses, and the end. Planned once, without I/O.
struct AnswerPlan {
    enum Step {
        case pause(Duration)
        case head([UInt8])
        case body(WireBody, pace: Pace)
        case end(End)
    }

    /// The number of bytes that are sent at a time, and the pause in between.
    struct Pace {
        var bytes = 65_536
        var pause: Duration?
    }

    /// The fate of the connection after the response.
    enum End: Equatable {
        case keepAlive
        /// Closes after the client has received everything.
        case close
        /// Closes at once, like a server that no longer keeps an idle connection.
        case hangUp
        case reset
        case closeOnNextRequest
        case closeIdle(after: Duration)
        /// Waits for the client to leave.
        case hang
    }

    /// The remaining steps in reverse: the last element is next.
    private(set) var steps: [Step] = []
    /// The status in the head; `nil` if no head is sent.
    private(set) var status: Int?
    /// Whether the response arrives as its head promises.
    private(set) var isComplete = true

    private var misbehavior: Reading
    private let request: LoopbackOrigin.Request

    init(_ response: LoopbackOrigin.Response, to request: LoopbackOrigin.Request) {
        self.request = request
        misbehavior = Reading(response.misbehaviors)
        if let delay = misbehavior.headDelay { steps.append(.pause(delay)) }
        switch (misbehavior.insteadOfHead, response.body) {
        case (.some(let end), _):
            isComplete = false
            steps.append(.end(end))
        case (nil, .verbatim(let bytes)):
            status = Self.status(in: bytes)
            send(WireBody([.init(bytes: [UInt8](bytes))]), end: ending(closes: closes(response)))
        case (nil, .data(let data)): sendMessage(response, WireBody([.init(bytes: [UInt8](data))]))
        case (nil, .repeated(let data, let times)): sendMessage(response, WireBody([.init(bytes: [UInt8](data), times: times)]))
        case (nil, .gzippedZeros(let count)): sendMessage(response, Gzip.zeros(count: count))
        }
        steps.reverse()
    }

    /// Removes and returns the next step.
    mutating func next() -> Step? { steps.popLast() }

    /// Inserts a step before the others, after an optional pause.
    mutating func putBack(_ step: Step, after pause: Duration?) {
        steps.append(step)
        if let pause { steps.append(.pause(pause)) }
    }

    private mutating func sendMessage(_ response: LoopbackOrigin.Response, _ content: WireBody) {
        status = response.status
        let hasBody = Self.mayHaveBody(response.status)
        let isSent = hasBody && request.method != .head
        var headers = response.headers
        var closes = closes(response)
        var body = content
        switch framing(of: response) {
        case .length:
            let lengths = misbehavior.declaredLengths ?? (hasBody && headers["Content-Length"] == nil ? [body.count] : [])
            for length in lengths { headers.add("Content-Length", "\(length)") }
        case .chunked(let size):
            if hasBody { headers.add("Transfer-Encoding", "chunked") }
            if let place = misbehavior.chunkBreak { body.cut(to: place) }
            body = body.chunked(by: max(1, size))
            body.append(Array((misbehavior.chunkBreak == nil ? "0\r\n\r\n" : "not a size\r\n").utf8))
        case .untilClosed: closes = true
        }
        if closes, headers["Connection"] == nil { headers.add("Connection", "close") }
        let lines = headers.fields.map { "\($0.name): \($0.value)\r\n" }.joined()
        steps.append(.head(StatusLine.bytes(status: response.status) + Array("\(lines)\r\n".utf8)))
        if misbehavior.chunkBreak != nil {
            isComplete = false
            closes = true
        }
        send(isSent ? body : WireBody([]), end: ending(closes: closes))
    }

    private mutating func send(_ body: WireBody, end: End) {
        var body = body
        var end = end
        if let cut = misbehavior.cut {
            body.cut(to: cut.place)
            end = cut.end
            isComplete = false
        }
        if body.count > 0 { steps.append(.body(body, pace: misbehavior.pace)) }
        if let delay = misbehavior.closeDelay { steps.append(.pause(delay)) }
        steps.append(.end(end))
    }

    private func framing(of response: LoopbackOrigin.Response) -> LoopbackOrigin.Response.Framing {
        let wanted = misbehavior.chunkBreak != nil && response.framing == .length ? .chunked(bytes: 65_536) : response.framing
        if case .chunked = wanted, request.minorVersion == 0 { return .untilClosed }
        return wanted
    }

    private func ending(closes: Bool) -> End { misbehavior.connection ?? (closes ? .close : .keepAlive) }

    /// Returns whether the client or the handler wants the connection to end (RFC 9112, section 9.3).
    private func closes(_ response: LoopbackOrigin.Response) -> Bool {
        let options = request.headers.listedTokens("Connection")
        let isLast = options.contains("close") || (request.minorVersion == 0 && !options.contains("keep-alive"))
        return isLast || response.headers.listedTokens("Connection").contains("close")
    }

    private static func mayHaveBody(_ status: Int) -> Bool { status >= 200 && status != 204 && status != 304 }

    /// Returns the status in verbatim bytes if they begin like a response.
    private static func status(in bytes: some Collection<UInt8>) -> Int? {
        let line = String(decoding: bytes.prefix(32), as: UTF8.self).split(separator: " ")
        guard line.count > 1, line[0].hasPrefix("HTTP/1.") else { return nil }
        return Int(line[1].prefix(3))
    }
}

extension AnswerPlan {
    /// A list of misbehaviors in the form that the plan needs; of two contradictory ones, the later counts.
    private struct Reading {
        var headDelay: Duration?
        var pace = Pace()
        var cut: (place: Int, end: End)?
        var insteadOfHead: End?
        var declaredLengths: [Int]?
        var chunkBreak: Int?
        var connection: End?
        var closeDelay: Duration?

        init(_ misbehaviors: [LoopbackOrigin.Misbehavior]) {
            for misbehavior in misbehaviors {
                switch misbehavior {
                case .delayHead(let duration): headDelay = duration
                case .drip(let bytes, let pause): pace = Pace(bytes: max(1, bytes), pause: pause)
                case .truncate(let place): cut = (place, .close)
                case .reset(let place): cut = (place, .reset)
                case .resetBeforeHead: insteadOfHead = .reset
                case .stall(let place): cut = (place, .hang)
                case .neverAnswer: insteadOfHead = .hang
                case .declareLengths(let lengths): declaredLengths = lengths
                case .breakChunk(let place): chunkBreak = place
                case .closeSilently: connection = .hangUp
                case .closeLate(let delay): (connection, closeDelay) = (.hangUp, delay)
                case .closeIdle(let delay): connection = .closeIdle(after: delay)
                case .closeOnNextRequest: connection = .closeOnNextRequest
                }
            }
        }
    }
}
