import Foundation
import LoopbackOrigin
import Testing
import Trials

@testable import RemoteHTTP

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The exchanges of `URLSessionTransport` with responses that a session treats in its own way.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct SessionTransportTests {
    private let transport = URLSessionTransport()

    /// Returns the response to a GET request with its whole body, after the session has ended its only task.
    private func response(from url: URL) async throws -> (status: Int, body: Data) {
        let limits = ExchangeLimits(head: hangLimit, idle: hangLimit)
        let response = try await transport.perform(HTTPRequest(url: url), limits: limits)
        let body = try await response.body.collect()
        try await until("the task has ended") { transport.exchangeCount == 0 }
        return (response.status, body)
    }

    @Test func `a response that is not HTTP is a protocol violation`() async throws {
        let url = try #require(URL(string: "data:text/plain,hello"))
        await #expect { try await response(from: url) } throws: { ($0 as? TransportFailure)?.code == .protocolViolation }
        try await until("the task has ended") { transport.exchangeCount == 0 }
    }

    @Test func `H6: the timeouts and the cache policy of a configuration are ignored`() {
        let own = URLSessionConfiguration.ephemeral
        own.timeoutIntervalForRequest = 1
        own.timeoutIntervalForResource = 1
        own.requestCachePolicy = .returnCacheDataDontLoad
        let used = URLSessionTransport.prepared(own)
        #expect(used.timeoutIntervalForRequest >= 86_400 && used.timeoutIntervalForResource >= 86_400)
        #expect(used.requestCachePolicy == .useProtocolCachePolicy)
    }

    @Test func `H4, H5: a redirect or a demand for credentials is the response, the latter with its body`() async throws {
        let origin = try LoopbackOrigin { _ in .text("no", status: 401).setting("WWW-Authenticate", to: "Basic realm=\"r\"") }
        origin.on(.get, "/moved") { _ in .text("no", status: 302).setting("Location", to: "/there") }
        for (path, status) in [("moved", 302), ("here", 401)] {
            let response = try await response(from: origin.url.appending(path: path))
            #expect(response.status == status && (status == 302 || response.body == Data("no".utf8)))
        }
        #expect(origin.requests.map(\.path) == ["/moved", "/here"])
    }
}
