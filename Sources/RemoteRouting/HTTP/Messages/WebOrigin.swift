package import Foundation

/// An origin: scheme, host and port, compared as in RFC 6454 §4.
package struct WebOrigin: Hashable, Sendable, CustomStringConvertible {
    package let scheme: HTTPScheme
    /// The host in lower case; an IPv6 address has brackets.
    package let host: String
    /// The port, even if it is the scheme's default.
    package let port: Int

    /// Creates an origin of a name, an IPv4 address, or an IPv6 address with or without brackets.
    package init(scheme: HTTPScheme, host: String, port: Int? = nil) throws(RouteFault) {
        let port = port ?? scheme.defaultPort
        guard (1...65535).contains(port) else {
            throw RouteFault(.invalidOrigin, in: "port", "\(port) is not a port; use a number from 1 to 65535")
        }
        guard let canonical = WebOrigin.canonical(host: host) else {
            let advice =
                if host.isASCII || HostName.convertsInternational {
                    "it is neither a name of letters, digits, hyphens and dots nor an IP address; correct the host"
                } else {
                    "this system cannot convert an international name; write the name in its ASCII form (xn--…)"
                }
            throw RouteFault(.invalidOrigin, in: "host", advice)
        }
        self.scheme = scheme
        self.host = canonical
        self.port = port
    }

    /// The origin of an address; `nil` unless the address is http or https with a host and without a user.
    package init?(of url: URL) {
        guard let scheme = url.scheme.flatMap({ HTTPScheme(rawValue: $0.lowercased()) }),
            url.user(percentEncoded: true) == nil,
            var host = url.host(percentEncoded: true)
        else { return nil }
        let port = url.port
        if port == nil || host.utf8.contains(UInt8(ascii: "%")) {
            let rest = url.absoluteString.utf8.dropFirst(scheme.rawValue.utf8.count + 3)
            let authority = rest.prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
            let (name, digits) = Substring(authority).hostAndPort
            // Foundation reports a port that overflows as none.
            if port == nil, !digits.isEmpty { return nil }
            // Foundation may report an international name in Unicode, although it sends the ASCII form.
            if name.utf8.count != host.utf8.count { host = String(name) }
        }
        guard let origin = try? WebOrigin(scheme: scheme, host: host, port: port) else { return nil }
        self = origin
    }

    /// The beginning of an address at this origin; the scheme's default port is omitted.
    package var description: String {
        port == scheme.defaultPort ? "\(scheme.rawValue)://\(host)" : "\(scheme.rawValue)://\(host):\(port)"
    }

    package func at(port: Int?) throws(RouteFault) -> WebOrigin {
        guard let port, port != self.port else { return self }
        return try WebOrigin(scheme: scheme, host: host, port: port)
    }

    private static func canonical(host: String) -> String? {
        let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
        let bare = isBracketed ? String(host.dropFirst().dropLast()) : host
        if bare.utf8.contains(UInt8(ascii: ":")) {
            // A single colon precedes a port, which is refused elsewhere; an IPv6 address has at least two.
            guard bare.utf8.count(where: { $0 == UInt8(ascii: ":") }) > 1 else { return nil }
            // Only the characters are checked. A zone (`%eth0`) is local and not supported.
            let isPlausible = bare.utf8.allSatisfy { $0.isHexDigit || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ".") }
            return isPlausible ? "[\(bare.lowercased())]" : nil
        }
        guard !isBracketed, !bare.isEmpty, bare.utf8.count <= 255 else { return nil }
        guard bare.utf8.allSatisfy(HostName.isLegal) else {
            return bare.isASCII ? nil : HostName.ascii(bare).flatMap(canonical(host:))
        }
        // Only the last label may be empty: a trailing dot means the root (RFC 1034 §3.1).
        let dot = UInt8(ascii: ".")
        guard bare.utf8.first != dot, !zip(bare.utf8, bare.utf8.dropFirst()).contains(where: { $0 == dot && $1 == dot }) else { return nil }
        return HostName.withoutRoot(bare.lowercased())
    }

    /// Whether the host is this machine, so that nothing leaves it (RFC 6761 §6.3).
    package var isLoopback: Bool {
        if host == "localhost" || host.hasSuffix(".localhost") || host == "[::1]" { return true }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
    }
}

/// A scheme of HTTP addresses (RFC 9110 §4.2).
public enum HTTPScheme: String, Hashable, Sendable {
    /// Without encryption; at port 80 by default.
    case http
    /// With TLS; at port 443 by default.
    case https

    var defaultPort: Int { self == .http ? 80 : 443 }
}

extension Substring {
    /// The host and the port of an authority without a user; the port is empty without a colon after the host.
    var hostAndPort: (host: Substring, port: Substring) {
        // A colon within the brackets of an IPv6 address precedes no port.
        guard utf8.last != UInt8(ascii: "]"), let colon = utf8.lastIndex(of: UInt8(ascii: ":")) else { return (self, "") }
        return (self[..<colon], self[utf8.index(after: colon)...])
    }
}

extension String {
    fileprivate var isASCII: Bool { utf8.allSatisfy { $0 < 0x80 } }
}
