public import Foundation
public import RemoteHTTP

extension HostConfiguration {
    /// Creates a configuration from an address.
    ///
    /// ```swift
    /// let api = RemoteHost(try HostConfiguration(url: address))
    /// ```
    ///
    /// The address is http or https, without user, query and fragment. Its path becomes the base path.
    ///
    /// - Throws: ``RouteFault`` with the code ``RouteFault/Code/invalidOrigin`` for any other address, or the fault of its path.
    public init(url: URL) throws(RouteFault) {
        let text = url.absoluteString
        guard URIReference(text).scheme != nil else {
            throw HostText.fault("address", "it has no scheme; use an absolute address such as https://api.example.com")
        }
        self = try HostText(text, isAddress: true).configuration()
    }
}

/// The text of a host: a name or an IP address, optionally with a port, or a whole address.
struct HostText {
    private var scheme: HostConfiguration.Scheme?
    private var host: String
    private var port: Int?
    private var basePath: RoutePath?

    /// Parses a text such as `api.example.com`, `[::1]:8080` or `https://api.example.com/v1`; an address must begin with a scheme.
    init(_ text: String, isAddress: Bool = false) throws(RouteFault) {
        guard !text.isEmpty else { throw HostText.fault("host", "it is empty; use a name such as api.example.com") }
        // Without `://` the text has no scheme: `localhost:8080` would otherwise have the scheme `localhost`.
        guard isAddress || text.utf8.firstRange(of: "://".utf8) != nil else {
            try self.init(authority: text)
            return
        }
        let address = URIReference(text)
        guard let name = address.scheme, let scheme = HostConfiguration.Scheme(rawValue: name.lowercased()) else {
            throw HostText.fault("scheme", "only http and https can be used")
        }
        guard let authority = address.authority, !authority.isEmpty else {
            throw HostText.fault("host", "the address has no host; write two slashes and the host after the scheme")
        }
        guard address.query == nil else { throw HostText.fault("address", "it has a query; put parameters into the query of a route") }
        guard address.fragment == nil else { throw HostText.fault("address", "it has a fragment, which is never sent; leave it out") }
        try self.init(authority: authority)
        self.scheme = scheme
        guard !address.path.isEmpty, address.path != "/" else { return }
        let basePath = RoutePath(stringLiteral: address.path)
        _ = try basePath.encoded()
        self.basePath = basePath
    }

    /// Splits a host from its port (RFC 3986 §3.2).
    private init(authority: String) throws(RouteFault) {
        let bytes = authority.utf8
        guard !bytes.contains(UInt8(ascii: "@")) else {
            throw HostText.fault("host", "a user or a password precedes it; authorize the host instead")
        }
        guard !bytes.contains(where: { [UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "#")].contains($0) }) else {
            throw HostText.fault("host", "more than a host and a port needs a scheme; write an address such as https://api.example.com/v1")
        }
        let colon = bytes.lastIndex(of: UInt8(ascii: ":"))
        // Several colons without brackets mean an IPv6 address without a port.
        let isPlainIPv6 = bytes.first != UInt8(ascii: "[") && bytes.count { $0 == UInt8(ascii: ":") } > 1
        guard let colon, !isPlainIPv6, bytes.last != UInt8(ascii: "]") else {
            host = authority
            return
        }
        let digits = bytes[bytes.index(after: colon)...]
        guard !digits.isEmpty, digits.allSatisfy(\.isDigit), let port = Int(Substring(digits)) else {
            throw HostText.fault("port", "it is not a number; write a number from 1 to 65535 after the colon")
        }
        host = String(authority[..<colon])
        self.port = port
    }

    /// Combines the text with other arguments, which must not contradict it, and checks the host and the port.
    func configuration(
        scheme: HostConfiguration.Scheme? = nil, port: Int? = nil, basePath: RoutePath = ""
    ) throws(RouteFault) -> HostConfiguration {
        func only<Value: Equatable>(_ own: Value?, _ other: Value?, _ part: String) throws(RouteFault) -> Value? {
            guard let own, let other, own != other else { return own ?? other }
            throw HostText.fault(part, "the address and an argument give different ones; give it once")
        }
        var configuration = HostConfiguration()
        configuration.scheme = try only(self.scheme, scheme, "scheme") ?? .https
        configuration.host = host
        configuration.port = try only(self.port, port, "port")
        configuration.basePath = try only(self.basePath, basePath == "" ? nil : basePath, "base path") ?? ""
        _ = try configuration.origin()
        return configuration
    }

    static func fault(_ part: String, _ message: String) -> RouteFault { RouteFault(.invalidOrigin, in: part, message) }
}
