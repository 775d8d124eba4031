public import Foundation

extension LoopbackOrigin.Response {
    /// Makes a response with an empty body.
    public static func status(_ status: Int) -> Self { Self(status: status) }

    /// Makes a response with plain text in UTF-8.
    public static func text(_ text: String, status: Int = 200) -> Self {
        data(Data(text.utf8), type: "text/plain; charset=utf-8", status: status)
    }

    /// Makes a response with an HTML page, such as captive portals send with status 200.
    public static func html(_ text: String, status: Int = 200) -> Self {
        data(Data(text.utf8), type: "text/html; charset=utf-8", status: status)
    }

    /// Makes a response with bytes of a media type.
    public static func data(_ data: Data, type: String = "application/octet-stream", status: Int = 200) -> Self {
        Self(status: status, headers: ["Content-Type": type], body: data)
    }

    /// Makes a response with a value as JSON, with sorted keys and ISO 8601 dates, so that equal values have equal bytes.
    ///
    /// A value that cannot be encoded leads to status 500 with the reason.
    public static func json(_ value: some Encodable, status: Int = 200) -> Self {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .iso8601
        do {
            return data(try encoder.encode(value), type: "application/json", status: status)
        } catch {
            return problem(500, "The value cannot be encoded", detail: String(describing: error))
        }
    }

    /// Makes a response with a text labeled as JSON, valid or not.
    public static func json(literal: String, status: Int = 200) -> Self {
        data(Data(literal.utf8), type: "application/json", status: status)
    }

    /// Makes a problem document (RFC 9457).
    public static func problem(_ status: Int, _ title: String, detail: String? = nil) -> Self {
        struct Document: Encodable {
            let status: Int
            let title: String
            let detail: String?
        }
        return json(Document(status: status, title: title, detail: detail), status: status)
            .setting("Content-Type", to: "application/problem+json")
    }

    /// Makes the response to a request that matches no route.
    public static func notFound(for request: LoopbackOrigin.Request) -> Self {
        problem(404, "Not Found", detail: "No route matches \(request.method) \(request.path)")
    }

    /// Makes a redirect with an unchecked `Location`: relative, foreign, or malformed.
    public static func redirect(to location: String, status: Int = 302) -> Self { Self(status: status, headers: ["Location": location]) }

    /// Makes a gzip stream that inflates to `count` zero bytes, with about a thousandth of them on the wire and none in memory.
    public static func gzipBomb(inflatingTo count: Int, type: String = "application/octet-stream") -> Self {
        Self(headers: ["Content-Type": type, "Content-Encoding": "gzip"]).changing { $0.body = .gzippedZeros(count: count) }
    }

    /// Makes a response that repeats bytes, which are generated during transmission.
    public static func repeating(_ data: Data, times: Int, type: String = "application/octet-stream") -> Self {
        Self(headers: ["Content-Type": type]).changing { $0.body = .repeated(data, times: times) }
    }

    /// Makes a response of exactly these bytes, head included; the connection closes after them.
    public static func verbatim(_ bytes: Data) -> Self {
        Self(headers: ["Connection": "close"]).changing { $0.body = .verbatim(bytes) }
    }

    /// Makes a response of exactly this text, head included; the connection closes after it.
    public static func verbatim(_ text: String) -> Self { verbatim(Data(text.utf8)) }

    /// Returns the same response in gzip coding with uncompressed blocks: a valid stream that is not smaller.
    public func gzipped() -> Self {
        guard let data else { return self }
        return setting("Content-Encoding", to: "gzip").changing { $0.body = .data(Data(Gzip.stored([UInt8](data)))) }
    }
}
