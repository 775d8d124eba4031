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
///
/// <doc:GettingStarted> shows how to use another HTTP client.
public final class HTTPTextFetcher: RevalidatingFetcher, CustomStringConvertible {
    /// The time that a response may take, from the request to its last byte; waiting for a permit of the host does not count.
    public let deadline: Duration

    private let time: any TimeSource
    /// The permits of the requests to each host.
    private let hosts = Lock<[String: Permits]>([:])
    /// Called at the first request, so that a start from bundle and disk does not load the network library.
    private let transport: @Sendable () -> any Transport

    /// Makes a fetcher.
    ///
    /// - Parameters:
    ///   - deadline: The time that a response may take, from the request to its last byte, redirects included.
    ///   - time: The clock that measures the deadline.
    public convenience init(deadline: Duration = .seconds(30), time: some TimeSource = .system) {
        self.init(deadline: deadline, time: time) { SystemTransport.shared }
    }

    init(deadline: Duration = .seconds(30), time: some TimeSource = .system, transport: @escaping @Sendable () -> any Transport) {
        self.deadline = deadline
        self.time = time
        self.transport = transport
    }

    /// The library that sends the requests, such as `libcurl 7.88.1`, or `URLSession` with the reason for the fallback; loads the library.
    public var description: String { "\(transport())" }

    /// Fetches a file, or confirms that it has not changed.
    ///
    /// - Parameters:
    ///   - file: The file.
    ///   - validator: The validator of the caller's version; `nil` if the caller has none.
    /// - Throws: ``TextStoreError``; `CancellationError` as soon as the task is canceled, which ends the request on the wire.
    public func fetch(param file: RemoteFile, revalidating validator: Validator?) async throws -> FetchResult<RemoteText> {
        let request = try TextRequest(file, validator)
        let permit = try await permits(of: "\(file.url.host() ?? "") \(file.url.port ?? 0)").take()
        defer { permit.release() }
        do {
            return try await result(of: try await response(to: request, file), for: file, isConditional: request.isConditional)
        } catch let failure as TransportFailure {
            throw error(for: failure, of: file)
        }
    }

    func permits(of host: String) -> Permits {
        hosts.withLock { hosts in
            if let known = hosts[host] { return known }
            // A host that is forgotten while requests to it run only gets more permits.
            if hosts.count == 1000 { hosts = [:] }
            let made = Permits(6)
            hosts[host] = made
            return made
        }
    }

    /// Sends a request and follows its redirects.
    private func response(to first: TextRequest, _ file: RemoteFile) async throws -> HTTPResponse {
        let limits = ExchangeLimits(
            head: nil, idle: nil, deadline: time.now.advanced(by: deadline), bodyBytes: file.limit, memoryBytes: file.limit, time: time)
        var request = first
        var redirects = 0
        while true {
            let response = try await transport().perform(request.message, limits: limits)
            if response.status == 200 { return response }
            await response.skipShortBody()
            guard redirects < 5, let next = request.redirected(by: response) else { return response }
            redirects += 1
            request = next
        }
    }

    private func result(
        of response: HTTPResponse, for file: RemoteFile, isConditional: Bool
    ) async throws -> FetchResult<RemoteText> {
        let (name, fields) = (file.url.absoluteString, response.fields)
        switch response.status {
        case 200:
            let length = fields["Content-Encoding"] == nil ? fields["Content-Length"].flatMap { Int($0) } : nil
            if let length, length > file.limit { throw file.tooLarge }
            let bytes = try await HTTPTextFetcher.bytes(of: response)
            // Some loaders of the system report a truncated body as complete.
            if let length, length != bytes.count {
                throw TextStoreError(
                    .lengthMismatch, "cannot get \(name): only \(bytes.count) of \(length) bytes arrived; try again later")
            }
            let validator = Validator(entityTag: fields["ETag"], lastModified: fields["Last-Modified"])
            return .modified(
                RemoteText(bytes: bytes, contentType: fields["Content-Type"], headers: fields.joinedByLowercaseName), .unspecified,
                validator == Validator() ? nil : validator)
        case 304 where isConditional:
            return .notModified()
        default:
            try Task.checkCancellation()
            let advice = (300..<400).contains(response.status) ? "use the address that the redirect names" : "check the server"
            var error = TextStoreError(
                .unexpectedStatus, "cannot get \(name): the server responded with status \(response.status); \(advice)",
                retryAfter: RetryAfter.delay(in: fields, now: time.date))
            error.status = response.status
            throw error
        }
    }

    /// Receives and decodes a body, off the caller's actor.
    @concurrent
    private static func bytes(of response: HTTPResponse) async throws -> Data { try await response.body.collect() }

    private func error(for failure: TransportFailure, of file: RemoteFile) -> any Error {
        let operation = "cannot get \(file.url.absoluteString)"
        switch failure.code {
        case .cancelled: return CancellationError()
        case .bodyTooLarge: return file.tooLarge
        case .overallTimedOut:
            return TextStoreError(.timedOut, "\(operation): the response was not complete within \(deadline); try again later")
        default:
            // The failure itself identifies a request that can never be sent.
            let cause = failure.code == .unsupported ? nil : failure.underlyingError
            return TextStoreError(.unreachable, "\(operation): \(failure.message)", underlyingError: cause ?? failure)
        }
    }
}

extension RemoteFile {
    /// The error for a body longer than the limit.
    fileprivate var tooLarge: TextStoreError {
        TextStoreError(.tooLarge, "cannot get \(url.absoluteString): the body exceeds the limit of \(limit) bytes; raise the file's limit")
    }
}

extension HTTPFields {
    /// The values by their lowercase names; values of the same name are joined (RFC 9110 §5.3).
    fileprivate var joinedByLowercaseName: [String: String] {
        Dictionary(fields.map { ($0.name.lowercased(), $0.value) }) { $0 + ", " + $1 }
    }
}
