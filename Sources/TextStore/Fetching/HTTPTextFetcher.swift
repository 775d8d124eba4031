internal import Foundation
public import StoreCore

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// Gets texts and manifests over HTTP with Foundation's `URLSession`.
///
/// ```swift
/// let texts = try TextStore(session: "legal", fetcher: HTTPTextFetcher(deadline: .seconds(10)))
/// ```
///
/// Taken are 200, and 304 to a conditional request; redirects are followed five times at most, within one scheme and without the fields of
/// the file; no cookies, credentials or caches of the system are used. Bytes beyond the file's limit are not read. Six requests run at once
/// on one host, and the others wait in order.
public final class HTTPTextFetcher: RevalidatingFetcher {
    /// How long a response may take, from the request to its last byte; the time in the queue of its host does not count.
    public let deadline: Duration

    private let time: any TimeSource
    private let session: URLSession
    private let requests = FetchQueue(width: 6)
    private let delegate: TextSessionDelegate
    /// Where tasks are cancelled: never on the delegate's queue, which a task under cancellation may be waiting for.
    private let cancelling = DispatchQueue(label: "TextStore.HTTPTextFetcher.cancelling")

    /// Makes a fetcher.
    ///
    /// - Parameters:
    ///   - deadline: How long a response may take, from the request to its last byte.
    ///   - time: The clock that the deadline is measured with.
    public init(deadline: Duration = .seconds(30), time: some TimeSource = .system) {
        self.deadline = deadline
        self.time = time
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpCookieStorage = nil
        configuration.httpShouldSetCookies = false
        configuration.urlCache = nil
        configuration.urlCredentialStorage = nil
        configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
        // Only a ceiling: the deadline is kept by this class, to the fraction of a second.
        configuration.timeoutIntervalForRequest = 86_400
        configuration.httpMaximumConnectionsPerHost = requests.width
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        delegate = TextSessionDelegate()
        session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: queue)
    }

    deinit {
        // A session that is not invalidated would live for ever.
        session.finishTasksAndInvalidate()
    }

    /// Gets a file, or learns that it has not changed.
    ///
    /// - Parameters:
    ///   - file: The file.
    ///   - validator: What names the version that is here; `nil` where there is none.
    /// - Throws: ``TextStoreError``; `CancellationError` when the task is cancelled.
    public func fetch(param file: RemoteFile, revalidating validator: Validator?) async throws -> FetchResult<RemoteText> {
        // What is cancelled later may be under way by then; this is not.
        try Task.checkCancellation()
        let host = "\(file.url.host() ?? "") \(file.url.port ?? 0)"
        try await requests.enter(host)
        defer { requests.leave(host) }
        let exchange = TextExchange(file, isConditional: validator != nil)
        var request = URLRequest(url: file.url)
        request.timeoutInterval = 86_400
        for (name, value) in file.headers { request.setValue(value, forHTTPHeaderField: name) }
        if file.caching == .revalidated { request.setValue("no-cache", forHTTPHeaderField: "Cache-Control") }
        if let tag = validator?.entityTag { request.setValue(tag, forHTTPHeaderField: "If-None-Match") }
        if let date = validator?.lastModified { request.setValue(date, forHTTPHeaderField: "If-Modified-Since") }
        let task = session.dataTask(with: request)
        delegate.add(exchange, for: task)
        exchange.onStop { [cancelling] in cancelling.async { task.cancel() } }
        let limit = time.now.advanced(by: deadline)
        let timer = Task { [time, deadline] in
            // Ends early when the answer has come.
            guard (try? await time.sleep(until: limit)) != nil else { return }
            exchange.end(
                .failure(
                    TextStoreError(.timedOut, "getting \(file.url.absoluteString): no whole answer within \(deadline); try again later")))
        }
        defer { timer.cancel() }
        task.resume()
        return try await exchange.result()
    }
}
