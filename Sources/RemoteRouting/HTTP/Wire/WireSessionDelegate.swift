package import Foundation
internal import StoreCore

#if canImport(FoundationNetworking)
package import FoundationNetworking
#endif

/// The delegate of a `URLSession`, which forwards each task's events to its receiver and follows no redirects.
///
/// It is a session delegate, because task delegates of FoundationNetworking receive no redirects.
package final class WireSessionDelegate: NSObject, URLSessionDataDelegate, Sendable {
    /// Guards the map from tasks to receivers.
    private let receivers = Lock<[Int: any WireReceiver]>([:])

    /// Adds the receiver of a task that has not been resumed.
    package func add(_ receiver: any WireReceiver, for task: URLSessionTask) {
        receivers.withLock { $0[task.taskIdentifier] = receiver }
    }

    private func receiver(of task: URLSessionTask) -> (any WireReceiver)? {
        receivers.withLock { $0[task.taskIdentifier] }
    }

    /// Removes the receiver of a task; the next call of the receiver is its last.
    private func takeReceiver(of task: URLSessionTask) -> (any WireReceiver)? {
        receivers.withLock { $0.removeValue(forKey: task.taskIdentifier) }
    }

    package func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        completionHandler(nil)
    }

    package func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        guard let response = challenge.failureResponse as? HTTPURLResponse else {
            // The challenge concerns the connection, such as a server certificate or a proxy.
            return completionHandler(.performDefaultHandling, nil)
        }
        // The 401 is the response. FoundationNetworking has already reported its head and body, and hangs without a disposition.
        _ = takeReceiver(of: task)?.received(WireHead(response), Data(), isComplete: true)
        completionHandler(.cancelAuthenticationChallenge, nil)
    }

    package func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        guard let response = response as? HTTPURLResponse else {
            takeReceiver(of: dataTask)?.failed(WireFailure(.protocolViolation, "the response is not HTTP; check the address"))
            return completionHandler(.cancel)
        }
        // FoundationNetworking also reports interim responses (RFC 9110 §15.2).
        let isInterim = (100..<200).contains(response.statusCode) && response.statusCode != 101
        if !isInterim { _ = receiver(of: dataTask)?.received(WireHead(response), Data(), isComplete: false) }
        completionHandler(.allow)
    }

    package func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        _ = receiver(of: dataTask)?.received(nil, data, isComplete: false)
    }

    package func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        guard let receiver = takeReceiver(of: task) else { return }
        if let error {
            receiver.failed(
                WireFailure(.unreachable, "the exchange failed; check the network, then try again", underlyingError: error))
        } else {
            // FoundationNetworking reports a 3xx without `Location` only here; receivers ignore a second head.
            _ = receiver.received((task.response as? HTTPURLResponse).map { WireHead($0) }, Data(), isComplete: true)
        }
    }
}

extension WireHead {
    /// Converts a response of `URLSession`, which loses the order of its fields.
    init(_ response: HTTPURLResponse) {
        let fields = response.allHeaderFields.compactMap { name, value -> Field? in
            guard let name = name as? String, let value = value as? String else { return nil }
            return Field(name: name, value: value.trimmingCharacters(in: .whitespaces))
        }
        self.init(status: response.statusCode, fields: fields)
    }
}
