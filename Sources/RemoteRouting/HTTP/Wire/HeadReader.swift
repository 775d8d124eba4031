internal import Foundation

/// A parser of response heads that reads line by line, within limits.
///
/// Interim responses (RFC 9110 §15.2) and trailers (RFC 9112 §7.1.2) count toward the limits and are dropped.
struct HeadReader {
    static let byteLimit = 262_144
    static let fieldLimit = 1000

    private var bytes = 0
    private var count = 0
    private var status = 0
    private var fields: [HTTPFields.Field] = []
    private let url: URL
    /// Whether the next line is a status line.
    private var isAtStart = true
    private var isDone = false
    /// Whether the head arrived over HTTP/2, where one connection carries several responses at once.
    private(set) var isShared = false
    private let offersHTTP2: Bool

    /// Creates a parser; unless the connection may use HTTP/2, a status line of HTTP/2 is an error.
    init(url: URL, offersHTTP2: Bool) {
        self.url = url
        self.offersHTTP2 = offersHTTP2
    }

    /// Parses the next line, including its line ending; returns the head after the empty line that ends it.
    mutating func take(_ line: UnsafeRawBufferPointer) throws(TransportFailure) -> HTTPResponse? {
        bytes += line.count
        count += 1
        guard bytes <= HeadReader.byteLimit, count <= HeadReader.fieldLimit + 2 else {
            throw TransportFailure(
                .protocolViolation,
                "the response head has more than \(HeadReader.fieldLimit) fields or \(HeadReader.byteLimit) bytes; check the server"
            )
        }
        if isDone { return nil }
        let end = line.lastIndex { $0 != 0x0A && $0 != 0x0D }.map { $0 + 1 } ?? 0
        let text = line[..<end]
        if text.isEmpty { return try finish() }
        if isAtStart, text.starts(with: "HTTP/".utf8) {
            // libcurl writes `HTTP/2` for frames. A server writes `HTTP/2.0` on a connection without frames.
            if text.starts(with: offersHTTP2 ? "HTTP/2.".utf8 : "HTTP/2".utf8) {
                throw TransportFailure(.protocolViolation, "the response claims HTTP/2 on a connection with HTTP/1.1; correct the server")
            }
            isAtStart = false
            fields = []
            status = HeadReader.status(of: text)
            isShared = text.dropFirst(5).first == UInt8(ascii: "2")
            return nil
        }
        if text[text.startIndex].isBlank {
            // An obsolete line folding continues the previous line (RFC 9112 §5.2).
            guard !fields.isEmpty else { return nil }
            // In place: a new string per line would copy all previous lines.
            fields[fields.count - 1].value += " " + HeadReader.string(text.withoutBlanksAtEnds)
            return nil
        }
        guard let colon = text.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        let name = HeadReader.string(text[..<colon])
        let value = text[(colon + 1)...].withoutBlanksAtEnds
        fields.append(HTTPFields.Field(name: name, value: HeadReader.value(of: name, value)))
        return nil
    }

    private mutating func finish() throws(TransportFailure) -> HTTPResponse? {
        // 101 is final, because nothing after it is HTTP.
        if (100..<200).contains(status), status != 101 {
            isAtStart = true
            return nil
        }
        isDone = true
        if let fault { throw TransportFailure(.protocolViolation, fault) }
        return HTTPResponse(status: status, fields: HTTPFields(received: fields), url: url)
    }

    /// The reason to refuse the head, and the remedy; `nil` if it is acceptable.
    private var fault: String? {
        if !(100..<1000).contains(status) {
            return "the response has no status of three digits; check that the address and the port are those of an HTTP server"
        }
        let lengths = values(of: "Content-Length")
            .flatMap { $0.split(separator: ",", omittingEmptySubsequences: false) }.map(Int64.init(field:))
        // All of them must be equal (RFC 9112 §6.3).
        if !lengths.allSatisfy({ $0 != nil && $0 == lengths[0] }) {
            return "the Content-Length of the response is not a number, or has several values; correct the server or the proxy before it"
        }
        let codings = values(of: "Transfer-Encoding")
        if !codings.isEmpty, codings.count > 1 || codings[0].lowercased() != "chunked" {
            return "the Transfer-Encoding of the response is not chunked alone; configure the server to compress with Content-Encoding only"
        }
        return nil
    }

    /// The values of a name, malformed ones included.
    private func values(of name: String) -> [String] { fields.filter { $0.name.equalsIgnoringCase(name) }.map(\.value) }

    private static func status(of line: Slice<UnsafeRawBufferPointer>) -> Int {
        guard let space = line.firstIndex(of: 0x20) else { return 0 }
        return line[(space + 1)...].prefix(while: \.isDigit).reduce(0) { min(1000, $0 * 10 + Int($1 - 0x30)) }
    }

    private static func value(of name: String, _ bytes: Slice<UnsafeRawBufferPointer>) -> String {
        let count = name.utf8.count
        // Other names are not copied.
        guard count == 4 || count == 8 || count == 10 else { return string(bytes) }
        return switch name.lowercased() {
        // A request returns these values to the server.
        case "etag", "set-cookie": FieldBytes.text(bytes)
        // These values contain the address of a later request.
        case "link", "location": FieldBytes.address(bytes)
        default: string(bytes)
        }
    }

    /// Decodes UTF-8, or ISO-8859-1 if the bytes are not UTF-8.
    private static func string(_ bytes: Slice<UnsafeRawBufferPointer>) -> String {
        if let text = String(validating: bytes, as: UTF8.self) { return text }
        return String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }
}

extension Int64 {
    /// Parses a length, which consists of digits only.
    fileprivate init?(field: Substring) {
        let digits = field.utf8.withoutBlanksAtEnds
        guard digits.allSatisfy(\.isDigit) else { return nil }
        self.init(Substring(digits))
    }
}
