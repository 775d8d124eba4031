public import Foundation
internal import StoreCore

/// Tells of every exchange, without its secrets.
///
/// ```swift
/// let api = RemoteHost("api.example.com").logging(
///     to: ExchangeLog(redactedFields: ["X-Session"]) { entry in
///         logger.debug("\(entry)")
///     })
/// ```
///
/// The closure never gets the values of these fields: `Authorization`, `Authentication-Info`, `WWW-Authenticate`, `Proxy-Authorization`,
/// `Proxy-Authenticate`, `Cookie`, `Set-Cookie`, `X-API-Key`, `API-Key`, `X-Auth-Token`, `X-CSRF-Token`, `X-Amz-Security-Token`. The same
/// holds for parts of a query that commonly carry a secret, such as `token`, `api_key`, `password` and `signature`. It gets bodies only if
/// `bodyBytes` says so.
public struct ExchangeLog: Sendable {
    /// What happened, in a form that may be written down.
    public struct Entry: Sendable, CustomStringConvertible {
        /// What kind of thing happened.
        public enum Event: Hashable, Sendable {
            /// A request goes out.
            case sent
            /// The head of an answer came, that long after.
            case received(status: Int, after: Duration)
            /// An answer is there as far as it is read here.
            case completed(status: Int, bytes: Int)
            /// An attempt failed, and the next one comes that much later.
            case waiting(Duration)
        }

        /// What happened.
        public let event: Event
        /// The method and the address, secrets taken out.
        public let operation: String
        /// The fields, secrets taken out.
        public let fields: [HTTPFields.Field]
        /// The beginning of the body, where bodies are wanted.
        public let body: Data
        /// How the exchange went; `nil` before a response is complete, and of a stream.
        public let metrics: ExchangeMetrics?
        /// The tags of the call whose keys ask for logs.
        public let tags: RouteTags

        /// One line for the event with the tags, and one for each field.
        public var description: String {
            let first =
                switch event {
                case .sent: "→ \(operation)"
                case .received(let status, let duration): "← \(status) \(operation) after \(duration.inWords)"
                case .completed(let status, let bytes): "✓ \(status) \(operation), \(bytes) bytes"
                case .waiting(let duration): "… \(operation), again in \(duration.inWords)"
                }
            let lines = [tags.isEmpty ? first : "\(first) [\(tags)]"] + fields.map { "  \($0.name): \($0.value)" }
            return (body.isEmpty ? lines : lines + ["  " + String(decoding: body, as: UTF8.self)]).joined(separator: "\n")
        }
    }

    private let redaction: Redaction
    private let bodyBytes: Int
    private let write: @Sendable (Entry) -> Void

    /// Makes a log.
    ///
    /// - Parameters:
    ///   - redactedFields: More fields whose values are not told.
    ///   - redactedQueryNames: More names of a query whose values are not told.
    ///   - bodyBytes: How much of a body is told, in bytes; none unless you ask, since bodies hold passwords and persons.
    ///   - write: Takes an entry; called from any thread, it must not block.
    public init(
        redactedFields: Set<String> = [], redactedQueryNames: Set<String> = [], bodyBytes: Int = 0,
        write: @escaping @Sendable (Entry) -> Void
    ) {
        redaction = Redaction(
            fields: Set(redactedFields.map { $0.lowercased() }),
            queryNames: Redaction.secretQueryNames.union(redactedQueryNames.map { $0.lowercased() }))
        self.bodyBytes = bodyBytes
        self.write = write
    }

    func sent(_ request: HTTPRequest) {
        var body = Data()
        if case .data(let data) = request.body { body = data }
        tell(.sent, request, request.fields, body)
    }

    func received(_ response: HTTPResponse, to request: HTTPRequest, after duration: Duration) {
        tell(.received(status: response.status, after: duration), request, response.fields, Data())
    }

    func completed(_ response: HTTPResponse, of request: HTTPRequest) {
        let body = response.body.data ?? Data()
        tell(.completed(status: response.status, bytes: body.count), request, HTTPFields(), body, response.metrics)
    }

    func note(_ event: Entry.Event, _ operation: String, attempt: Int, of request: HTTPRequest) {
        tell(event, request, operation: "\(operation) (attempt \(attempt))", HTTPFields(), Data())
    }

    private func tell(
        _ event: Entry.Event, _ request: HTTPRequest, operation: String? = nil, _ fields: HTTPFields, _ body: Data,
        _ metrics: ExchangeMetrics? = nil
    ) {
        let operation = operation ?? "\(request.method.rawValue) \(redaction.text(of: request.url.absoluteString))"
        let fields = fields.fields.map { HTTPFields.Field(name: $0.name, value: redaction.value(of: $0)) }
        write(
            Entry(
                event: event, operation: operation, fields: fields, body: body.prefix(bodyBytes), metrics: metrics,
                tags: request.tags.logged))
    }
}
