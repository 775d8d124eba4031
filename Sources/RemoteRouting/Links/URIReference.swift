/// The five parts of an address, and how one is resolved against another (RFC 3986 §5).
package struct URIReference: Hashable, Sendable {
    /// Without its colon.
    package var scheme: String?
    /// Without its two slashes.
    package var authority: String?
    package var path: String
    /// Without its question mark.
    package var query: String?
    /// Without its number sign.
    package var fragment: String?

    /// Splits any text as appendix B of the RFC does; nothing is checked.
    package init(_ text: String) {
        var rest = text[...]
        if let hash = rest.firstIndex(of: "#") {
            fragment = String(rest[rest.index(after: hash)...])
            rest = rest[..<hash]
        }
        if let mark = rest.firstIndex(of: "?") {
            query = String(rest[rest.index(after: mark)...])
            rest = rest[..<mark]
        }
        if let colon = rest.firstIndex(of: ":"), URIReference.isScheme(rest[..<colon]) {
            scheme = String(rest[..<colon])
            rest = rest[rest.index(after: colon)...]
        }
        if rest.hasPrefix("//") {
            rest = rest.dropFirst(2)
            let slash = rest.firstIndex(of: "/") ?? rest.endIndex
            authority = String(rest[..<slash])
            rest = rest[slash...]
        }
        path = String(rest)
    }

    /// The reference as seen from a base (RFC 3986 §5.2.2); `nil` where the base is not absolute.
    package func resolved(against base: URIReference) -> URIReference? {
        guard base.scheme != nil else { return nil }
        var target = self
        if scheme == nil {
            target.scheme = base.scheme
            if authority == nil {
                target.authority = base.authority
                if path.isEmpty {
                    target.path = base.path
                    target.query = query ?? base.query
                    return target
                }
                if !path.hasPrefix("/") { target.path = base.merged(with: path) }
            }
        }
        target.path = URIReference.removingDots(from: target.path)
        return target
    }

    /// The address as text (RFC 3986 §5.3).
    package var text: String {
        var text = ""
        if let scheme { text += scheme + ":" }
        if let authority { text += "//" + authority }
        text += path
        if let query { text += "?" + query }
        if let fragment { text += "#" + fragment }
        return text
    }

    private func merged(with reference: String) -> String {
        if authority != nil, path.isEmpty { return "/" + reference }
        guard let slash = path.lastIndex(of: "/") else { return reference }
        return String(path[...slash]) + reference
    }

    /// RFC 3986 §5.2.4.
    private static func removingDots(from path: String) -> String {
        var input = path[...]
        var output = ""
        while !input.isEmpty {
            if input.hasPrefix("../") {
                input = input.dropFirst(3)
            } else if input.hasPrefix("./") {
                input = input.dropFirst(2)
            } else if input.hasPrefix("/./") {
                input = input.dropFirst(2)
            } else if input == "/." {
                input = "/"
            } else if input.hasPrefix("/../") {
                input = input.dropFirst(3)
                output = parent(of: output)
            } else if input == "/.." {
                input = "/"
                output = parent(of: output)
            } else if input == "." || input == ".." {
                input = ""
            } else {
                let end = input.dropFirst().firstIndex(of: "/") ?? input.endIndex
                output += input[..<end]
                input = input[end...]
            }
        }
        return output
    }

    private static func parent(of path: String) -> String {
        path.lastIndex(of: "/").map { String(path[..<$0]) } ?? ""
    }

    private static func isScheme(_ text: Substring) -> Bool {
        guard let first = text.utf8.first, first.isASCIIAlphanumeric, !first.isDigit else { return false }
        return text.utf8.allSatisfy {
            $0.isASCIIAlphanumeric || $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: ".")
        }
    }
}
