import Foundation
import LoopbackOrigin
import StoreCore
import Testing
import Trials

@testable import RemoteRouting

/// Exact bytes of responses, over a real socket.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct WireFormTests {
    private func answer(_ text: String, _ transport: RealTransport, method: HTTPMethod = .get) async throws -> RemoteResponse<Data> {
        let origin = try LoopbackOrigin { _ in .verbatim(text.replacing("\n", with: "\r\n")) }
        defer { withExtendedLifetime(origin) {} }
        let host = try transport.host(origin.port)
        return try await host.with {
            $0.retry = .never; $0.timeouts = .untilHang
        }
        .dataResponse(for: Route(path: "/x", method: method))
    }

    @Test(
        arguments: RealTransport.available,
        ["100 Continue", "102 Processing", "103 Early Hints", "103 Early Hints\nLink: </x>; rel=preload"])
    func `H10: an interim response is not the final response`(_ transport: RealTransport, _ interim: String) async throws {
        let response = try await answer("HTTP/1.1 \(interim)\n\nHTTP/1.1 200 OK\nContent-Length: 2\n\n[]", transport)
        #expect(response.status == 200 && response.value == Data("[]".utf8) && response.fields["Link"] == nil)
    }

    /// FoundationNetworking 6.3 ends the process with "Transfer completed, but there's no response"; nothing above it can prevent that.
    @Test(.enabled(if: RealTransport.available.contains(.curl), "fields behind a chunked body end the process in FoundationNetworking"))
    func `H10, W1: trailers do not become fields`() async throws {
        let response = try await answer(
            "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\nTrailer: ETag\n\n2\n[]\n0\nETag: \"evil\"\nSet-Cookie: a=b\n\n", .curl)
        #expect(response.value == Data("[]".utf8) && response.fields["ETag"] == nil && response.fields["Set-Cookie"] == nil)
    }

    @Test(arguments: RealTransport.available, [204, 205])
    func `H10: a body after a status that allows none is not read`(_ transport: RealTransport, _ status: Int) async throws {
        let response = try await answer("HTTP/1.1 \(status) X\nContent-Length: 0\nConnection: close\n\nhello", transport)
        #expect(response.status == status && response.value.isEmpty)
    }

    @Test(arguments: RealTransport.available)
    func `H10: the body of a response to HEAD is ignored`(_ transport: RealTransport) async throws {
        let response = try await answer("HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", transport, method: .head)
        #expect(response.value.isEmpty && response.fields["Content-Length"] == "5")
    }

    @Test(
        arguments: RealTransport.available,
        [
            "HTTP/1.1 200 OK\nContent-Length: 5\nContent-Length: 6\n\nhello!", "HTTP/1.1 200 OK\nContent-Length: 5, 6\n\nhello!",
            "HTTP/1.1 200 OK\nContent-Length: -5\n\nhello", "HTTP/1.1 200 OK\nContent-Length: 50\n\nhello",
            "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\nzz\nhello\n", "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n5\nhel",
            "HTTP/1.1 200 OK\nTransfer-Encoding: nonsense\nContent-Length: 5\n\nhello", "HTP/1.1 200 OK\n\nhello", "\n\n", "hello",
        ])
    func `H10: a response with an ambiguous end is an error`(_ transport: RealTransport, _ text: String) async throws {
        #expect(try await remoteError { _ = try await answer(text, transport) }.stage == .transport)
    }

    @Test func `H13: two tasks may wait for one body, and both resume`() async throws {
        let exchange = Exchange(limits: ExchangeLimits(head: nil, idle: nil))
        exchange.receive(HTTPResponse(status: 200, url: URL(filePath: "/")))
        let body = try await exchange.response().body
        let tasks = (0..<2).map { _ in
            Task {
                var iterator = body.makeAsyncIterator()
                return try await iterator.next()
            }
        }
        for _ in 0..<200 { await Task.yield() }
        exchange.receive(Data("a".utf8))
        exchange.finish()
        var seen: [Data?] = []
        for task in tasks { seen.append(try await task.value) }
        #expect(seen.compactMap(\.self) == [Data("a".utf8)])
    }
}
