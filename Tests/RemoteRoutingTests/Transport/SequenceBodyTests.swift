import Foundation
import LoopbackOrigin
import RemoteRoutingTesting
import StoreCore
import Testing
import Trials

@testable import RemoteHTTP
@testable import RemoteRouting

@Suite(.timeLimit(.minutes(hangMinutes)))
struct SequenceBodyTests {
    /// Returns a sequence of pieces, which fails after the last one if it breaks.
    private static func sequence(_ pieces: [Data], breaks: Bool = false) -> AsyncThrowingStream<Data, any Error> {
        AsyncThrowingStream { continuation in
            for piece in pieces { continuation.yield(piece) }
            continuation.finish(throwing: breaks ? TestError() : nil)
        }
    }

    private func post(_ stream: HTTPBodyStream, _ method: HTTPMethod = .post) -> Route {
        Route(path: "/x", method: method, body: .stream(stream))
    }

    @Test(arguments: TransportKind.allCases, [nil, 300_000] as [Int64?])
    func `H23, W10: the chunks of a sequence arrive in order, once`(_ kind: TransportKind, _ length: Int64?) async throws {
        let bench = try Bench(kind, on: "POST", "/x") { .data($0.body) }
        let pieces = (0..<30).map { Data(repeating: UInt8($0), count: 10_000) }
        let route = post(HTTPBodyStream(SequenceBodyTests.sequence([Data()] + pieces + [Data()]), length: length))
        let host = bench.host()
        let response = try await host.dataResponse(for: route)
        #expect(response.value == pieces.reduce(Data(), +))
        if kind == .curl {
            #expect(response.metrics?.sentBodyBytes == 300_000)
            #expect(bench.asked.map { $0["Content-Length"] } == [length.map { "\($0)" }])
            #expect(bench.asked.map { $0["Transfer-Encoding"] } == [length == nil ? "chunked" : nil])
        }
        #expect(try await remoteError { try await host.send(route) }.code == .bodyUnreadable)
        #expect(bench.asked.count == 1)
    }

