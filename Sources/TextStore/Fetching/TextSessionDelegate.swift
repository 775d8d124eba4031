internal import Foundation
import StoreCore

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// The one delegate of a session: hands what happens to a task on to its exchange.
///
/// A delegate of the session and not of its tasks, because on Linux those are not asked about redirects.
final class TextSessionDelegate: NSObject, URLSessionDataDelegate, Sendable {
    /// Guards which exchange belongs to which task.
    private let exchanges = Lock<[Int: TextExchange]>([:])

    func add(_ exchange: TextExchange, for task: URLSessionTask) {
        exchanges.withLock { $0[task.taskIdentifier] = exchange }
    }

    private func exchange(of task: URLSessionTask) -> TextExchange? {
        exchanges.withLock { $0[task.taskIdentifier] }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        let target = exchange(of: task)?.redirect(to: request.url)
        // Fields of the source, such as an API key, are for its origin alone: a new request without them goes on.
        completionHandler(target.map { URLRequest(url: $0) })
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        guard let response = challenge.failureResponse as? HTTPURLResponse, let exchange = exchange(of: task) else {
            // A question of the connection (a server's certificate, a proxy), not of an answer.
            return completionHandler(.performDefaultHandling, nil)
        }
        // The 401 is the answer. On Linux head and body have come before the question, and leaving that open would hang.
        exchange.receive(ResponseHead(response))
        exchange.finish()
        completionHandler(.cancelAuthenticationChallenge, nil)
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        if let response = response as? HTTPURLResponse { exchange(of: dataTask)?.receive(ResponseHead(response)) }
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        exchange(of: dataTask)?.receive(data)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        guard let exchange = exchanges.withLock({ $0.removeValue(forKey: task.taskIdentifier) }) else { return }
        if let error { exchange.fail(error) } else { exchange.finish() }
    }
}

/// What is looked at of an answer's head.
struct ResponseHead: Sendable {
    var status: Int
    var contentType: String?
    var headers: [String: String]
    var isCoded: Bool
    var length: Int?
    var validator: Validator?
    var retryAfter: Duration?
}

extension ResponseHead {
    init(_ response: HTTPURLResponse) {
        func field(_ name: String) -> String? {
            response.value(forHTTPHeaderField: name)?.trimmingCharacters(in: .whitespaces)
        }
        status = response.statusCode
        contentType = field("Content-Type")
        headers = [:]
        for case (let name as String, let value as String) in response.allHeaderFields { headers[name] = value }
        isCoded = field("Content-Encoding").map { $0.lowercased() != "identity" } ?? false
        length = field("Content-Length").flatMap { Int($0) }
        retryAfter = field("Retry-After").flatMap { Int($0) }.flatMap { $0 >= 0 ? Duration.seconds($0) : nil }
        let validator = Validator(entityTag: field("ETag"), lastModified: field("Last-Modified"))
        self.validator = validator == Validator() ? nil : validator
    }
}
