internal import Foundation
internal import Synchronization

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// `URLSession` driven by one delegate for the session, which collects the data of each task. Avoids the session's async methods. No limit,
/// no deadline, no retry, and no redirect rules.
final class BareSession: NSObject, URLSessionDataDelegate, Sendable {
    private struct Flight {
        var data = Data()
        let continuation: CheckedContinuation<Data, any Error>
    }

    private let flights = Mutex<[Int: Flight]>([:])
    private let session = Mutex<URLSession?>(nil)

    override init() {
        super.init()
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpMaximumConnectionsPerHost = 64
        let made = URLSession(configuration: configuration, delegate: self, delegateQueue: nil)
        session.withLock { $0 = made }
    }

    /// Invalidates the session, which retains its delegate.
    func invalidate() { session.withLock { $0?.finishTasksAndInvalidate() } }

    func data(from url: URL) async throws -> Data {
        try await withCheckedThrowingContinuation { continuation in
            let task = session.withLock { $0?.dataTask(with: url) }
            guard let task else { return continuation.resume(throwing: URLError(.cancelled)) }
            flights.withLock { $0[task.taskIdentifier] = Flight(continuation: continuation) }
            task.resume()
        }
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        flights.withLock { $0[dataTask.taskIdentifier]?.data.append(data) }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        guard let flight = flights.withLock({ $0.removeValue(forKey: task.taskIdentifier) }) else { return }
        if let error { return flight.continuation.resume(throwing: error) }
        guard (task.response as? HTTPURLResponse)?.statusCode == 200 else {
            return flight.continuation.resume(throwing: URLError(.badServerResponse))
        }
        flight.continuation.resume(returning: flight.data)
    }
}
