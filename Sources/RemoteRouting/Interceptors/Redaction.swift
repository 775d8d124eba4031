internal import Foundation

/// What of a message may be written down: a pure decision.
struct Redaction: Sendable {
    /// Names of fields that hold secrets, in lower case.
    var fields: Set<String>
    /// Names in a query that hold secrets, in lower case.
    var queryNames: Set<String>

    static let mark = "<redacted>"

    /// A field's value as it may be written.
    func value(of field: HTTPFields.Field) -> String {
        switch field.name.lowercased() {
        case let name where fields.contains(name): Redaction.mark
        case "location", "content-location", "referer", "link": text(of: field.value)
        default: field.value
        }
    }

    /// An address as it may be written: without its user, and with the values of some names of its query taken out.
    func text(of address: String) -> String {
        var reference = URIReference(address)
        if let authority = reference.authority, let at = authority.lastIndex(of: "@") {
            reference.authority = Redaction.mark + authority[at...]
        }
        reference.query = reference.query.map { query in
            query.split(separator: "&", omittingEmptySubsequences: false).map { pair in
                guard let equals = pair.firstIndex(of: "=") else { return String(pair) }
                let name = String(pair[..<equals])
                let plain = (name.removingPercentEncoding ?? name).lowercased()
                return queryNames.contains(plain) ? "\(name)=\(Redaction.mark)" : String(pair)
            }.joined(separator: "&")
        }
        // What stands behind the number sign is often a token.
        if reference.fragment != nil { reference.fragment = Redaction.mark }
        return reference.text
    }
}
