package import Foundation

/// Who answers: scheme, host and port, as RFC 6454 §4 compares them.
///
/// ```swift
/// let origin = try WebOrigin(scheme: .https, host: "api.example.com")
/// assert(origin.description == "https://api.example.com")
/// ```
package struct WebOrigin: Hashable, Sendable, CustomStringConvertible {
    /// The scheme.
    package let scheme: HostConfiguration.Scheme
    /// The host in lower case; an IPv6 address stands in brackets.
    package let host: String
    /// The port, also where it is the scheme's own.
    package let port: Int

    /// Makes an origin.
    ///
    /// - Parameters:
    ///   - scheme: The scheme.
    ///   - host: A name, an IPv4 address, or an IPv6 address with or without brackets; nothing else, no port and no user.
    ///   - port: The port; the scheme's own by default.
    /// - Throws: ``RouteFault/Code/invalidOrigin``.
    package init(scheme: HostConfiguration.Scheme, host: String, port: Int? = nil) throws(RouteFault) {
        let port = port ?? scheme.defaultPort
        guard (1...65535).contains(port) else {
            throw RouteFault(.invalidOrigin, in: "port", "\(port) is no port; use one from 1 to 65535")
        }
        guard let host = WebOrigin.canonical(host: host) else {
            throw RouteFault(
                .invalidOrigin, in: "host",
                "it is neither a name of letters, digits, hyphens and dots nor an IP address; write an international name in its ASCII form "
                    + "(xn--…)")
        }
        self.scheme = scheme
        self.host = host
        self.port = port
    }

    /// The origin of an address; `nil` where it is not http or https, has no host, or carries a user.
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

    /// The origin as an address begins with it, without the scheme's own port.
    package var description: String {
        port == scheme.defaultPort ? "\(scheme.rawValue)://\(host)" : "\(scheme.rawValue)://\(host):\(port)"
    }

    /// The same origin at another port.
    package func at(port: Int?) throws(RouteFault) -> WebOrigin {
        guard let port, port != self.port else { return self }
        return try WebOrigin(scheme: scheme, host: host, port: port)
    }

    private static func canonical(host: String) -> String? {
        let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
        let bare = isBracketed ? String(host.dropFirst().dropLast()) : host
        if bare.utf8.contains(UInt8(ascii: ":")) {
            // One colon stands before a port, which is said elsewhere; an IPv6 address has at least two.
            guard bare.utf8.count(where: { $0 == UInt8(ascii: ":") }) > 1 else { return nil }
            // Of an address only the characters are looked at; a zone (`%eth0`) is local and not supported.
            let isPlausible = bare.utf8.allSatisfy { $0.isHexDigit || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ".") }
            return isPlausible ? "[\(bare.lowercased())]" : nil
        }
        guard !isBracketed, !bare.isEmpty, bare.utf8.count <= 255 else { return nil }
        guard
            bare.utf8.allSatisfy({ $0.isASCIIAlphanumeric || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: "_") }
            )
        else { return nil }
        // None of its labels is empty, but the one behind a last dot, which stands for the root (RFC 1034 §3.1).
        let dot = UInt8(ascii: ".")
        guard bare.utf8.first != dot, !zip(bare.utf8, bare.utf8.dropFirst()).contains(where: { $0 == dot && $1 == dot }) else { return nil }
        return bare.lowercased()
    }
}
