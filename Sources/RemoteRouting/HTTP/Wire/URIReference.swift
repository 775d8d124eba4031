/// The five components of an address, without their delimiters, and reference resolution (RFC 3986 §5).
package struct URIReference: Hashable, Sendable {
    package var scheme: String?
    package var authority: String?
    package var path: String
    package var query: String?
    package var fragment: String?

    /// Splits any text as in RFC 3986, appendix B, without validation.
    package init(_ text: String) {
        // Splits by Unicode scalars, because a combining accent after a delimiter would hide it from `Character`.
        var rest = text.unicodeScalars[...]
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
        if rest.starts(with: "//".unicodeScalars) {
            rest = rest.dropFirst(2)
            let slash = rest.firstIndex(of: "/") ?? rest.endIndex
            authority = String(rest[..<slash])
            rest = rest[slash...]
        }
        path = String(rest)
    }

    /// Resolves the reference against a base (RFC 3986 §5.2.2); `nil` if neither is absolute.
    package func resolved(against base: URIReference) -> URIReference? {
        guard scheme != nil || base.scheme != nil else { return nil }
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
                if path.utf8.first != UInt8(ascii: "/") { target.path = base.merged(with: path) }
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
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return reference }
        return String(path[...slash]) + reference
    }

    /// Removes dot segments by bytes (RFC 3986 §5.2.4).
    private static func removingDots(from path: String) -> String {
        var input = Array(path.utf8)[...]
        var output: [UInt8] = []
        func begins(_ text: String) -> Bool { input.starts(with: text.utf8) }
        func isOnly(_ text: String) -> Bool { input.elementsEqual(text.utf8) }
        while !input.isEmpty {
            if begins("../") {
                input = input.dropFirst(3)
            } else if begins("./") || begins("/./") {
                input = input.dropFirst(2)
            } else if begins("/../") {
                input = input.dropFirst(3)
                output.removeLastSegment()
            } else if isOnly("/.") {
                input = input.prefix(1)
            } else if isOnly("/..") {
                input = input.prefix(1)
                output.removeLastSegment()
            } else if isOnly(".") || isOnly("..") {
                input = []
            } else {
                let end = input.dropFirst().firstIndex(of: UInt8(ascii: "/")) ?? input.endIndex
                output += input[..<end]
                input = input[end...]
            }
        }
        return String(decoding: output, as: UTF8.self)
    }

    private static func isScheme(_ text: Substring.UnicodeScalarView) -> Bool {
        guard let first = text.first, first.isASCII, first.properties.isAlphabetic else { return false }
        return text.allSatisfy {
            $0.isASCII && ($0.properties.isAlphabetic || ("0"..."9").contains($0) || "+-.".unicodeScalars.contains($0))
        }
    }
}

extension [UInt8] {
    /// Removes the last slash and the text after it; removes everything if there is no slash.
    fileprivate mutating func removeLastSegment() {
        removeSubrange((lastIndex(of: UInt8(ascii: "/")) ?? startIndex)...)
    }
}
