import Foundation
import LoopbackOrigin
import Testing
import Trials

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite(.timeLimit(.minutes(hangMinutes)))
struct URLSessionTests {
    private struct User: Codable, Equatable {
        var id: Int
        var name: String
    }

    @Test func `JSON round-trips through a request and a response`() async throws {
        let origin = try LoopbackOrigin()
        origin.on(.post, "/users") { request in
            guard var user = try? request.decoded(User.self) else { return .status(422) }
            user.id = 7
            return .json(user, status: 201).setting("Location", to: "/users/7")
        }
        var request = URLRequest(url: origin.url.appending(path: "users"))
        request.httpMethod = "POST"
        request.httpBody = try JSONEncoder().encode(User(id: 0, name: "Ada"))
        let (data, response) = try await load(request)
        #expect(response.statusCode == 201)
        #expect(response.value(forHTTPHeaderField: "location") == "/users/7")
        #expect(try JSONDecoder().decode(User.self, from: data) == User(id: 7, name: "Ada"))
    }

    @Test func `a session keeps its connection`() async throws {
        let origin = try LoopbackOrigin { .text($0.path) }
        let session = URLSession(configuration: .ephemeral)
        defer { session.invalidateAndCancel() }
        for number in 1...3 {
            #expect(try await load(URLRequest(url: origin.url.appending(path: "\(number)")), in: session).0 == Data("/\(number)".utf8))
        }
        #expect(origin.acceptedConnections == 1)
    }

    @Test func `a truncated body and an outage are errors`() async throws {
        let origin = try LoopbackOrigin { _ in .text("0123456789").misbehaving(.truncate(afterBodyBytes: 4)) }
        await #expect(throws: URLError.self) { try await load(URLRequest(url: origin.url)) }
        origin.goDown()
        await #expect(throws: URLError.self) { try await load(URLRequest(url: origin.url)) }
    }

    @Test func `a gzip-coded body is inflated`() async throws {
        let origin = try LoopbackOrigin { $0.path == "/bomb" ? .gzipBomb(inflatingTo: 1_000_000) : .text("hello").gzipped() }
        #expect(try await load(URLRequest(url: origin.url)).0 == Data("hello".utf8))
        #expect(try await load(URLRequest(url: origin.url.appending(path: "bomb"))).0 == Data(count: 1_000_000))
    }

    /// Uses a completion handler, because the async methods of FoundationNetworking can deadlock when canceled.
    private func load(_ request: URLRequest, in session: URLSession? = nil) async throws -> (Data, HTTPURLResponse) {
        let own = session == nil ? URLSession(configuration: .ephemeral) : nil
        defer { own?.finishTasksAndInvalidate() }
        let task = try #require(session ?? own)
        var request = request
        request.timeoutInterval = TimeInterval(hangLimit.components.seconds)
        return try await withCheckedThrowingContinuation { continuation in
            task.dataTask(with: request) { data, response, error in
                if let data, let response = response as? HTTPURLResponse, error == nil {
                    continuation.resume(returning: (data, response))
                } else {
                    continuation.resume(throwing: error ?? URLError(.badServerResponse))
                }
            }.resume()
        }
    }
}
