internal import Foundation
internal import Synchronization

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// `URLSession` as one drives it by hand where its async conveniences are not to be trusted: one delegate for the session, which keeps
/// what has come for each task. No limit, no deadline, no retry, no redirect by rules.
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

    /// Lets go of the session, which holds its delegate.
    func invalidate() {
        session.withLock { $0?.finishTasksAndInvalidate() }
    }

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
