internal import Foundation
import StoreCore
internal import Wire

/// One GET of a file, or of the address that a redirect names.
struct TextRequest: Sendable {
    /// An absolute address without credentials, its scheme in lower case.
    let url: URL
    /// The fields of the request, each name once.
    private(set) var fields: [(name: String, value: String)] = []
    /// The fields that the store adds, which redirects keep.
    private let own: [(name: String, value: String)]

    /// Makes the request of a file.
    ///
    /// - Throws: ``TextStoreError/Code/unreachable`` for an address other than HTTP's; ``TextStoreError/Code/invalidName`` for a malformed field.
    init(_ file: RemoteFile, _ validator: Validator?) throws(TextStoreError) {
        guard let url = TextRequest.address(file.url.absoluteURL) else {
            throw TextStoreError(.unreachable, "getting \(file.url.absoluteString): the address is not one of HTTP; check it")
        }
        self.url = url
        var own: [(name: String, value: String)] = []
        if file.caching == .revalidated { own.append(("Cache-Control", "no-cache")) }
        // Both come from a server, by way of the disk.
        if let tag = validator?.entityTag, tag.isFieldValue { own.append(("If-None-Match", tag)) }
        if let date = validator?.lastModified, date.isFieldValue { own.append(("If-Modified-Since", date)) }
        self.own = own
        for (name, value) in file.headers.sorted(by: { $0.key < $1.key }) {
            guard name.isFieldName, value.isFieldValue else {
                throw TextStoreError(
                    .invalidName,
                    "getting \(file.url.absoluteString): the field “\(name)” is not one of HTTP; remove its control characters")
            }
            set(name, value)
        }
        for field in own { set(field.name, field.value) }
    }

    private init(_ url: URL, _ own: [(name: String, value: String)]) {
        (self.url, self.own, fields) = (url, own, own)
    }

    /// Whether the request carries a validator, also behind a redirect.
    var isConditional: Bool { own.contains { $0.name.hasPrefix("If-") } }

    func has(_ name: String) -> Bool { fields.contains { $0.name.lowercased() == name.lowercased() } }

    private mutating func set(_ name: String, _ value: String) {
        fields.removeAll { $0.name.lowercased() == name.lowercased() }
        fields.append((name, value))
    }

    /// The request that a redirect leads to, without the fields of the file, which are for its origin alone.
    ///
    /// - Returns: `nil` if the response is no redirect, or one that leads to another scheme; the response then counts itself.
    func redirected(by head: WireHead) -> TextRequest? {
        guard [301, 302, 303, 307, 308].contains(head.status), let location = head.values(of: "Location").first,
            let target = URL(string: location, relativeTo: url).flatMap({ TextRequest.address($0.absoluteURL) }),
            target.scheme == url.scheme
        else { return nil }
        return TextRequest(target, own)
    }

    /// An address of HTTP, without the credentials that libcurl would send.
    private static func address(_ url: URL) -> URL? {
        guard let scheme = url.scheme?.lowercased(), scheme == "http" || scheme == "https", url.host()?.isEmpty == false else { return nil }
        guard url.scheme != scheme || url.user() != nil || url.password() != nil else { return url }
        var parts = URLComponents(url: url, resolvingAgainstBaseURL: true)
        parts?.scheme = scheme
        parts?.user = nil
        parts?.password = nil
        return parts?.url
    }
}

extension WireHead {
    /// The well-formed fields by their names in lower case, values of one name joined (RFC 9110 §5.3).
    var headers: [String: String] {
        let readable = fields.filter { $0.name.isFieldName && $0.value.isFieldValue }
        return Dictionary(readable.map { ($0.name.lowercased(), $0.value) }) { $0 + ", " + $1 }
    }

    /// The value of a field; `nil` if it is missing or malformed.
    func value(of name: String) -> String? {
        let values = values(of: name).filter(\.isFieldValue)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }

    /// The content coding in lower case; `nil` without one.
    var coding: String? {
        guard let coding = value(of: "Content-Encoding")?.lowercased(), !coding.isEmpty, coding != "identity" else { return nil }
        return coding
    }

    /// The length of the body that is not coded.
    var length: Int? { coding == nil ? value(of: "Content-Length").flatMap { Int($0) } : nil }

    /// The validators of the body.
    var validator: Validator? {
        let validator = Validator(entityTag: value(of: "ETag"), lastModified: value(of: "Last-Modified"))
        return validator == Validator() ? nil : validator
    }

    /// How long the origin asks to be left alone, as seconds or until a date (RFC 9110 §10.2.3); zero after that date.
    func retryAfter(at now: Date) -> Duration? {
        guard let value = value(of: "Retry-After") else { return nil }
        if !value.isEmpty, value.utf8.allSatisfy({ $0 &- 0x30 <= 9 }) {
            // Larger numbers count as this one (RFC 9111 §1.2.2).
            return .seconds(min(Int64(value) ?? .max, 1 << 31))
        }
        // The date has whole seconds, so a fraction of one more keeps the request from coming too early.
        return RFC3339.httpDate(value).map { .seconds(max(0, Int64($0.timeIntervalSince(now).rounded(.up)))) }
    }
}

extension RFC3339 {
    /// Reads the form that HTTP prescribes (RFC 9110 §5.6.7), `Sun, 06 Nov 1994 08:49:37 GMT`; `nil` for any other text.
    static func httpDate(_ text: String) -> Date? {
        let words = text.split(separator: " ", omittingEmptySubsequences: false)
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        guard words.count == 6, words[5] == "GMT", ["Mon,", "Tue,", "Wed,", "Thu,", "Fri,", "Sat,", "Sun,"].contains(words[0]),
            let month = months.firstIndex(where: { $0 == words[2] })
        else { return nil }
        return date("\(words[3])-\(month < 9 ? "0" : "")\(month + 1)-\(words[1])T\(words[4])Z")
    }
}

extension String {
    /// Whether the text can be the value of a field: no control characters but tabs (RFC 9110 §5.5).
    fileprivate var isFieldValue: Bool { utf8.allSatisfy { ($0 >= 0x20 && $0 != 0x7F) || $0 == 0x09 } }

    /// Whether the text can be the name of a field: a token (RFC 9110 §5.6.2).
    fileprivate var isFieldName: Bool {
        !isEmpty
            && unicodeScalars.allSatisfy { scalar in
                scalar.isASCII
                    && (scalar.properties.isAlphabetic || ("0"..."9").contains(scalar) || "!#$%&'*+-.^_`|~".unicodeScalars.contains(scalar))
            }
    }
}
