internal import Foundation

/// The parts of an address that cookies depend on.
struct CookieRequest: Hashable, Sendable {
    let origin: WebOrigin
    /// Still percent-encoded; begins with a slash.
    let path: String

    /// Reads an address.
    ///
    /// - Parameter url: An http or https address; others have no cookies.
    init?(_ url: URL) {
        guard let origin = WebOrigin(of: url) else { return nil }
        self.origin = origin
        // Foundation on Linux decodes some paths; cookies compare the bytes that go on the wire.
        let path = URIReference(url.absoluteString).path
        self.path = path.hasPrefix("/") ? path : "/"
    }

    var host: String { origin.host }

    /// Whether `Secure` cookies may travel: with TLS, or within this machine as H5 has it for other credentials.
    var isSecure: Bool { origin.scheme == .https || origin.isLoopback }

    /// The path of a cookie that names none: the request's path up to its last slash (RFC 6265bis, default-path).
    var defaultPath: String {
        let directory = path.utf8.lastIndex(of: UInt8(ascii: "/")).map { path[..<$0] } ?? ""
        return directory.isEmpty ? "/" : String(directory)
    }
}

/// How names of hosts and paths match (RFC 6265bis, Domain Matching and Paths).
enum CookieMatch {
    /// Whether a host belongs to a domain; an address belongs to itself only.
    static func host(_ host: String, matches domain: String) -> Bool {
        if host == domain { return true }
        return host.utf8.count > domain.utf8.count && host.hasSuffix("." + domain) && !isAddress(host)
    }

    /// Whether a path lies at or below another.
    static func path(_ path: String, matches prefix: String) -> Bool {
        guard path.utf8.starts(with: prefix.utf8) else { return false }
        let rest = path.utf8.dropFirst(prefix.utf8.count)
        return rest.isEmpty || prefix.utf8.last == UInt8(ascii: "/") || rest.first == UInt8(ascii: "/")
    }

    /// Whether a host is an IP address.
    static func isAddress(_ host: String) -> Bool {
        // A name never ends in a label of digits alone (RFC 3696, section 2).
        host.hasPrefix("[") || host.split(separator: ".").last?.utf8.allSatisfy(\.isDigit) == true
    }
}
