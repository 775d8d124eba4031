internal import Foundation
internal import RemoteHTTP

struct CookieRequest: Hashable, Sendable {
    let origin: WebOrigin
    /// The percent-encoded path, which begins with a slash.
    let path: String

    init?(_ url: URL) {
        guard let origin = WebOrigin(of: url) else { return nil }
        self.origin = origin
        // Foundation on Linux decodes some paths, but cookie paths match the bytes on the wire.
        let path = URIReference(url.absoluteString).path
        self.path = path.hasPrefix("/") ? path : "/"
    }

    var host: String { origin.host }

    /// Whether the request may carry `Secure` cookies: over TLS, or to loopback as for other credentials (H5).
    var isSecure: Bool { origin.scheme == .https || origin.isLoopback }

    /// The path of a cookie without a `Path` attribute: the request's path up to its last slash (RFC 6265bis, default-path).
    var defaultPath: String {
        let directory = path.utf8.lastIndex(of: UInt8(ascii: "/")).map { path[..<$0] } ?? ""
        return directory.isEmpty ? "/" : String(directory)
    }
}

/// The matching rules for hosts and paths (RFC 6265bis, Domain Matching and Paths).
enum CookieMatch {
    /// Whether a host matches a domain; an IP address matches only itself.
    static func host(_ host: String, matches domain: String) -> Bool {
        if host == domain { return true }
        return host.utf8.count > domain.utf8.count && host.hasSuffix("." + domain) && !isAddress(host)
    }

    static func path(_ path: String, matches prefix: String) -> Bool {
        guard path.utf8.starts(with: prefix.utf8) else { return false }
        let rest = path.utf8.dropFirst(prefix.utf8.count)
        return rest.isEmpty || prefix.utf8.last == UInt8(ascii: "/") || rest.first == UInt8(ascii: "/")
    }

    static func isAddress(_ host: String) -> Bool {
        // A name never ends in a label of digits alone (RFC 3696, section 2).
        host.hasPrefix("[") || host.split(separator: ".").last?.utf8.allSatisfy(\.isDigit) == true
    }
}
