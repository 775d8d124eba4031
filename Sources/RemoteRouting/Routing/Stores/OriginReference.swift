package import Foundation
package import RemoteHTTP

/// A path and a query without scheme, host and port.
///
/// Page links are saved in this form. Therefore a saved link works after the host's name or port changes, and cannot lead to another
/// origin.
package struct OriginReference: Hashable, Sendable {
    /// The path and the query as sent on the wire; begins with a single slash.
    package let text: String

    /// Checks a saved text; throws ``RouteFault/Code/foreignOrigin`` if it is malformed or could lead to another origin.
    package init(kept text: String) throws(RouteFault) {
        guard text.hasPrefix("/"), !text.hasPrefix("//"), text.utf8.allSatisfy(\.isReferenceByte) else { throw OriginReference.refused }
        let path = text.prefix { $0 != "?" }
        for segment in path.utf8.split(separator: UInt8(ascii: "/")) where PathCheck.standsForDots(Array(segment)[...]) {
            throw OriginReference.refused
        }
        self.text = text
    }

    /// Resolves a link of a response (RFC 3986 §5.2), and removes its origin.
    package init(link: String, from base: URL, at origin: WebOrigin) throws(RouteFault) {
        guard let url = WebAddress.resolve(link, from: base), WebOrigin(of: url) == origin else { throw OriginReference.refused }
        let target = URIReference(url.absoluteString)
        try self.init(kept: target.query.map { "\(target.path)?\($0)" } ?? target.path)
    }

    /// Creates the reference of an address that the app holds, so that a segment may be the escaped name of any file.
    package init(address: URL, at origin: WebOrigin) throws(RouteFault) {
        guard let url = WebAddress.resolve(address.absoluteString, from: address), WebOrigin(of: url) == origin else {
            throw OriginReference.refused
        }
        let target = URIReference(url.absoluteString)
        // Both spellings of a dot are equal (RFC 3986 §6.2.2.2), and some transports resolve both. A dot that is escaped twice is a name.
        let path = target.path.replacing("%2e", with: ".").replacing("%2E", with: ".")
        for segment in path.utf8.split(separator: UInt8(ascii: "/"))
        where segment.elementsEqual(".".utf8) || segment.elementsEqual("..".utf8) {
            throw OriginReference.refused
        }
        try self.init(chosen: target)
    }

    /// Creates the reference of an address that the program has chosen, so that its segments may look like encoded dots or slashes.
    package init(chosen address: URIReference) throws(RouteFault) {
        let path = address.path.isEmpty ? "/" : address.path
        let text = WebAddress.escaped(address.query.map { "\(path)?\($0)" } ?? path)
        guard text.utf8.first == UInt8(ascii: "/"), text.utf8.allSatisfy(\.isReferenceByte) else { throw OriginReference.refused }
        self.text = text
    }

    func resolved(at origin: WebOrigin) throws(RouteFault) -> URL {
        try origin.url(origin.description + text)
    }

    private static var refused: RouteFault {
        RouteFault(
            .foreignOrigin, in: "link", "it is malformed or leads to another origin; correct it, or follow it with a host of that origin")
    }
}

extension UInt8 {
    /// Whether the byte may occur in a path or a query (RFC 3986 §3.3, §3.4).
    fileprivate var isReferenceByte: Bool {
        (0x21...0x7E).contains(self) && !"\"#<>\\[]{}|^`".utf8.contains(self)
    }
}
