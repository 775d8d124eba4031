public import Foundation
public import RemoteHTTP
internal import StoreCore

/// A log of every exchange, without secrets.
///
/// ```swift
/// let api = RemoteHost("api.example.com").logging(
///     to: ExchangeLog(redactedFields: ["X-Session"]) { entry in
///         logger.debug("\(entry)")
///     })
/// ```
///
/// The closure never receives the values of these fields: `Authorization`, `Authentication-Info`, `WWW-Authenticate`,
/// `Proxy-Authorization`, `Proxy-Authenticate`, `Cookie`, `Set-Cookie`, `X-API-Key`, `API-Key`, `X-Auth-Token`, `X-CSRF-Token`,
/// `X-Amz-Security-Token`. Query values that commonly hold a secret are removed too, such as `token`, `api_key`, `password` and
/// `signature`. Bodies are logged only up to `bodyBytes`.
///
/// <doc:Intercepting> explains which tags an entry contains.
public struct ExchangeLog: Sendable {
    /// One event of an exchange, safe to write down.
    public struct Entry: Sendable, CustomStringConvertible {
        /// A step of a call, with its status and times.
        public enum Event: Hashable, Sendable {
            /// A request is about to be sent.
            case sent
            /// The head of a response arrived, this long after the request.
            case received(status: Int, after: Duration)
            /// A response is complete, as far as the call reads it.
            case completed(status: Int, bytes: Int)
            /// An attempt failed; the next one starts after this time.
            case waiting(Duration)
        }

        /// The step of the call that the entry describes.
        public let event: Event
        /// The method and the address, without secrets.
        public let operation: String
        /// The header fields of the request or the response, without the secret ones.
        public let fields: [HTTPFields.Field]
        /// The beginning of the body; empty unless the log asks for bodies.
        public let body: Data
        /// The metrics of the exchange; `nil` before a response is complete, and for a stream.
        public let metrics: ExchangeMetrics?
        /// The tags of the call that logs may show.
        public let tags: RouteTags

        /// One line with the event and the tags, then one line per field.
        public var description: String {
            let first =
                switch event {
                case .sent: "→ \(operation)"
                case .received(let status, let duration): "← \(status) \(operation) after \(duration.inWords)"
                case .completed(let status, let bytes): "✓ \(status) \(operation), \(bytes) bytes"
                case .waiting(let duration): "… \(operation), again in \(duration.inWords)"
                }
            let lines = [tags.isEmpty ? first : "\(first) [\(tags)]"] + fields.map { "  \($0.name): \($0.value.escapedForDisplay())" }
            // Escaped and indented, because the server could otherwise act on a terminal, or write a line that looks like another entry.
            let text = body.split(separator: 0x0A).map { "  " + String(decoding: $0, as: UTF8.self).escapedForDisplay() }
            return (lines + text).joined(separator: "\n")
        }
    }

    private let redaction: Redaction
    private let bodyBytes: Int
    private let write: @Sendable (Entry) -> Void

    /// Creates a log.
    ///
    /// - Parameters:
    ///   - redactedFields: Further header fields whose values are secret.
    ///   - redactedQueryNames: Further query names whose values are secret.
    ///   - bodyBytes: The maximum number of body bytes per entry; 0 by default, because bodies may hold passwords and personal data.
    ///   - write: Receives an entry on any thread; it must not block.
    public init(
        redactedFields: Set<String> = [], redactedQueryNames: Set<String> = [], bodyBytes: Int = 0,
        write: @escaping @Sendable (Entry) -> Void
    ) {
        redaction = Redaction(
            fields: Set(redactedFields.map { $0.lowercased() }),
            queryNames: Redaction.secretQueryNames.union(redactedQueryNames.map { $0.lowercased() }))
        self.bodyBytes = max(0, bodyBytes)
        self.write = write
    }

    package func redacted(_ address: String) -> String { redaction.text(of: address) }

    func redacts(_ field: HTTPFields.Field) -> Bool { redaction.fields.contains(field.name.lowercased()) }

    func sent(_ request: HTTPRequest) {
        let body = if case .data(let data) = request.body { data } else { Data() }
        record(.sent, request, fields: request.fields, body: body)
    }

    func received(_ response: HTTPResponse, to request: HTTPRequest, after duration: Duration) {
        record(.received(status: response.status, after: duration), request, fields: response.fields)
    }

    func completed(_ response: HTTPResponse, of request: HTTPRequest) {
        let body = response.body.data ?? Data()
        record(.completed(status: response.status, bytes: body.count), request, body: body, metrics: response.metrics)
    }

    func record(
        _ event: Entry.Event, _ request: HTTPRequest, operation: String? = nil, fields: HTTPFields = HTTPFields(), body: Data = Data(),
        metrics: ExchangeMetrics? = nil
    ) {
        let operation = operation ?? "\(request.method.rawValue) \(redaction.text(of: request.url.absoluteString))"
        let fields = fields.fields.map { HTTPFields.Field(name: $0.name, value: redaction.value(of: $0)) }
        write(
            Entry(
                event: event, operation: operation, fields: fields, body: body.prefix(bodyBytes), metrics: metrics,
                tags: request.tags.logged))
    }
}
