#if os(Linux)
import Foundation
import Glibc
import LoopbackOrigin
import RemoteRouting
import StoreCore
import Testing
import Trials

/// Servers that truncate, change, delay or never finish the handshake.
@Suite(.enabled(if: TrustBench.problem == nil, "\(TrustBench.problem ?? "")"), .timeLimit(.minutes(hangMinutes)))
struct HostileTrustTests {
    private static let post = Route(path: "/x", method: .post, body: .data(Data("abc".utf8)))

    /// A proxy that changes the bytes of the server behind it; a change that returns false ends the connection.
    private func meddler(
        _ bench: TrustBench, _ change: @escaping @Sendable (_ bytes: inout [UInt8], _ offset: Int) -> Bool
    ) throws -> RawServer {
        let port = bench.front.port
        return try RawServer { $0.relay(to: port, change) }
    }

    private func host(_ bench: TrustBench, at port: UInt16, over transport: any Transport) throws -> RemoteHost {
        try bench.host(over: transport).with { $0.configuration.port = Int(port) }
    }

    @Test(arguments: [TLSFront.Settings.Version.tls12, .tls13])
    func `W1: a truncated handshake is a typed error`(_ version: TLSFront.Settings.Version) async throws {
        let bench = try TrustBench { $0.versions = version.rawValue...version.rawValue }
        let limit = Lock(0)
        let server = try meddler(bench) { bytes, offset in
            let left = limit.withLock(\.self) - offset
            bytes = Array(bytes.prefix(max(0, left)))
            return left > bytes.count
        }
        let transport = try RealTransport.curl.make()
        let host = try host(bench, at: server.port, over: transport)
        var successes = 0
        var unsent: [String] = []
        for count in part(of: Array(stride(from: 0, through: 2500, by: 29)), each: 11) {
            limit.withLock { $0 = count }
            do {
                _ = try await host.data(for: Route(path: "/\(count)", method: .post, body: .data(Data("abc".utf8))))
                successes += 1
            } catch let error as RemoteError {
                // The first bytes of a response with the length of an alert look like the refusal of a certificate (TLS 1.3).
                let looksLikeAlert = version == .tls13 && error.code == .clientCertificateRefused
                #expect(error.code == .connectionLost || error.code == .tlsFailed || looksLikeAlert, "\(count): \(error)")
                if !error.mayHaveArrived { unsent.append("/\(count)") }
            }
        }
        #expect(successes > 0 && !unsent.isEmpty)
        // No exchange is leaked.
        try await until("the exchanges have ended") { transport.exchangeCount == 0 }
        #expect(try await bench.host(over: transport).data(for: Self.post) == Data("POST /x 3".utf8))
        for path in unsent { #expect(bench.origin.requests(to: path).isEmpty, "\(path)") }
    }

    @Test(arguments: [TLSFront.Settings.Version.tls12, .tls13])
    func `W1: a modified handshake is a typed error`(_ version: TLSFront.Settings.Version) async throws {
        let bench = try TrustBench { $0.versions = version.rawValue...version.rawValue }
        let change = Lock((place: 0, value: UInt8(0)))
        let server = try meddler(bench) { bytes, offset in
            let (place, value) = change.withLock(\.self)
            if bytes.indices.contains(place - offset) { bytes[place - offset] ^= value }
            return true
        }
        let host = try host(bench, at: server.port, over: try RealTransport.curl.make()).with {
            // An increased length makes both sides wait for more bytes.
            $0.timeouts = RouteOptions.Timeouts(head: .milliseconds(500), idle: .milliseconds(500), overall: .seconds(600))
        }
        var chance = SplitMix(seed: version.rawValue)
        var unsent: [String] = []
        for round in 1...rounds(60, quick: 15) {
            let (place, value) = (chance.below(1500), UInt8(1 + chance.below(255)))
            change.withLock { $0 = (place, value) }
            do {
                let path: RoutePath = "/\(round)"
                let body = try await host.data(for: Route(path: path, method: .post, body: .data(Data("abc".utf8))))
                #expect(body == Data("POST /\(round) 3".utf8))
            } catch let error as RemoteError {
                #expect(error.stage == .transport || error.stage == .timeout, "\(place): \(error)")
                if !error.mayHaveArrived { unsent.append("/\(round)") }
            }
        }
        #expect(try await bench.host().data(for: Self.post) == Data("POST /x 3".utf8))
        for path in unsent { #expect(bench.origin.requests(to: path).isEmpty, "\(path)") }
    }

    @Test func `W8: a server without TLS is distinguished from other failures`() async throws {
        let bench = try TrustBench()
        for text in ["HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", String(repeating: "x", count: 100_000), "SSH-2.0-OpenSSH\r\n"] {
            let server = try RawServer { connection in
                var byte: UInt8 = 0
                _ = recv(connection.socket, &byte, 1, 0)
                connection.send(text)
                connection.endSending()
                connection.drain()
            }
            let error = try await remoteError { try await host(bench, at: server.port, over: RealTransport.curl.make()).send(Self.post) }
            #expect(error.code == .tlsFailed, "\(error) \(String(describing: error.underlyingError))")
            #expect(error.message == "the server does not use TLS on this port; check the port and the scheme" && !error.mayHaveArrived)
        }
    }

    @Test func `W8: an endless chain of certificates is refused`() async throws {
        let certificates = try TestCertificates.made.get()
        let file = temporaryURL("pem")
        let own = try Data(contentsOf: certificates.certificate(.good))
        let authority = try Data(contentsOf: certificates.authority)
        try (own + (0..<600).flatMap { _ in authority }).write(to: file)
        let bench = try TrustBench { $0.certificate = file }
        let error = try await remoteError { try await bench.host().send(Self.post) }
        #expect(error.code == .tlsFailed, "\(error) \(String(describing: error.underlyingError))")
        #expect(bench.origin.requests.isEmpty)
    }

    /// A server that never finishes the handshake; records the end of its connections.
    private func stalling(drips: Bool) throws -> (RawServer, WatchedState<Int>) {
        let ended = WatchedState(0)
        let server = try RawServer { connection in
            if drips {
                // A handshake record of 16 KB, one byte at a time.
                let record: [UInt8] = [0x16, 0x03, 0x03, 0x40, 0x00, 0x02] + [UInt8](repeating: 0, count: 16_000)
                for byte in record {
                    guard Glibc.send(connection.socket, [byte], 1, Int32(MSG_NOSIGNAL)) == 1 else { break }
                    // Waits until the client has left, at most until the next byte. Without events, `poll` reports only that.
                    var client = pollfd(fd: connection.socket, events: 0, revents: 0)
                    guard poll(&client, 1, 5) == 0 else { break }
                }
            } else {
                connection.drain()
            }
            ended.update { $0 += 1 }
        }
        return (server, ended)
    }

    @Test(arguments: [true, false])
    func `H6: an endless handshake ends at the deadline`(_ drips: Bool) async throws {
        let bench = try TrustBench()
        let (server, ended) = try stalling(drips: drips)
        let host = try host(bench, at: server.port, over: RealTransport.curl.make())
        let impatient = host.with { $0.timeouts.head = .milliseconds(200) }
        let late = try await remoteError { try await impatient.send(Self.post) }
        #expect(late.code == .headTimedOut && !late.mayHaveArrived)
        let bounded = host.with { $0.timeouts.overall = .milliseconds(200) }
        let over = try await remoteError { try await bounded.send(Self.post) }
        #expect(over.code == .overallTimedOut && !over.mayHaveArrived)
        // A call that is late before it connects has no connection.
        try await until("the connections have ended") { ended.current > 0 && ended.current == server.acceptedConnections }
    }

    @Test func `W4, W13: endless handshakes delay no other exchange, and canceling ends them on the wire`() async throws {
        let bench = try TrustBench()
        let (server, ended) = try stalling(drips: false)
        let transport = try RealTransport.curl.make()
        let stalled = try host(bench, at: server.port, over: transport)
        let calls = (0..<20).map { _ in Task { try await stalled.send(Self.post) } }
        try await until("the connections are accepted") { server.acceptedConnections == 20 }
        for _ in 0..<20 { #expect(try await bench.host(over: transport).data(for: Self.post) == Data("POST /x 3".utf8)) }
        #expect(ended.current == 0)
        for call in calls { call.cancel() }
        for call in calls { await #expect(throws: RemoteError.self) { try await call.value } }
        try await until("the connections have ended") { ended.current == 20 }
    }

    @Test func `W8: FoundationNetworking reports an untrusted certificate, too`() async throws {
        let bench = try TrustBench(.selfSigned)
        let error = try await remoteError { try await bench.host(TLSOptions(), over: URLSessionTransport()).send(Self.post) }
        #expect(error.code == .certificateUntrusted, "\(error) \(String(describing: error.underlyingError))")
        #expect(bench.origin.requests.isEmpty)
    }
}

#endif
