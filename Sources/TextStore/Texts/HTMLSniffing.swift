/// Recognizes an HTML page by its first bytes, because a captive portal may send one as plain text.
enum HTMLSniffing {
    /// The start tags that begin a page: the table of the WHATWG's MIME Sniffing standard (section 7.1), further elements of a head, and
    /// elements of a body that portals begin with. The latter two begin a page without `<html>` and `<head>` (HTML, section 13.1.2.4).
    ///
    /// The list lacks elements with names that may begin other texts, such as the marks of a prompt: `article`, `data`, `details`, `output`,
    /// `section`, `summary`.
    private static let tags = [
        "html", "head", "script", "iframe", "h1", "div", "font", "table", "a", "style", "title", "b", "body", "br", "p", "base", "link",
        "meta", "noscript",
        "center", "form", "frameset", "noframes", "img", "span", "hr", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "dl", "input", "button",
        "fieldset", "main", "nav", "header", "footer", "applet", "embed", "marquee", "basefont", "bgsound",
    ]

    /// Returns whether a text begins like a page. Costs one comparison unless the text begins with a bracket.
    static func isPage(_ text: String) -> Bool {
        var rest = text.utf8[...]
        skipBlanks(&rest)
        guard rest.first == UInt8(ascii: "<") else { return false }
        if begins(rest, with: "<!--") || begins(rest, with: "<!doctype") { return true }
        return begins(rest, with: "<?xml") ? isXHTML(rest) : tags.contains { hasTag($0, rest) }
    }

    /// Returns whether an XML document is XHTML; any other XML is a text.
    private static func isXHTML(_ document: Substring.UTF8View) -> Bool {
        var rest = document
        guard skip(past: "?>", &rest) else { return false }
        skipBlanks(&rest)
        while begins(rest, with: "<!--") {
            guard skip(past: "-->", &rest) else { return false }
            skipBlanks(&rest)
        }
        guard begins(rest, with: "<!doctype") else { return hasTag("html", rest) }
        rest = rest.dropFirst(9)
        skipBlanks(&rest)
        return begins(rest, with: "html")
    }

    private static func hasTag(_ name: String, _ bytes: Substring.UTF8View) -> Bool {
        guard begins(bytes.dropFirst(), with: name) else { return false }
        guard let next = bytes.dropFirst(1 + name.utf8.count).first else { return true }
        return next == UInt8(ascii: ">") || next == UInt8(ascii: "/") || isBlank(next)
    }

    private static func begins(_ bytes: Substring.UTF8View, with lowercase: String) -> Bool {
        bytes.starts(with: lowercase.utf8) { byte, expected in (byte &- 0x41 < 26 ? byte | 0x20 : byte) == expected }
    }

    /// Skips white space and byte order marks.
    private static func skipBlanks(_ bytes: inout Substring.UTF8View) {
        while let first = bytes.first {
            if isBlank(first) {
                bytes = bytes.dropFirst()
            } else if begins(bytes, with: "\u{FEFF}") {
                bytes = bytes.dropFirst(3)
            } else {
                return
            }
        }
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0C || byte == 0x0D }

    private static func skip(past end: String, _ bytes: inout Substring.UTF8View) -> Bool {
        guard let range = bytes.firstRange(of: end.utf8) else { return false }
        bytes = bytes[range.upperBound...]
        return true
    }
}
