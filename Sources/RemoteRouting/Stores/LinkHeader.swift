/// The links of a `Link` field (RFC 8288 §3).
///
/// ```swift
/// let links = LinkHeader(response.fields)
/// let next = links.first(relation: "next")?.target
/// ```
public struct LinkHeader: Hashable, Sendable {
    /// One link.
    public struct Link: Hashable, Sendable {
        /// The reference as it stands: absolute, or relative to the address of the answer.
        public let target: String
        /// The relations, in lower case; those of the first `rel` parameter, as RFC 8288 §3.3 has it.
        public let relations: [String]
        /// All parameters in order, with names in lower case.
        public let parameters: [MimeType.Parameter]

        /// Where the link starts from; `nil` where that is the answer itself (RFC 8288 §3.2).
        var anchor: String? { parameters.first { $0.name == "anchor" }?.value }
    }

    /// The links, in order.
    public let links: [Link]

    /// Reads all `Link` lines of a message; what cannot be read ends its own line only.
    public init(_ fields: HTTPFields) {
        links = fields.values(of: "Link").flatMap(LinkHeader.parse)
    }

    /// The first link of the answer itself that has a relation.
    ///
    /// - Parameter relation: As in `next`; compared without case.
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
                // Unquoted values with characters that need quotes are common; up to the next delimiter they are skipped.
                scanner.skip(toAnyOf: [";", ","])
            }
            parameters.append(MimeType.Parameter(name: name.lowercased(), value: value))
        }
    }
}