    @Test(arguments: TransportKind.allCases)
    func `H23: arrays of bytes and single bytes arrive too, and an empty sequence is an empty body`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind, on: "POST", "/x") { .data($0.body) }
        let host = bench.host()
        let bytes = (0..<40_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let single = AsyncStream<UInt8> { continuation in
            for byte in bytes { continuation.yield(byte) }
            continuation.finish()
        }
        #expect(try await host.data(for: post(HTTPBodyStream(single, length: 40_000))) == Data(bytes))
        let array = AsyncStream<[UInt8]> { continuation in
            continuation.yield(bytes)
            continuation.finish()
        }
        #expect(try await host.data(for: post(HTTPBodyStream(array))) == Data(bytes))
        for length in [nil, 0] as [Int64?] where kind != .session {
            #expect(try await host.data(for: post(HTTPBodyStream(SequenceBodyTests.sequence([]), length: length))).isEmpty)
        }
    }

    @Test(
        arguments: TransportKind.allCases,
        [
            ([], nil, true), ([1000], nil, true), ([], 2000, true), ([1000], 2000, true),
            // The length is checked before the body is complete.
            ([1000, 500], 1000, false), ([1500], 1000, false), ([500], 1000, false), ([1], 0, false),
        ] as [([Int], Int64?, Bool)])
    func `H23: an error of the sequence or a wrong length fails the request, and no complete body arrives`(
        _ kind: TransportKind, _ sequence: (pieces: [Int], length: Int64?, breaks: Bool)
    ) async throws {
        let bench = try Bench(kind, on: "PUT", "/x") { _ in .status(204) }
        let pieces = SequenceBodyTests.sequence(sequence.pieces.map { Data(count: $0) }, breaks: sequence.breaks)
        let error = try await remoteError { try await bench.host().send(post(HTTPBodyStream(pieces, length: sequence.length), .put)) }
        #expect(error.code == .bodyUnreadable && (error.underlyingError is TestError) == sequence.breaks && !error.isRetryable)
        let unmade = HTTPBodyStream { () throws -> AsyncStream<Data> in throw TestError() }
        #expect(try await remoteError { try await bench.host().send(post(unmade, .put)) }.underlyingError is TestError)
        if kind.isReal { try await bench.origin.waitUntil { $0.openConnections == 0 } }
        #expect(bench.asked.isEmpty)
    }

    @Test(arguments: RealTransport.available, [500, 1500])
    func `H23: a length that is set after the sequence is checked too`(_ transport: RealTransport, _ count: Int) async throws {
        let bench = try Bench(transport.kind, on: "PUT", "/x") { _ in .status(204) }
        var body = HTTPBodyStream(SequenceBodyTests.sequence([Data(count: count)]))
        body.length = 1000
        let route = post(body, .put)
        #expect(try await remoteError { try await bench.host().send(route) }.code == .bodyUnreadable)
        try await bench.origin.waitUntil { $0.openConnections == 0 }
        #expect(bench.asked.isEmpty)
    }

    @Test func `H23: a negative length is refused before anything is sent`() async throws {
        let bench = try Bench(.memory)
        let body = HTTPBodyStream(SequenceBodyTests.sequence([]), length: -1)
        let error = try await remoteError { try await bench.host().send(post(body)) }
        #expect((error.underlyingError as? RouteFault)?.code == .invalidOption)
        #expect(bench.memory?.requests.isEmpty == true)
    }

    @Test(arguments: TransportKind.allCases, [true, false])
    func `H7, H23: only a sequence that can be made again is sent again`(_ kind: TransportKind, _ isMade: Bool) async throws {
        let bench = try Bench(kind, on: "PUT", "/x", inTurn: .status(503), .redirect(to: "/y", status: 307))
        bench.on("PUT", "/y") { .data($0.body) }
        let whole = Data("abc".utf8)
        let made = WatchedState(0)
        let body =
            isMade
            ? HTTPBodyStream { () -> AsyncThrowingStream<Data, any Error> in
                made.update { $0 += 1 }
                return SequenceBodyTests.sequence([whole])
            } : HTTPBodyStream(SequenceBodyTests.sequence([whole]))
        let host = bench.host { $0.random = { 0 } }
        let route = post(body, .put)
        if isMade {
            #expect(try await host.data(for: route) == whole)
            #expect(made.current == 3 && bench.asked.map(\.body) == [whole, whole, whole])
        } else {
            #expect(try await remoteError { try await host.send(route) }.attempts == 1)
            #expect(bench.asked.map(\.body) == [whole])
        }
    }

    #if os(Linux)
    /// Chunks of 1 MiB without an end.
    private struct Endless: AsyncSequence, Sendable {
        let ended = WatchedState(false)
        let calls = WatchedState(0)

        final class Iterator: AsyncIteratorProtocol {
            let sequence: Endless
            init(_ sequence: Endless) { self.sequence = sequence }
            deinit { sequence.ended.update { $0 = true } }

            func next() async -> Data? {
                sequence.calls.update { $0 += 1 }
                return Data(count: 1 << 20)
            }
        }

        func makeAsyncIterator() -> Iterator { Iterator(self) }
    }

    @Test(arguments: RealTransport.available)
    func `H23: a sequence waits for the connection, and ends with the request`(_ transport: RealTransport) async throws {
        let gate = DispatchSemaphore(value: 0)
        defer { gate.signal() }
        let server = try RawServer { connection in
            _ = connection.readHead()
            // The body stays in the buffers of the sockets.
            gate.wait()
        }
        let host = try transport.host(server.port) { $0.retry = .never }
        let endless = Endless()
        let task = Task { [route = post(HTTPBodyStream(endless))] in try await host.send(route) }
        try await until("the body is sent") { endless.calls.current > 2 }
        try await leaveIdle(seconds: 1)
        #expect(endless.calls.current < 64 && !endless.ended.current)
        task.cancel()
        #expect(try await remoteError { try await task.value }.code == .cancelled)
        try await until("the sequence ends") { endless.ended.current }
    }

    @Test(.enabled(if: RealTransport.available.contains(.curl), "libcurl is missing"), arguments: ["", "Connection: close\r\n"])
    func `H23: a response that refuses a request ends it, even while the sequence pauses`(_ field: String) async throws {
        let (chunks, chunk) = AsyncStream<Data>.makeStream()
        chunk.yield(Data(count: 10))
        let rest = WatchedState<Int?>(nil)
        let server = try RawServer { connection in
            _ = connection.readHead()
            // With the length of the chunk.
            _ = connection.readBytes(15)
            connection.send("HTTP/1.1 413 Content Too Large\r\n\(field)Content-Length: 4\r\n\r\nbody")
            rest.update { $0 = connection.readBytes(.max) }
        }
        let host = try RealTransport.curl.host(server.port) { ($0.retry, $0.timeouts) = (.never, .init()) }
        let task = Task { [route = post(HTTPBodyStream(chunks))] in try await remoteError { try await host.send(route) } }
        #expect(try await task.value(of: "the call ends").status == 413)
        // Not even the chunk that would end the body.
        #expect(try await rest.wait { $0 } == 0)
        chunk.finish()
    }

    @Test(.enabled(if: RealTransport.available.contains(.curl), "libcurl is missing"))
    func `H23, W7: a response that refuses a request and breaks off is not complete, even while the sequence pauses`() async throws {
        let (chunks, chunk) = AsyncStream<Data>.makeStream()
        chunk.yield(Data(count: 10))
        let server = try RawServer { connection in
            _ = connection.readHead()
            _ = connection.readBytes(15)
            connection.send("HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 9\r\n\r\nbody")
            connection.endSending()
        }
        let host = try RealTransport.curl.host(server.port) { ($0.retry, $0.timeouts) = (.never, .init()) }
        let task = Task { [route = post(HTTPBodyStream(chunks))] in
            try await remoteError { _ = try await host.dataResponse(for: route, accepting: [413]) }
        }
        #expect(try await task.value(of: "the call ends").code == .connectionLost)
        chunk.finish()
    }

    @Test(.enabled(if: RealTransport.available.contains(.curl), "libcurl is missing"))
    func `H14, H18, H23: a body of unknown length is not sent to a server that is known to use HTTP 1.0`() async throws {
        let heads = WatchedState(0)
        let server = try RawServer { connection in
            while connection.readHead() != nil {
                heads.update { $0 += 1 }
                connection.send("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n")
            }
        }
        let host = try RealTransport.curl.host(server.port)
        try await host.send("/x")
        let body = HTTPBodyStream { SequenceBodyTests.sequence([Data(count: 10)]) }
        let error = try await remoteError { try await host.send(post(body)) }
        #expect(error.code == .unreachable && !error.mayHaveArrived && error.message.contains("HTTP/1.0"))
        #expect(heads.current == 1)
    }

    @Test(.enabled(if: RealTransport.available.contains(.curl), "libcurl is missing"))
    func `H23: sequences that wait for their next chunk hold no threads`() async throws {
        let origin = try LoopbackOrigin { .text("\($0.body.count)") }
        let host = try RealTransport.curl.host(origin.port) { $0.limits.concurrentExchanges = 200 }
        // More than the system has threads for work that blocks.
        let silent = (0..<100).map { _ in AsyncStream<Data>.makeStream() }
        let tasks = silent.map { pair in
            Task { [route = post(HTTPBodyStream(pair.stream, length: 1))] in try await host.data(for: route) }
        }
        try await origin.waitUntil { $0.acceptedConnections >= 100 }
        let blocking = HTTPBodyStream(chunks: [Data(count: 10)], length: 10, isReplayable: false)
        #expect(try await host.data(for: post(blocking)) == Data("10".utf8))
        for pair in silent {
            pair.continuation.yield(Data(count: 1))
            pair.continuation.finish()
        }
        for task in tasks { #expect(try await task.value == Data("1".utf8)) }
    }
    #endif
}

