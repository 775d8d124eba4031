/// A request line and its fields, checked as strictly as RFC 9112 allows.
struct RequestHead {
    /// The end of the body after the head.
    enum Framing: Equatable {
        case length(Int)
        case chunked
    }

    let method: LoopbackOrigin.Method
    let target: String
    let minorVersion: Int
    private(set) var headers = LoopbackOrigin.Headers()
    private(set) var raw: [UInt8]

    /// Parses a request line, including its line end.
    init(requestLine line: ArraySlice<UInt8>) throws(MalformedRequest) {
        let parts = try Self.withoutLineEnd(line).split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
        guard parts.count == 3 else { throw MalformedRequest("a request line has three parts") }
        guard let method = LoopbackOrigin.Method(rawValue: String(decoding: parts[0], as: UTF8.self)) else {
            throw MalformedRequest("the method is not a token")
        }
        guard !parts[1].isEmpty, parts[1].allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw MalformedRequest("the target is empty or has bytes that must be encoded")
        }
        self.method = method
        target = String(decoding: parts[1], as: UTF8.self)
        minorVersion = try Self.minorVersion(String(decoding: parts[2], as: UTF8.self))
        raw = Array(line)
    }

    /// Parses a field line; returns whether it was the empty line that ends the head.
    mutating func add(line: ArraySlice<UInt8>) throws(MalformedRequest) -> Bool {
        raw += line
        guard let field = try Self.field(line) else { return true }
        headers.add(field.name, field.value)
        return false
    }

    /// Checks the fields together, and determines the end of the body.
    func framing() throws(MalformedRequest) -> Framing {
        let hosts = headers.values(of: "Host").count
        guard hosts == 1 || (hosts == 0 && minorVersion == 0) else { throw MalformedRequest("there must be one Host") }
        if let expectation = headers["Expect"], expectation.lowercased() != "100-continue" {
            throw MalformedRequest(417, "unknown expectation")
        }
        let lengths = headers.values(of: "Content-Length")
        if let coding = headers["Transfer-Encoding"] {
            guard lengths.isEmpty else { throw MalformedRequest("Content-Length and Transfer-Encoding exclude each other") }
            guard coding.lowercased() == "chunked" else { throw MalformedRequest(501, "unknown transfer coding") }
            return .chunked
        }
        guard let first = lengths.first else { return .length(0) }
        guard lengths.allSatisfy({ $0 == first }) else { throw MalformedRequest("conflicting Content-Length") }
        guard !first.isEmpty, first.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let length = Int(first) else {
            throw MalformedRequest("Content-Length is not a number")
        }
        return .length(length)
    }

    /// Whether the client waits for `100 Continue` before it sends the body.
    var expectsContinue: Bool { headers["Expect"] != nil && minorVersion == 1 }

    /// Parses a field line; `nil` for the empty line.
    static func field(_ line: ArraySlice<UInt8>) throws(MalformedRequest) -> LoopbackOrigin.Headers.Field? {
        let content = try withoutLineEnd(line)
        guard !content.isEmpty else { return nil }
        guard let colon = content.firstIndex(of: UInt8(ascii: ":")), Token.isValid(content[..<colon]) else {
            throw MalformedRequest("a field name is a token followed by a colon")
        }
        let value = trimmed(content[(colon + 1)...])
        guard value.allSatisfy({ ($0 >= 0x20 && $0 != 0x7F) || $0 == 0x09 }) else {
            throw MalformedRequest("control byte in a field value")
        }
        return .init(name: String(decoding: content[..<colon], as: UTF8.self), value: text(value))
    }

    /// Removes CR LF from a line. A lone line feed is refused, because two parsers could disagree about the end of the line.
    static func withoutLineEnd(_ line: ArraySlice<UInt8>) throws(MalformedRequest) -> ArraySlice<UInt8> {
        let content = line.dropLast(2)
        guard line.suffix(2).elementsEqual([0x0D, 0x0A]), !content.contains(0x0D), !content.contains(0x00) else {
            throw MalformedRequest("a line must end with CR LF and hold neither CR nor NUL")
        }
        return content
    }

    private static func minorVersion(_ version: String) throws(MalformedRequest) -> Int {
        switch version {
        case "HTTP/1.1": return 1
        case "HTTP/1.0": return 0
        default: throw version.hasPrefix("HTTP/") ? MalformedRequest(505, "only HTTP/1 is supported") : MalformedRequest("not HTTP")
        }
    }

    private static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let isSpace: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 }
        guard let first = bytes.firstIndex(where: { !isSpace($0) }), let last = bytes.lastIndex(where: { !isSpace($0) }) else { return [] }
        return bytes[first...last]
    }

    private static func text(_ bytes: ArraySlice<UInt8>) -> String {
        String(validating: bytes, as: UTF8.self) ?? String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }
}
