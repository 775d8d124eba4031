internal import Foundation
internal import RemoteHTTP
public import StoreCore

/// Fetches texts and manifests over HTTP.
///
/// ```swift
/// let texts = try TextStore(
///     session: "legal", fetcher: HTTPTextFetcher(deadline: .seconds(10)))
/// ```
///
/// On Linux, libcurl 7.66 or newer sends the requests, and no response can end the process. It is loaded at the first request. Without it,
/// and on Apple's systems, Foundation's `URLSession` sends the requests. ``description`` names the library in use.
///
/// Accepts status 200, and 304 to a conditional request. Follows at most five redirects, within one scheme and without the file's header
/// fields. Uses no cookies, credentials, or caches of the system. Reads no bytes beyond the file's limit, which counts decoded bytes. Sends
/// at most six concurrent requests to one host; further requests wait in order.
public final class HTTPTextFetcher: RevalidatingFetcher, CustomStringConvertible {
    /// The time that a response may take, from the request to its last byte; waiting for a permit of the host does not count.
    public let deadline: Duration

    private let time: any TimeSource
    private let requests = FetchQueue(width: 6)
    /// Called at the first request, so that a start from bundle and disk does not load the network library.
    private let transport: @Sendable () -> any TextTransport

    /// Makes a fetcher.
    ///
    /// - Parameters:
    ///   - deadline: The time that a response may take, from the request to its last byte, redirects included.
    ///   - time: The clock that measures the deadline.
    public convenience init(deadline: Duration = .seconds(30), time: some TimeSource = .system) {
        self.init(deadline: deadline, time: time) { SharedTextTransport.transport }
    }

    init(deadline: Duration = .seconds(30), time: some TimeSource = .system, transport: @escaping @Sendable () -> any TextTransport) {
        self.deadline = deadline
        self.time = time
        self.transport = transport
    }

    /// The library that sends the requests, such as `libcurl 7.88.1`, or `URLSession` with the reason for the fallback; loads the library.
    public var description: String { transport().name }

    /// Fetches a file, or confirms that it has not changed.
    ///
    /// - Parameters:
    ///   - file: The file.
    ///   - validator: The validator of the caller's version; `nil` if the caller has none.
    /// - Throws: ``TextStoreError``; `CancellationError` as soon as the task is canceled, which ends the request on the wire.
    public func fetch(param file: RemoteFile, revalidating validator: Validator?) async throws -> FetchResult<RemoteText> {
        // A request may reach the server even if it is canceled immediately afterwards.
        try Task.checkCancellation()
        var request = try TextRequest(file, validator)
        let host = "\(file.url.host() ?? "") \(file.url.port ?? 0)"
        try await requests.enter(host)
        defer { requests.leave(host) }
        let limit = time.now.advanced(by: deadline)
        var response = try await send(request, for: file, until: limit)
        for _ in 0..<5 {
            guard let next = request.redirected(by: response.head) else { break }
            request = next
            response = try await send(request, for: file, until: limit)
        }
        return try await result(of: response, for: file, isConditional: request.isConditional)
    }

    private func send(_ request: TextRequest, for file: RemoteFile, until limit: MonotonicInstant) async throws -> TextExchange.Response {
        let transport = transport()
        let exchange = TextExchange(file, leavesCoding: transport.leavesCoding)
        do { try transport.start(request, exchange) } catch { exchange.failed(error) }
        let timer = Task { [time, deadline] in
            // Canceled as soon as the response is complete.
            guard (try? await time.sleep(until: limit)) != nil else { return }
            exchange.expire(after: deadline)
        }
        defer { timer.cancel() }
        return try await exchange.response()
    }

    private func result(
        of response: TextExchange.Response, for file: RemoteFile, isConditional: Bool
    ) async throws(TextStoreError) -> FetchResult<RemoteText> {
        let name = file.url.absoluteString, head = response.head
        switch head.status {
        case 200:
            // Some loaders of the system report a truncated body as complete.
            if let length = head.length, length != response.body.count {
                throw TextStoreError(
                    .lengthMismatch, "cannot get \(name): only \(response.body.count) of \(length) bytes arrived; try again later")
            }
            let bytes = transport().leavesCoding ? try await HTTPTextFetcher.decoded(response, of: file) : response.body
            return .modified(
                RemoteText(bytes: bytes, contentType: head.value(of: "Content-Type"), headers: head.headers), .unspecified, head.validator)
        case 304 where isConditional:
            return .notModified()
        default:
            let advice = (300..<400).contains(head.status) ? "use the address that the redirect names" : "check the server"
            var error = TextStoreError(
                .unexpectedStatus, "cannot get \(name): the server responded with status \(head.status); \(advice)",
                retryAfter: RetryAfter.delay(now: time.date) { head.values(of: $0) })
            error.status = head.status
            throw error
        }
    }

    /// Decodes a body within the file's limit, off the caller's actor.
    @concurrent
    private static func decoded(_ response: TextExchange.Response, of file: RemoteFile) async throws(TextStoreError) -> Data {
        guard let coding = response.head.coding else { return response.body }
        #if os(Linux)
        if coding == "gzip" || coding == "x-gzip", let inflater = Inflater() {
            let bytes: Data?
            do throws(WireFailure) { bytes = try inflater.decoded(response.body, limit: file.limit) } catch {
                throw TextStoreError(.unreachable, "cannot get \(file.url.absoluteString): \(error.message)", underlyingError: error)
            }
            guard let bytes else { throw file.tooLarge }
            return bytes
        }
        #endif
        throw TextStoreError(
            .unreachable, "cannot get \(file.url.absoluteString): its content coding “\(coding)” was not requested; check the server")
    }
}

#if os(Linux)
extension Inflater {
    /// Decodes a whole body; `nil` if it has more bytes than the limit.
    fileprivate func decoded(_ body: Data, limit: Int) throws(WireFailure) -> Data? {
        var bytes = Data()
        push(body)
        while let piece = try next() {
            guard bytes.count + piece.count <= limit else { return nil }
            bytes.append(piece)
        }
        try finish()
        return bytes
    }
}
#endif
