package import Foundation

/// Where at its origin something is: path and query, without scheme, host and port.
///
/// What a server links to is kept in this form, so that it can be saved, used at the same host at another port or under another name,
/// and lead nowhere else.
package struct OriginReference: Hashable, Sendable {
    /// Path and query as they go on the wire; begins with one slash.
    package let text: String

    /// Takes a reference that was kept before.
    ///
    /// - Throws: ``RouteFault/Code/foreignOrigin`` where it is not one that leads only to where it came from.
    package init(kept text: String) throws(RouteFault) {
        guard text.hasPrefix("/"), !text.hasPrefix("//"), text.utf8.allSatisfy(\.isReferenceByte) else { throw OriginReference.refused }
        let path = text.prefix { $0 != "?" }
        for segment in path.utf8.split(separator: UInt8(ascii: "/")) where PathCheck.standsForDots(Array(segment)[...]) {
            throw OriginReference.refused
        }
        self.text = text
    }

    /// Resolves what a server linked to (RFC 3986 §5.2) and keeps what stands behind the origin.
    ///
    /// - Parameters:
    ///   - link: An absolute or relative reference.
    ///   - base: The address of the answer that had it.
    ///   - origin: Who may be linked to.
    /// - Throws: ``RouteFault/Code/foreignOrigin`` where it leads to anybody else.
    package init(link: String, from base: URL, at origin: WebOrigin) throws(RouteFault) {
        // Foundation on Linux resolves some references wrongly, so it only splits what RFC 3986 has resolved.
        guard !link.isEmpty, link.utf8.allSatisfy({ $0.isReferenceByte || $0.isSentUnescaped || $0 == UInt8(ascii: "#") }),
            let resolved = URIReference(link).resolved(against: URIReference(base.absoluteString)), let authority = resolved.authority,
            let url = URL(string: "\(resolved.scheme ?? "")://\(authority)/"), WebOrigin(of: url) == origin
        else { throw OriginReference.refused }
        let path = resolved.path.isEmpty ? "/" : resolved.path
        try self.init(kept: (resolved.query.map { "\(path)?\($0)" } ?? path).withMissingEscapes)
    }

    /// The address at an origin.
    func resolved(at origin: WebOrigin) throws(RouteFault) -> URL {
        try origin.url(origin.description + text)
    }

    private static var refused: RouteFault {
        RouteFault(
            .foreignOrigin, in: "page link", "it leads to another origin or is no reference; only links within the host are followed")
    }
}

extension UInt8 {
    /// Whether this may stand in path and query (RFC 3986 §3.3, §3.4).
    fileprivate var isReferenceByte: Bool {
        switch self {
        case UInt8(ascii: "\""), UInt8(ascii: "#"), UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "\\"): false
        default: (0x21...0x7E).contains(self) && !isSentUnescaped
        }
    }

    /// Whether this should have been escaped, and often is not: `?filter[name]=a|b`.
    fileprivate var isSentUnescaped: Bool {
        switch self {
        case UInt8(ascii: "["), UInt8(ascii: "]"), UInt8(ascii: "{"), UInt8(ascii: "}"), UInt8(ascii: "|"), UInt8(ascii: "^"),
            UInt8(ascii: "`"):
            true
        default: false
        }
    }
}

extension String {
    /// The same with the bytes escaped that should have been.
    fileprivate var withMissingEscapes: String {
        guard utf8.contains(where: \.isSentUnescaped) else { return self }
        return utf8.reduce(into: "") { text, byte in
            let scalar = String(Unicode.Scalar(byte))
            text += byte.isSentUnescaped ? PercentEncoding.component.encode(scalar) : scalar
        }
    }
}
