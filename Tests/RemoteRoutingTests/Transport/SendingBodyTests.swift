import Foundation
import LoopbackOrigin
import StoreCore
import RemoteRoutingTesting
import Testing
import Trials

@testable import RemoteHTTP
@testable import RemoteRouting

/// Bodies that are produced while they are sent.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct SendingBodyTests {
    struct Broken: Error {}

    private func stream(_ pieces: [Data], length: Int64?, breaks: Bool = false) -> HTTPBodyStream {
        HTTPBodyStream(length: length, isReplayable: true) {
            let parts = Parts(pieces)
            return { _ in
                if let piece = parts.next() { return piece }
                if breaks { throw Broken() }
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
        let stream = BodyInputStream({ _ in throw Broken() }, onFailure: { _ in failures.update { $0 += 1 } })
        stream.open()
        #expect(stream.streamStatus == .error && stream.streamError is Broken)
        var bytes: [UInt8] = [0]
        #expect(stream.read(&bytes, maxLength: 1) == -1)
        #expect(failures.current == 1)
    }
    #endif

    @Test(arguments: RealTransport.available)
    func `a short body of known length is sent with its length`(_ transport: RealTransport) async throws {
        let bench = try Bench(transport.kind)
        bench.on("POST", "/x") { asked in .text("\(asked["Content-Length"] ?? "none") \(asked.body.count)") }
        let body = stream([Data(count: 700), Data(count: 300)], length: 1000)
        let data = try await bench.host().data(for: Route(path: "/x", method: .post, body: .stream(body)))
        #expect(String(decoding: data, as: UTF8.self) == "1000 1000")
    }

    /// The largest body that the session's transport reads into memory.
    @Test(arguments: RealTransport.available)
    func `a body of 256 KiB is sent with its length`(_ transport: RealTransport) async throws {
        let bench = try Bench(transport.kind)
        bench.on("POST", "/x") { asked in .text("\(asked["Content-Length"] ?? "none") \(asked.body.count)") }
        let body = stream([Data(count: 262_000), Data(count: 144)], length: 262_144)
        let data = try await bench.host().data(for: Route(path: "/x", method: .post, body: .stream(body)))
        #expect(String(decoding: data, as: UTF8.self) == "262144 262144")
    }

    @Test(arguments: RealTransport.available, [nil, 3_000_000] as [Int64?])
    func `a long body is sent while it is produced`(_ transport: RealTransport, _ length: Int64?) async throws {
        let bench = try Bench(transport.kind)
        let piece = Data((0..<100_000).map { UInt8(truncatingIfNeeded: $0) })
        bench.on("POST", "/x") { asked in .data(asked.body) }
        let body = stream(Array(repeating: piece, count: 30), length: length)
        let data = try await bench.host().data(for: Route(path: "/x", method: .post, body: .stream(body)))
        #expect(data.count == 3_000_000 && data.suffix(100_000) == piece)
    }

    @Test(arguments: RealTransport.available, [nil, 2000] as [Int64?])
    func `a body that ends early fails the request`(_ transport: RealTransport, _ length: Int64?) async throws {
        let bench = try Bench(transport.kind)
        bench.on("POST", "/x") { asked in .text("\(asked.body.count)") }
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
