import Foundation
import LoopbackOrigin
import RemoteHTTP
import StoreCore
import Testing
import Trials

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The receivers of a session's tasks.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct SessionReceiverTests {
    /// A receiver that records its calls.
    private final class Calls: WireReceiver {
        let names = WatchedState<[String]>([])

        private func note(_ name: String) { names.update { $0.append(name) } }

        func sent(_ total: Int64) {}
        func failed(_ failure: WireFailure) { note("failed \(failure.code)") }
        func received(_ head: WireHead?, _ body: Data, isComplete: Bool) -> WireFlow {
            if isComplete { note("completed") } else if !body.isEmpty { note("received") }
            return .goesOn
        }
    }

    /// Returns the calls of a receiver until the session has ended its only task.
    private func calls(for url: URL) async throws -> [String] {
        let delegate = WireSessionDelegate()
        let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
        let task = session.dataTask(with: url)
        let calls = Calls()
        delegate.add(calls, for: task)
        task.resume()
        try await until("the task has ended") { task.state == .completed }
        // The queue of the delegate is serial, so all calls of the task precede this one.
        await withCheckedContinuation { continuation in session.delegateQueue.addOperation { continuation.resume() } }
        session.invalidateAndCancel()
        return calls.names.current
    }

    @Test func `a response that is not HTTP ends its receiver once`() async throws {
        let url = try #require(URL(string: "data:text/plain,hello"))
        #expect(try await calls(for: url) == ["failed protocolViolation"])
    }

    @Test func `a redirect is not followed and ends its receiver once`() async throws {
        let origin = try LoopbackOrigin { request in
            request.path == "/" ? .text("moved", status: 302).setting("Location", to: "/there") : .text("there")
        }
        #expect(try await calls(for: origin.url).count { $0 != "received" } == 1)
        #expect(origin.requests.map(\.path) == ["/"])
    }

    @Test func `a response that asks for credentials ends its receiver once`() async throws {
        let origin = try LoopbackOrigin { _ in
            .text("no", status: 401).setting("WWW-Authenticate", to: "Basic realm=\"r\"")
        }
        #expect(try await calls(for: origin.url).count { $0 != "received" } == 1)
    }
}
