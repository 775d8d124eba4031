public import Foundation

extension LoopbackOrigin.Response {
    /// A status with an empty body.
    public static func status(_ status: Int) -> Self {
        Self(status: status)
    }

    /// A plain text in UTF-8.
    public static func text(_ text: String, status: Int = 200) -> Self {
        data(Data(text.utf8), type: "text/plain; charset=utf-8", status: status)
    }

    /// A page of HTML, as captive portals answer with status 200.
    public static func html(_ text: String, status: Int = 200) -> Self {
        data(Data(text.utf8), type: "text/html; charset=utf-8", status: status)
    }

    /// Bytes of a media type.
    public static func data(_ data: Data, type: String = "application/octet-stream", status: Int = 200) -> Self {
        Self(status: status, headers: ["Content-Type": type], body: data)
    }

    /// A value as JSON, keys sorted and dates in ISO 8601, so that equal values are equal bytes.
    ///
    /// A value that cannot be encoded is answered with status 500 and the reason.
    public static func json(_ value: some Encodable, status: Int = 200) -> Self {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .iso8601
        do {
            return data(try encoder.encode(value), type: "application/json", status: status)
        } catch {
            return problem(500, "The value could not be encoded", detail: String(describing: error))
        }
    }

    /// A text that is sent as JSON whether it is or not.
    public static func json(literal: String, status: Int = 200) -> Self {
        data(Data(literal.utf8), type: "application/json", status: status)
    }

    /// A problem document (RFC 9457).
    public static func problem(_ status: Int, _ title: String, detail: String? = nil) -> Self {
        struct Document: Encodable {
            let status: Int
            let title: String
            let detail: String?
        }
        return json(Document(status: status, title: title, detail: detail), status: status)
            .setting("Content-Type", to: "application/problem+json")
    }

    /// What a request gets that no route is for.
    public static func notFound(for request: LoopbackOrigin.Request) -> Self {
        problem(404, "Not Found", detail: "Nothing answers \(request.method) \(request.path)")
    }

    /// A redirect whose `Location` is sent as it is, relative, foreign or nonsense.
    public static func redirect(to location: String, status: Int = 302) -> Self {
        Self(status: status, headers: ["Location": location])
    }

    /// A gzip stream that inflates to `count` zero bytes, made without holding them and about a thousandth of them on the wire.
    public static func gzipBomb(inflatingTo count: Int, type: String = "application/octet-stream") -> Self {
        var response = Self(headers: ["Content-Type": type, "Content-Encoding": "gzip"])
        response.body = .gzippedZeros(count: count)
        return response
    }

    /// Bytes so many times, made while they are sent.
    public static func repeating(_ data: Data, times: Int, type: String = "application/octet-stream") -> Self {
        var response = Self(headers: ["Content-Type": type])
        response.body = .repeated(data, times: times)
        return response
    }

    /// These bytes instead of a response; the connection closes behind them unless it is told to stay.
    public static func verbatim(_ bytes: Data, then connection: LoopbackOrigin.Persistence = .closes) -> Self {
        var response = Self()
        response.body = .verbatim(bytes)
        if connection == .closes { response.headers.set("Connection", to: "close") }
        return response
    }

    /// This text instead of a response; the connection closes behind it unless it is told to stay.
    public static func verbatim(_ text: String, then connection: LoopbackOrigin.Persistence = .closes) -> Self {
        verbatim(Data(text.utf8), then: connection)
    }

    /// The same response in gzip coding (uncompressed blocks: a valid stream that does not get smaller).
    public func gzipped() -> Self {
        guard let data else { return self }
        var copy = setting("Content-Encoding", to: "gzip")
        copy.body = .data(Data(Gzip.stored([UInt8](data))))
        return copy
    }
}

extension LoopbackOrigin {
    /// Whether a connection outlives an answer.
    public enum Persistence: Sendable, Hashable {
        /// It closes once the answer is sent.
        case closes
        /// It stays for the next request.
        case stays
    }
}
