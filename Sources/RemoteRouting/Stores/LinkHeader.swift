/// The links of a `Link` field (RFC 8288 §3).
///
/// ```swift
/// let links = LinkHeader(response.fields)
/// let next = links.first(relation: "next")?.target
/// ```
public struct LinkHeader: Hashable, Sendable {
    /// A link.
    public struct Link: Hashable, Sendable {
        /// The reference as received: absolute, or relative to the URL of the response.
        public let target: String
        /// The relations of the first `rel` parameter, in lower case (RFC 8288 §3.3).
        public let relations: [String]
        /// The parameters in order, with names in lower case.
        public let parameters: [MimeType.Parameter]

        /// The link's context; `nil` if it is the response itself (RFC 8288 §3.2).
        var anchor: String? { parameters.first { $0.name == "anchor" }?.value }
    }

    /// The links, in order.
    public let links: [Link]

    /// Parses the `Link` lines of a message; a syntax error ends the parsing of its own line only.
    public init(_ fields: HTTPFields) {
        links = fields.values(of: "Link").flatMap(LinkHeader.parse)
    }

    /// Returns the first link from the response itself with a relation; `nil` if there is none.
    ///
    /// - Parameter relation: The relation, such as `next`; its case is ignored.
    public func first(relation: String) -> Link? {
        let relation = relation.lowercased()
        return links.first { $0.anchor == nil && $0.relations.contains(relation) }
    }

    private static func parse(_ line: String) -> [Link] {
        var scanner = FieldScanner(line)
        var links: [Link] = []
        while true {
            scanner.skipBlanks()
            while scanner.take(",") { scanner.skipBlanks() }
            guard scanner.take("<"), let target = scanner.text(upTo: ">") else { return links }
            let parameters = parameters(&scanner)
            let relations = parameters.first { $0.name == "rel" }?.value.split(separator: " ").map { $0.lowercased() }
            links.append(Link(target: target, relations: relations ?? [], parameters: parameters))
            scanner.skip(toAnyOf: [","])
        }
    }

    private static func parameters(_ scanner: inout FieldScanner) -> [MimeType.Parameter] {
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
                value = scanner.tokenOrQuoted() ?? ""
                // Skips the rest of an unquoted value, because many servers omit required quotation marks.
                scanner.skip(toAnyOf: [";", ","])
            }
            parameters.append(MimeType.Parameter(name: name.lowercased(), value: value))
        }
    }
}
