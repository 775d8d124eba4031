extension HTTPFields {
    /// Returns the target of the first link with a relation, from the `Link` fields (RFC 8288 §3); `nil` if there is none.
    ///
    /// ```swift
    /// let next = response.fields.link("next")
    /// ```
    ///
    /// Links with an `anchor` are skipped, because they start at a resource other than the response. A malformed link ends the parsing of
    /// its line only.
    ///
    /// - Parameter relation: The relation, such as `next`, in any case.
    /// - Returns: The reference as received: absolute, or relative to the URL of the response.
    public func link(_ relation: String) -> String? {
        let relation = relation.lowercased()
        return LinkHeader(self).links.first { $0.relations.contains(relation) }?.target
    }

    /// Whether every link can be read; `false` if a malformed one may hide a relation.
    package var hasReadableLinks: Bool { LinkHeader(self).isReadable }
}

/// The links of the `Link` fields of a message (RFC 8288 §3), without those that start at another resource (§3.2).
struct LinkHeader {
    struct Link {
        /// The reference as received: absolute, or relative to the URL of the response.
        let target: String
        /// The relations of the first `rel` parameter, in lower case (RFC 8288 §3.3).
        let relations: [String]
    }

    private(set) var links: [Link] = []
    /// Whether every link was read to its end.
    private(set) var isReadable = true

    init(_ fields: HTTPFields) {
        for line in fields.values(of: "Link") { parse(line) }
    }

    private mutating func parse(_ line: String) {
        var scanner = FieldScanner(line)
        while true {
            scanner.skipBlanks()
            while scanner.take(",") { scanner.skipBlanks() }
            if scanner.isAtEnd { return }
            guard scanner.take("<"), let target = scanner.text(upTo: ">") else {
                isReadable = false
                return
            }
            let parameters = self.parameters(&scanner)
            let relations = parameters.first { $0.name == "rel" }?.value.split(separator: " ").map { $0.lowercased() }
            if !parameters.contains(where: { $0.name == "anchor" }) { links.append(Link(target: target, relations: relations ?? [])) }
            if !scanner.isAtEnd, scanner.peek != UInt8(ascii: ",") { isReadable = false }
            scanner.skip(toAnyOf: [","])
        }
    }

    private mutating func parameters(_ scanner: inout FieldScanner) -> [MimeType.Parameter] {
        var parameters: [MimeType.Parameter] = []
        while true {
            scanner.skipBlanks()
            guard scanner.take(";") else { return parameters }
            scanner.skipBlanks()
            guard let name = scanner.token() else { continue }
            scanner.skipBlanks()
            var value = ""
            if scanner.take("=") {
                scanner.skipBlanks()
                if let written = scanner.tokenOrQuoted() { value = written } else { isReadable = false }
                // Skips the rest of an unquoted value, because many servers omit required quotation marks.
                scanner.skip(toAnyOf: [";", ","])
            }
            parameters.append(MimeType.Parameter(name: name.lowercased(), value: value))
        }
    }
}
