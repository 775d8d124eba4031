internal import Foundation
internal import RemoteHTTP
import StoreCore

/// A GET request for a file, or for the address of a redirect.
struct TextRequest: Sendable {
    /// An absolute address without credentials, with a lowercase scheme.
    let url: URL
    /// The request's header fields, each name once.
    private(set) var fields: [(name: String, value: String)] = []
    /// The fields that the store adds; redirects keep them.
    private let own: [(name: String, value: String)]

    /// Makes the request of a file.
    ///
    /// - Throws: ``TextStoreError/Code/unreachable`` for an address that is not HTTP; ``TextStoreError/Code/invalidName`` for a malformed
    ///   field.
    init(_ file: RemoteFile, _ validator: Validator?) throws(TextStoreError) {
        guard let url = TextRequest.address(file.url.absoluteURL) else {
            let reason = "it is not an HTTP address; correct the address"
            throw TextStoreError(
                .unreachable, "cannot get \(file.url.absoluteString): \(reason)", underlyingError: WireFailure(.invalidRequest, reason))
        }
        self.url = url
        var own: [(name: String, value: String)] = []
        if file.caching == .revalidated { own.append(("Cache-Control", "no-cache")) }
        // A server supplied both validators, so they are checked before use.
        if let tag = validator?.entityTag, tag.isFieldValue { own.append(("If-None-Match", tag)) }
        if let date = validator?.lastModified, date.isFieldValue { own.append(("If-Modified-Since", date)) }
        self.own = own
        for (name, value) in file.headers.sorted(by: { $0.key < $1.key }) {
            guard name.isFieldName, value.isFieldValue else {
                throw TextStoreError(
                    .invalidName,
                    "cannot get \(file.url.absoluteString): “\(name)” is not a valid header field; remove its control characters")
            }
            set(name, value)
        }
        for field in own { set(field.name, field.value) }
    }

    private init(_ url: URL, _ own: [(name: String, value: String)]) {
        (self.url, self.own, fields) = (url, own, own)
    }

    /// Whether the request carries a validator, even after a redirect.
    var isConditional: Bool { own.contains { $0.name.hasPrefix("If-") } }

    func has(_ name: String) -> Bool { fields.contains { $0.name.lowercased() == name.lowercased() } }

    private mutating func set(_ name: String, _ value: String) {
        fields.removeAll { $0.name.lowercased() == name.lowercased() }
        fields.append((name, value))
    }

    /// Returns the request for a redirect, without the file's header fields, which are meant for its origin only.
    ///
    /// - Returns: `nil` if the response is not a redirect within the same scheme; the caller then uses the response itself.
    func redirected(by head: WireHead) -> TextRequest? {
        guard [301, 302, 303, 307, 308].contains(head.status), let location = head.values(of: "Location").first,
            let target = WebAddress.resolve(location, from: url).flatMap(TextRequest.address),
            target.scheme == url.scheme
        else { return nil }
        return TextRequest(target, own)
    }

    /// Returns an HTTP address without its credentials, which libcurl would send; `nil` for any other address.
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
    /// The well-formed fields by their lowercase names; values of the same name are joined (RFC 9110 §5.3).
    var headers: [String: String] {
        let readable = fields.filter { $0.name.isFieldName && $0.value.isFieldValue }
        return Dictionary(readable.map { ($0.name.lowercased(), $0.value) }) { $0 + ", " + $1 }
    }

    /// Returns the value of a field; `nil` if it is missing or malformed.
    func value(of name: String) -> String? {
        let values = values(of: name).filter(\.isFieldValue)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }

    /// The content coding in lowercase; `nil` without one.
    var coding: String? {
        guard let coding = value(of: "Content-Encoding")?.lowercased(), !coding.isEmpty, coding != "identity" else { return nil }
        return coding
    }

    /// The length of an uncoded body; `nil` if it is unknown.
    var length: Int? { coding == nil ? value(of: "Content-Length").flatMap { Int($0) } : nil }

    /// The validators of the body (RFC 9110 §8.8), verbatim; `nil` if the response has neither.
    var validator: Validator? {
        let validator = Validator(entityTag: value(of: "ETag"), lastModified: value(of: "Last-Modified"))
        return validator == Validator() ? nil : validator
    }
}

extension String {
    /// Whether the text is a valid field value: no control characters except tabs (RFC 9110 §5.5).
    fileprivate var isFieldValue: Bool { utf8.allSatisfy { ($0 >= 0x20 && $0 != 0x7F) || $0 == 0x09 } }

    /// Whether the text is a valid field name: a token (RFC 9110 §5.6.2).
    fileprivate var isFieldName: Bool {
        !isEmpty
            && unicodeScalars.allSatisfy { scalar in
                scalar.isASCII
                    && (scalar.properties.isAlphabetic || ("0"..."9").contains(scalar) || "!#$%&'*+-.^_`|~".unicodeScalars.contains(scalar))
            }
    }
}
