package import Foundation

/// An origin: scheme, host and port, compared as in RFC 6454 §4.
///
/// ```swift
/// let origin = try WebOrigin(scheme: .https, host: "api.example.com")
/// assert(origin.description == "https://api.example.com")
/// ```
package struct WebOrigin: Hashable, Sendable, CustomStringConvertible {
    /// The scheme.
    package let scheme: HostConfiguration.Scheme
    /// The host in lower case; an IPv6 address has brackets.
    package let host: String
    /// The port, even if it is the scheme's default.
    package let port: Int

    /// Creates an origin.
    ///
    /// - Parameters:
    ///   - scheme: The scheme.
    ///   - host: A name, an IPv4 address, or an IPv6 address with or without brackets; no port and no user.
    ///   - port: The port; the scheme's default if `nil`.
    /// - Throws: ``RouteFault`` with the code ``RouteFault/Code/invalidOrigin``.
    package init(scheme: HostConfiguration.Scheme, host: String, port: Int? = nil) throws(RouteFault) {
        let port = port ?? scheme.defaultPort
        guard (1...65535).contains(port) else {
            throw RouteFault(.invalidOrigin, in: "port", "\(port) is not a port; use a number from 1 to 65535")
        }
        guard let host = WebOrigin.canonical(host: host) else {
            throw RouteFault(
                .invalidOrigin, in: "host",
                "it is neither a name of letters, digits, hyphens and dots nor an IP address; write an international name in its "
                    + "ASCII form (xn--…)")
        }
        self.scheme = scheme
        self.host = host
        self.port = port
    }

    /// The origin of an address; `nil` unless the address is http or https with a host and without a user.
    package init?(of url: URL) {
        guard let scheme = url.scheme.flatMap({ HostConfiguration.Scheme(rawValue: $0.lowercased()) }),
            url.user(percentEncoded: true) == nil,
            let host = url.host(percentEncoded: true)
        else { return nil }
        do {
            try self.init(scheme: scheme, host: host, port: url.port)
        } catch {
            return nil
        }
    }

    /// The beginning of an address at this origin; the scheme's default port is omitted.
    package var description: String {
        port == scheme.defaultPort ? "\(scheme.rawValue)://\(host)" : "\(scheme.rawValue)://\(host):\(port)"
    }

    /// Returns the same origin with another port.
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
        guard
            bare.utf8.allSatisfy({ $0.isASCIIAlphanumeric || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: "_") }
            )
        else { return nil }
        // Only the last label may be empty: a trailing dot means the root (RFC 1034 §3.1).
        let dot = UInt8(ascii: ".")
        guard bare.utf8.first != dot, !zip(bare.utf8, bare.utf8.dropFirst()).contains(where: { $0 == dot && $1 == dot }) else { return nil }
        return bare.lowercased()
    }
}
