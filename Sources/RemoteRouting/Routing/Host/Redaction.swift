internal import Foundation
internal import RemoteHTTP

struct Redaction: Sendable {
    /// Further names of secret header fields besides those of `FieldRules`, in lower case.
    var fields: Set<String>
    /// The names of secret query values, in lower case.
    var queryNames: Set<String>

    static let mark = "<redacted>"

    static let secretQueryNames: Set<String> = [
        "access_token", "refresh_token", "id_token", "token", "api_key", "apikey", "key", "password", "passwd", "pwd", "secret",
        "client_secret", "code", "sig", "signature", "x-amz-signature", "x-amz-credential", "x-amz-security-token",
        "x-goog-signature", "x-goog-credential", "accesstoken", "refreshtoken", "idtoken",
    ]

    func value(of field: HTTPFields.Field) -> String {
        switch field.name.lowercased() {
        case let name where fields.contains(name) || FieldRules.of(name).contains(.secret): Redaction.mark
        // The address of a refresh follows a number (HTML standard §4.2.5.3), and the path of an address may be any text.
        case "location", "content-location", "refresh", "destination", "referer": text(of: field.value)
        case "link": links(field.value)
        default: field.value
        }
    }

    /// An address without its user and without secret query values.
    func text(of address: String) -> String {
        var reference = URIReference(address)
        if let authority = reference.authority, let at = authority.utf8.lastIndex(of: UInt8(ascii: "@")) {
            reference.authority = Redaction.mark + authority[at...]
        }
        reference.query = reference.query.map { query in
            // Compares bytes, because a combining accent after a delimiter would hide it from `Character`.
            query.utf8.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false).map { pair in
                guard let equals = pair.firstIndex(of: UInt8(ascii: "=")) else { return String(decoding: pair, as: UTF8.self) }
                let name = String(decoding: pair[..<equals], as: UTF8.self)
                return isSecret(name) ? "\(name)=\(Redaction.mark)" : String(decoding: pair, as: UTF8.self)
            }.joined(separator: "&")
        }
        // The fragment often holds a token.
        if reference.fragment != nil { reference.fragment = Redaction.mark }
        return reference.text
    }

    /// Whether a query name is secret, even when nested (`user[password]`) or indexed (`token[0]`).
    private func isSecret(_ name: String) -> Bool {
        let plain = (name.removingPercentEncoding ?? name).lowercased()
        return queryNames.contains(plain)
            || plain.utf8.split(whereSeparator: { $0 == UInt8(ascii: "[") || $0 == UInt8(ascii: "]") })
                .contains { queryNames.contains(String(decoding: $0, as: UTF8.self)) }
    }

    private func links(_ field: String) -> String {
        field.utf8.split(separator: UInt8(ascii: "<"), omittingEmptySubsequences: false).map { piece in
            let end = piece.firstIndex(of: UInt8(ascii: ">")) ?? piece.endIndex
            return text(of: String(decoding: piece[..<end], as: UTF8.self)) + String(decoding: piece[end...], as: UTF8.self)
        }.joined(separator: "<")
    }
}
