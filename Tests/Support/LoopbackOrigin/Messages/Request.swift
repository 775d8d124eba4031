public import Foundation

extension LoopbackOrigin {
    /// A complete request as it arrived.
    ///
    /// ```swift
    /// origin.on(.get, "/users/:id") { request in
    ///     .json(["id": request.parameter("id"), "verbose": request.query("verbose") ?? "no"])
    /// }
    /// ```
    public struct Request: Sendable {
        /// The position among all requests of this origin, from 1.
        public internal(set) var number: Int
        /// The number of the connection, from 1 in the order of acceptance.
        public let connection: Int
        /// The method.
        public let method: Method
        /// The request target exactly as sent.
        public let target: String
        /// The target's path with its percent-encoding; without the authority of an absolute-form target.
        public let path: String
        /// The target's query, percent-decoded; a plus sign stays a plus sign.
        public let queryItems: [URLQueryItem]
        /// The minor version of HTTP/1: 0 or 1.
        public let minorVersion: Int
        /// The header fields.
        public let headers: Headers
        /// The fields after the last chunk of a chunked body.
        public let trailers: Headers
        /// The body without its chunked coding.
        public let body: Data
        /// The bytes from the request line to the empty line that ends the head.
        public let rawHead: Data
        /// The percent-decoded values of the route pattern's parameters.
        public internal(set) var parameters: [String: String] = [:]

        /// Returns the first value of a query item; `nil` without the item, and empty without a value.
        public func query(_ name: String) -> String? { queryItems.first { $0.name == name }.map { $0.value ?? "" } }

        /// Returns the value of a parameter of the route's pattern; a name that the pattern lacks is a programming error.
        public func parameter(_ name: String) -> String {
            guard let value = parameters[name] else {
                preconditionFailure("the route of \(method) \(path) has no parameter “\(name)”, only \(parameters.keys.sorted())")
            }
            return value
        }

        /// Decodes the body from JSON.
        ///
        /// - Throws: `DecodingError` if the body does not match the type.
        public func decoded<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
            let decoder = JSONDecoder()
            decoder.dateDecodingStrategy = .iso8601
            return try decoder.decode(type, from: body)
        }
    }
}

extension LoopbackOrigin.Request {
    init(_ parsed: ParsedRequest, number: Int, connection: Int) {
        let (path, query) = Self.split(parsed.head.target)
        self.number = number
        self.connection = connection
        self.path = path
        queryItems = Self.items(of: query)
        method = parsed.head.method
        target = parsed.head.target
        minorVersion = parsed.head.minorVersion
        headers = parsed.head.headers
        trailers = parsed.trailers
        body = Data(parsed.body)
        rawHead = Data(parsed.head.raw)
    }

    /// Splits a target of any form in RFC 9112, section 3.2, into path and query.
    private static func split(_ target: String) -> (path: String, query: Substring) {
        var rest = target[...]
        if !rest.hasPrefix("/"), let scheme = rest.range(of: "://") {
            let afterScheme = rest[scheme.upperBound...]
            rest = afterScheme.firstIndex { $0 == "/" || $0 == "?" }.map { afterScheme[$0...] } ?? "/"
        }
        let parts = rest.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let path = parts.first.map(String.init) ?? ""
        return (path.isEmpty ? "/" : path, parts.count > 1 ? parts[1] : "")
    }

    private static func items(of query: Substring) -> [URLQueryItem] {
        query.split(separator: "&").map { pair in
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(PercentCoding.decode)
            return URLQueryItem(name: parts.first ?? "", value: parts.count > 1 ? parts[1] : nil)
        }
    }
}

/// Lenient percent-decoding: an invalid escape stays unchanged.
enum PercentCoding {
    static func decode(_ text: some StringProtocol) -> String { String(text).removingPercentEncoding ?? String(text) }
}
