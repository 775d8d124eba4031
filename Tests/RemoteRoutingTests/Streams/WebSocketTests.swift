#if os(Linux)
import Foundation
import LoopbackOrigin
import RemoteRoutingTesting
import StoreCore
import StoreCoreTesting
import Testing
import Trials

@testable import RemoteRouting

private func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }

@Suite(.enabled(if: RealTransport.available.contains(.curl), "libcurl is missing"), .timeLimit(.minutes(hangMinutes)))
struct WebSocketTests {
    private let quiet = WebSocket.Options(pingInterval: nil)
    private let route = Route(path: "/socket", query: ["room": "a b"])

    private func open(_ server: SocketServer, _ options: WebSocket.Options? = nil) async throws -> WebSocket {
        try await server.host().webSocket(for: route, options: options ?? quiet)
    }

    private func all(_ socket: WebSocket) async throws -> [WebSocket.Message] {
        var messages: [WebSocket.Message] = []
        for try await message in socket { messages.append(message) }
        return messages
    }

    // MARK: Messages

    @Test(arguments: [0, 1, 125, 126, 65_535, 65_536, 300_000])
    func `H25: texts and data of every length go both ways, masked by the client only`(_ count: Int) async throws {
        let server = try SocketServer.echoing()
        let socket = try await open(server)
        let bytes = Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) })
        let messages: [WebSocket.Message] = [.data(bytes), .text(String(repeating: "x", count: count)), .text("ä€🙂")]
        for message in messages { try await socket.send(message) }
        var iterator = socket.makeAsyncIterator()
        for message in messages { #expect(try await iterator.next() == message) }
        try await socket.close(code: .normal, reason: "done")
        #expect(try await iterator.next() == nil)
        let frames = server.frames.current
        #expect(frames.map(\.first) == [0x82, 0x81, 0x81, 0x88] && frames.allSatisfy(\.isMasked))
        #expect(frames.last?.payload == [0x03, 0xE8] + Array("done".utf8))
        #expect(socket.closure == WebSocket.Closure(code: .normal, reason: "done"))
        let head = server.heads.current[0]
        #expect(head.hasPrefix("GET /socket?room=a%20b HTTP/1.1\r\n") && head.contains("\r\nSec-WebSocket-Version: 13\r\n"))
        #expect(!head.contains("Transfer-Encoding") && !head.contains("Content-"))
    }

    @Test func `H25: fragments are joined, and a ping between them is answered`() async throws {
        let server = try SocketServer { peer in
            peer.accept(then: SocketServer.frame(0x01, Array("Hel".utf8)))
            peer.send(0x89, [1, 2, 3])
            peer.send(0x00, [])
            peer.next()
            peer.send(0x80, Array("lo".utf8))
            peer.send(0x88, [])
            peer.next()
        }
        let socket = try await open(server)
        #expect(try await all(socket) == [.text("Hello")])
        #expect(socket.closure == WebSocket.Closure(code: nil, reason: ""))
        try await server.ended.wait { $0 == 1 ? () : nil }
        #expect(server.frames.current == [ClientFrame(first: 0x8A, payload: [1, 2, 3]), ClientFrame(first: 0x88, payload: [])])
    }

    @Test func `H25: messages of many tasks are sent whole`() async throws {
        let server = try SocketServer.echoing()
        let socket = try await open(server)
        let sent = (0..<50).map { WebSocket.Message.text(String(repeating: "\($0),", count: 1 + $0 * 100)) }
        try await atOnce(sent.count) { try await socket.send(sent[$0]) }
        var received: Set<WebSocket.Message> = []
        var iterator = socket.makeAsyncIterator()
        while received.count < sent.count, let message = try await iterator.next() { received.insert(message) }
        #expect(received == Set(sent))
        try await socket.close()
    }

    @Test func `H25: a slow reader stops the server`() async throws {
        let (count, size) = (1_000, 65_536)
        let sent = WatchedState(0)
        let server = try SocketServer { peer in
            peer.accept()
            for number in 0..<count {
                peer.send(0x82, [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: size))
                sent.update { $0 += 1 }
            }
            peer.send(0x88, [])
            peer.next()
        }
        let socket = try await open(server)
        try await sent.wait { $0 > 0 ? () : nil }
        await otherTasksRun(turns: 20_000)
        // The rest is in the buffers of both sockets.
        #expect(sent.current < count / 2)
        var read = 0
        for try await message in socket {
            #expect(message == .data(Data(repeating: UInt8(truncatingIfNeeded: read), count: size)))
            read += 1
        }
        #expect(read == count)
    }

    // MARK: Faults

    @Test(
        arguments: [
            ([0xC1, 0x00], 1002), ([0x81, 0x80, 0, 0, 0, 0], 1002), ([0x83, 0x00], 1002), ([0x8B, 0x00], 1002), ([0x09, 0x00], 1002),
            ([0x89, 0x7E, 0x00, 0x7E], 1002), ([0x80, 0x00], 1002), ([0x01, 0x01, 0x61, 0x81, 0x00], 1002), ([0x82, 0x7E, 0, 5], 1002),
            ([0x82, 0x7F, 0, 0, 0, 0, 0, 0, 1, 0], 1002), ([0x82, 0x7F, 0x80, 0, 0, 0, 0, 0, 0, 0], 1002),
            ([0x81, 0x02, 0xC3, 0x28], 1007), ([0x01, 0x01, 0xC3, 0x80, 0x01, 0x28], 1007), ([0x88, 0x01, 0x03], 1002),
            ([0x88, 0x02, 0x03, 0xED], 1002), ([0x88, 0x02, 0x03, 0xEE], 1002), ([0x88, 0x02, 0x00, 0x01], 1002),
            ([0x88, 0x03, 0x03, 0xE8, 0xFF], 1007),
        ] as [([UInt8], UInt16)])
    func `H25: a frame that breaks the rules ends the connection, with the reason for the server`(
        _ bytes: [UInt8], _ code: UInt16
    ) async throws {
        let server = try SocketServer { peer in
            peer.accept(then: SocketServer.frame(0x81, Array("first".utf8)) + bytes)
            peer.next()
        }
        let socket = try await open(server)
        var iterator = socket.makeAsyncIterator()
        #expect(try await iterator.next() == .text("first"))
        let error = try await remoteError { _ = try await iterator.next() }
        #expect(error.code == .protocolViolation && !error.isRetryable)
        #expect(try await iterator.next() == nil)
        try await server.ended.wait { $0 == 1 ? () : nil }
        #expect(server.frames.current == [ClientFrame(first: 0x88, payload: [UInt8(code >> 8), UInt8(code & 0xFF)])])
        #expect(socket.closure == nil)
    }

    @Test(arguments: [SocketServer.frame(0x82, zeros(101)), SocketServer.frame(0x02, zeros(60)) + [0x80, 41]])
    func `H25: a message above the limit ends the connection at the header that announces it`(_ bytes: [UInt8]) async throws {
        let server = try SocketServer { peer in
            peer.accept(then: bytes)
            peer.next()
        }
        let error = try await remoteError {
            _ = try await all(try await open(server, WebSocket.Options(messageBytes: 100, pingInterval: nil)))
        }
        #expect(error.code == .bodyTooLarge && error.message.contains("100 bytes"))
        try await server.ended.wait { $0 == 1 ? () : nil }
        #expect(server.frames.current.last?.payload == [0x03, 0xF1])
    }

    @Test(arguments: [[], [0x81], [0x81, 0x05, 0x61], SocketServer.frame(0x01, [0x61])] as [[UInt8]])
    func `H25: a server that ends without a Close frame is a lost connection, which may be opened again`(_ bytes: [UInt8]) async throws {
        let server = try SocketServer { peer in peer.accept(then: SocketServer.frame(0x81, Array("a".utf8)) + bytes) }
        let socket = try await open(server)
        var iterator = socket.makeAsyncIterator()
        #expect(try await iterator.next() == .text("a"))
        let error = try await remoteError { _ = try await iterator.next() }
        #expect(error.code == .connectionLost && error.isRetryable)
        let closed = try await remoteError { try await socket.send(.text("b")) }
        #expect(closed.code == .connectionLost && closed.message.contains("open another one"))
        _ = server.heads.current
    }

    @Test(arguments: [
        ("401 Unauthorized", "", 401), ("302 Found", "Location: /other\r\n", 302), ("200 OK", "", 200), ("503 Busy", "", 503),
        ("426 Upgrade Required", "", 426),
    ])
    func `H25: a refused handshake is an error with its status, and is not redirected`(
        _ line: String, _ field: String, _ status: Int
    ) async throws {
        let server = try SocketServer { peer in
            peer.connection.send("HTTP/1.1 \(line)\r\n\(field)Content-Length: 6\r\n\r\nreason")
            peer.next()
        }
        let error = try await remoteError { _ = try await open(server) }
        #expect(error.code == .badStatus && error.status == status && error.body == Data("reason".utf8))
        try await server.ended.wait { $0 == 1 ? () : nil }
        #expect(server.frames.current == [] && server.heads.current.count == 1)
    }

    @Test(arguments: ["Sec-WebSocket-Extensions: permessage-deflate\r\n", "Sec-WebSocket-Protocol: other\r\n", nil])
    func `H25: an answer that was not offered, or that does not prove the key, is refused`(_ field: String?) async throws {
        let server = try SocketServer { peer in
            let unproved = "HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n"
            if let field { peer.accept(field) } else { peer.connection.send(unproved) }
            peer.next()
        }
        #expect(try await remoteError { _ = try await open(server, WebSocket.Options(protocols: ["mine"])) }.code == .protocolViolation)
        try await server.ended.wait { $0 == 1 ? () : nil }
    }

    @Test func `H14, H25: a transport without WebSockets refuses them, and so do bodies and malformed options`() async throws {
        let server = try SocketServer { $0.next() }
        let session = try server.host { $0.transport = URLSessionTransport() }
        #expect(try await remoteError { _ = try await session.webSocket(for: route) }.code == .unsupported)
        let memory = try server.host { $0.transport = MemoryTransport { _ in .status(101) } }
        #expect(try await remoteError { _ = try await memory.webSocket(for: route) }.code == .unsupported)
        let host = try server.host()
        for options in [WebSocket.Options(protocols: ["a b"]), WebSocket.Options(protocols: ["a", "a"])] {
            #expect(try await remoteError { _ = try await host.webSocket(for: route, options: options) }.code == .invalidRoute)
        }
        let post = Route(path: "/", method: .post, body: .data(Data()))
        #expect(try await remoteError { _ = try await host.webSocket(for: post) }.code == .invalidRoute)
        #expect(server.heads.current == [])
    }

    // MARK: Closing

    @Test func `H25: a close of the server is answered, and ends the messages`() async throws {
        let server = try SocketServer { peer in
            peer.accept("Sec-WebSocket-Protocol: mine\r\n")
            peer.send(0x81, Array("last".utf8))
            peer.send(0x88, [0x0B, 0xB8] + Array("bye".utf8))
            peer.next()
        }
        let socket = try await open(server, WebSocket.Options(protocols: ["other", "mine"]))
        #expect(socket.subprotocol == "mine" && socket.response.status == 101)
        #expect(try await all(socket) == [.text("last")])
        #expect(socket.closure == WebSocket.Closure(code: .init(rawValue: 3000), reason: "bye"))
        try await server.ended.wait { $0 == 1 ? () : nil }
        #expect(server.frames.current == [ClientFrame(first: 0x88, payload: [0x0B, 0xB8])])
    }

    @Test func `H25: a server that does not answer a close is left after five seconds`() async throws {
        let server = try SocketServer.silent()
        let time = ManualTime()
        let socket = try await server.host { $0.time = time }.webSocket(for: route, options: quiet)
        let isClosed = WatchedState(false)
        let closing = Task {
            try await socket.close(code: .goingAway)
            isClosed.update { $0 = true }
        }
        try await until("the socket is closed") {
            time.advance(by: .seconds(1))
            return isClosed.current
        }
        try await closing.value
        try await server.ended.wait { $0 == 1 ? () : nil }
        #expect(try await all(socket) == [])
    }

    /// The link to a server that reads nothing.
    private struct BlockedLink: SocketLink {
        func check(_ fields: HTTPFields) {}
        func receive(_ body: HTTPResponse.Body, _ take: (SocketEvent) async throws -> Bool) async throws { try await untilCanceled() }
        func send(_ event: SocketEvent) async throws { try await untilCanceled() }
        func post(_ event: SocketEvent) {}
        func finish() {}
    }

    @Test func `H25: a server that does not even read a close is left after five seconds, too`() async throws {
        let time = ManualTime()
        let host = RemoteHost("a.example", transport: MemoryTransport { _ in .status(404) }).with { $0.time = time }
        let call = try RouteCall(route, at: host, .upgrade(SocketUpgrade(protocols: [], messageBytes: 1, silence: nil)))
        let body = HTTPResponse(status: 101, url: URL(filePath: "/")).body
        let connection = SocketConnection(BlockedLink(), body, call, pingInterval: nil)
        let closing = Task { try await connection.close(1000, "") }
        try await time.advance(by: .seconds(5), sleepers: 1)
        try await closing.value(of: "the socket is closed")
    }

    @Test(arguments: [1005, 1006, 1015, 0, 999, 2999, 5000] as [UInt16])
    func `H25: a code that is never sent is refused`(_ code: UInt16) async throws {
        let server = try SocketServer.echoing()
        let socket = try await open(server)
        #expect(try await remoteError { try await socket.close(code: .init(rawValue: code)) }.code == .invalidRoute)
        let long = String(repeating: "x", count: 124)
        #expect(try await remoteError { try await socket.close(reason: long) }.code == .invalidRoute)
        try await socket.close()
    }

    @Test func `H13, H25: canceling the reader and releasing a socket end the connection`() async throws {
        let server = try SocketServer.silent()
        let host = try server.host { $0.limits.concurrentStreams = 1 }
        for number in 1...3 {
            let socket = try await host.webSocket(for: route, options: quiet)
            let task = Task { try await all(socket) }
            await otherTasksRun(turns: 20)
            task.cancel()
            #expect(try await remoteError { _ = try await task.value }.code == .cancelled)
            try await server.ended.wait { $0 == number ? () : nil }
        }
        // The server reads a Close frame of a released socket.
        _ = try await host.webSocket(for: route, options: quiet)
        try await server.frames.wait { $0.last == ClientFrame(first: 0x88, payload: [0x03, 0xE9]) ? () : nil }
    }

    @Test func `H25: a server that does not answer pings is lost`() async throws {
        let server = try SocketServer.silent()
        let options = WebSocket.Options(pingInterval: .milliseconds(20))
        let error = try await remoteError { _ = try await all(try await open(server, options)) }
        #expect(error.code == .idleTimedOut && error.isRetryable)
        try await server.ended.wait { $0 == 1 ? () : nil }
        #expect(server.frames.current.allSatisfy { $0 == ClientFrame(first: 0x89, payload: []) })
    }

    @Test func `H25: a server that answers pings is not lost`() async throws {
        try await withGrowingLimit { limit in
            let server = try SocketServer { peer in
                peer.accept()
                for _ in 0..<4 {
                    guard let ping = peer.next() else { return }
                    peer.send(0x8A, ping.payload)
                }
                peer.send(0x88, [])
                peer.next()
            }
            do {
                return try await all(try await open(server, WebSocket.Options(pingInterval: limit / 4))) == []
            } catch let error as RemoteError where error.code == .idleTimedOut {
                return false
            }
        }
    }

    @Test func `H25, W11: a proxy opens a tunnel for a socket`() async throws {
        let server = try SocketServer.echoing()
        let proxy = try LoopbackProxy()
        let host = try server.host { $0.proxy = .http("127.0.0.1", port: proxy.port) }
        let socket = try await host.webSocket(for: route, options: quiet)
        try await socket.send(.text("through"))
        var iterator = socket.makeAsyncIterator()
        #expect(try await iterator.next() == .text("through"))
        try await socket.close()
        #expect(proxy.requests.count == 1 && proxy.requests.first?.hasPrefix("CONNECT ") == true)
    }

    @Test(.enabled(if: TrustBench.problem == nil, "\(TrustBench.problem ?? "")"))
    func `H25, W8: a socket uses TLS, credentials and fields of its host`() async throws {
        let server = try SocketServer.echoing()
        let certificates = try TestCertificates.made.get()
        let front = try TLSFront(
            of: server.port, TLSFront.Settings(certificate: certificates.certificate(.good), key: certificates.key(.good)))
        let host = try secureHost(Int(front.port)) {
            $0.defaults = ["X-App": "1"]
            $0 = $0.authorized(by: .basic(user: "ada", password: "secret"))
        }
        let socket = try await host.webSocket(for: route, options: quiet)
        let large = WebSocket.Message.data(Data(count: 1 << 20))
        try await socket.send(large)
        var iterator = socket.makeAsyncIterator()
        #expect(try await iterator.next() == large)
        try await socket.close()
        let head = server.heads.current[0]
        #expect(head.contains("\r\nAuthorization: Basic ") && head.contains("\r\nX-App: 1\r\n"))
    }

    @Test func `H25: a store follows a socket, and connects again unless the server closes it normally`() async throws {
        let server = try SocketServer { peer in
            peer.accept()
            guard let greeting = peer.next() else { return }
            let isFirst = peer.frames.current.count == 1
            peer.send(0x81, Array(String(decoding: greeting.payload, as: UTF8.self).utf8) + Array(isFirst ? "1".utf8 : "2".utf8))
            peer.send(0x88, isFirst ? [0x03, 0xE9] : [0x03, 0xE8])
            peer.next()
        }
        let fetcher: LiveSocketFetcher<String, String> = try server.host().socketFetcher(
            options: quiet, greeting: { key, _ in [.text(key)] },
            reading: { message in
                guard case .text(let text) = message else { return nil }
                return .content(text)
            }
        ) { _ in Route(path: "/socket") }
        let store = Store(
            cacher: MemoryCacher<String, String>(), fetcher: fetcher, policy: StorePolicy(retry: RetryPolicy(attempts: .max, base: .zero)))
        let observer = RecordingObserver(store["A"].publish())
        try await observer.next { $0.error != nil && $0.content == "A1" }
        try await observer.next { $0.isCompleted && $0.content == "A2" }
        try await observer.stopAndLeave()
        #expect(server.heads.current.count == 2)
    }
}
#endif
