internal import Foundation
public import StoreCore
internal import Wire

/// Gets texts and manifests over HTTP.
///
/// ```swift
/// let texts = try TextStore(session: "legal", fetcher: HTTPTextFetcher(deadline: .seconds(10)))
/// ```
///
/// On Linux, libcurl 7.66 or newer sends the requests, and no response can end the process. It is loaded at the first request. If it is
/// missing, and on Apple's systems, Foundation's `URLSession` sends them. ``description`` says which.
///
/// Accepts 200, and 304 to a conditional request. Follows five redirects at most, within one scheme and without the fields of the file. Uses no
/// cookies, credentials or caches of the system. Reads no bytes beyond the file's limit, which counts decoded bytes. Six requests run at once
/// on one host, and the others wait in order.
public final class HTTPTextFetcher: RevalidatingFetcher, CustomStringConvertible {
    /// How long a response may take, from the request to its last byte; the time in the queue of its host does not count.
    public let deadline: Duration

    private let time: any TimeSource
    private let requests = FetchQueue(width: 6)
    /// Called at the first request, so that a start from bundle and disk does not load the network.
    private let transport: @Sendable () -> any TextTransport

    /// Makes a fetcher.
    ///
    /// - Parameters:
    ///   - deadline: How long a response may take, from the request to its last byte, redirects included.
    ///   - time: The clock that the deadline is measured with.
    public convenience init(deadline: Duration = .seconds(30), time: some TimeSource = .system) {
        self.init(deadline: deadline, time: time) { SharedTextTransport.transport }
    }

    init(deadline: Duration = .seconds(30), time: some TimeSource = .system, transport: @escaping @Sendable () -> any TextTransport) {
        self.deadline = deadline
        self.time = time
        self.transport = transport
    }

    /// The library that sends the requests, such as `libcurl 7.88.1`, or `URLSession` with the reason if it stands in; loads it.
    public var description: String { transport().name }

    /// Gets a file, or learns that it has not changed.
    ///
    /// - Parameters:
    ///   - file: The file.
    ///   - validator: The validator of the version that the caller has; `nil` without one.
    /// - Throws: ``TextStoreError``; `CancellationError` as soon as the task is canceled, which ends the request on the wire.
    public func fetch(param file: RemoteFile, revalidating validator: Validator?) async throws -> FetchResult<RemoteText> {
        // A request that has begun may arrive, however soon it is canceled.
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
            // Not every system's loader fails when a connection ends early.
            if let length = head.length, length != response.body.count {
                throw TextStoreError(.lengthMismatch, "getting \(name): \(response.body.count) bytes came of \(length); try again later")
            }
            let bytes = transport().leavesCoding ? try await HTTPTextFetcher.decoded(response, of: file) : response.body
            return .modified(
                RemoteText(bytes: bytes, contentType: head.value(of: "Content-Type"), headers: head.headers), .unspecified, head.validator)
        case 304 where isConditional:
            return .notModified()
        default:
            let advice = (300..<400).contains(head.status) ? "give the file's own address" : "check the server"
            var error = TextStoreError(
                .unexpectedStatus, "getting \(name): the server responded with \(head.status); \(advice)",
                retryAfter: head.retryAfter(at: time.date))
            error.status = head.status
            throw error
        }
    }

    /// Decodes a body within the file's limit, away from the caller's actor.
    @concurrent
    private static func decoded(_ response: TextExchange.Response, of file: RemoteFile) async throws(TextStoreError) -> Data {
        guard let coding = response.head.coding else { return response.body }
        #if os(Linux)
        if coding == "gzip" || coding == "x-gzip", let inflater = Inflater() {
            let bytes: Data?
            do throws(WireFailure) { bytes = try inflater.decoded(response.body, limit: file.limit) } catch {
                throw TextStoreError(.unreachable, "getting \(file.url.absoluteString): \(error.message)", underlyingError: error)
            }
            guard let bytes else { throw file.tooLarge }
            return bytes
        }
        #endif
        throw TextStoreError(
            .unreachable, "getting \(file.url.absoluteString): the body is coded as “\(coding)”, which was not asked for; check the server")
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