/// Bodies that are produced while they are sent.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct SendingBodyTests {
    private func stream(_ pieces: [Data], length: Int64?, breaks: Bool = false) -> HTTPBodyStream {
        HTTPBodyStream(length: length, isReplayable: true) {
            let parts = Parts(pieces)
            return { _ in
                if let piece = parts.next() { return piece }
                if breaks { throw TestError() }
                return nil
            }
        }
    }

    #if !canImport(Darwin)
    @Test func `a body stream reports its state to its session`() {
        let parts = Parts([Data(), Data("abc".utf8)])
        let stream = BodyInputStream({ _ in parts.next() }, onFailure: { _ in })
        #expect(stream.streamStatus == .notOpen && !stream.hasBytesAvailable)
        stream.open()
        #expect(stream.streamStatus == .open && stream.hasBytesAvailable)
        var bytes = [UInt8](repeating: 0, count: 2)
        #expect(stream.read(&bytes, maxLength: 2) == 2 && bytes == Array("ab".utf8))
        #expect(stream.streamStatus == .open && stream.hasBytesAvailable)
        #expect(stream.read(&bytes, maxLength: 2) == 1 && bytes.first == UInt8(ascii: "c"))
        #expect(stream.streamStatus == .atEnd && !stream.hasBytesAvailable && stream.streamError == nil)
        stream.close()
        #expect(stream.streamStatus == .closed)
    }

    @Test func `a body stream that cannot be read reports its error once`() {
        let failures = WatchedState(0)
        let stream = BodyInputStream({ _ in throw TestError() }, onFailure: { _ in failures.update { $0 += 1 } })
        stream.open()
        #expect(stream.streamStatus == .error && stream.streamError is TestError)
        var bytes: [UInt8] = [0]
        #expect(stream.read(&bytes, maxLength: 1) == -1)
        #expect(failures.current == 1)
    }
    #endif

    private static let long = Array(repeating: 100_000, count: 30)

    @Test(arguments: RealTransport.available, [([700, 300], true), ([262_000, 144], true), (long, true), (long, false)])
    func `a body is sent while it is produced, and a short one of known length with its length`(
        _ transport: RealTransport, _ sizes: (pieces: [Int], areKnown: Bool)
    ) async throws {
        let bench = try Bench(transport.kind, on: "POST", "/x") { .data($0.body) }
        let pieces = sizes.pieces.enumerated().map { Data(repeating: UInt8($0.offset), count: $0.element) }
        let whole = pieces.reduce(Data(), +)
        let body = stream(pieces, length: sizes.areKnown ? Int64(whole.count) : nil)
        #expect(try await bench.host().data(for: Route(path: "/x", method: .post, body: .stream(body))) == whole)
        // The session's transport reads at most 256 KiB into memory.
        #expect(whole.count > 262_144 || bench.asked.first?["Content-Length"] == "\(whole.count)")
    }

    @Test(arguments: RealTransport.available, [nil, 2000] as [Int64?])
    func `a body that ends early fails the request`(_ transport: RealTransport, _ length: Int64?) async throws {
        let bench = try Bench(transport.kind, on: "POST", "/x") { asked in .text("\(asked.body.count)") }
        let body = stream([Data(count: 1000)], length: length, breaks: true)
        let host = bench.host()
        let error = try await remoteError { try await host.send(Route(path: "/x", method: .post, body: .stream(body))) }
        #expect(error.code == .bodyUnreadable && bench.asked.isEmpty, "\(error)")
    }

    @Test func `H3: a token that is not a field value is refused before anything is sent`() async throws {
        let memory = MemoryTransport { _ in .status(204) }
        let host = RemoteHost("a.example", transport: memory).authorized(by: .bearer("a\r\nX-Evil: 1"))
        let error = try await remoteError { try await host.send("/x") }
        #expect((error.underlyingError as? RouteFault)?.code == .invalidField)
        #expect(!error.description.contains("Evil") && memory.requests.isEmpty, "\(error)")
    }
}
