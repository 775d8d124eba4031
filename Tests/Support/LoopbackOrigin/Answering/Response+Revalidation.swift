import Foundation

extension LoopbackOrigin.Response {
    /// A `304 Not Modified` response without fields.
    public static let notModified = Self(status: 304)

    /// Returns the same response with an `ETag`. The default tag is a hash of the body, so equal bodies have equal tags.
    ///
    /// - Parameter tag: The opaque tag without quotation marks.
    public func tagged(_ tag: String? = nil) -> Self { setting("ETag", to: "\"\(tag ?? Self.fingerprint(of: data ?? Data()))\"") }

    /// Returns a `304` response instead if the request has a matching validator (RFC 9110, section 13).
    ///
    /// `If-None-Match` compares weakly. Without it, `If-Modified-Since` must equal `Last-Modified` exactly.
    public func revalidated(by request: LoopbackOrigin.Request) -> Self {
        guard status == 200, request.method == .get || request.method == .head, isCurrent(for: request) else { return self }
        // A 304 must or should carry these fields (RFC 9110, section 15.4.5).
        let kept = ["cache-control", "content-location", "date", "etag", "expires", "last-modified", "vary", "age"]
        var response = Self.notModified
        for field in headers.fields where kept.contains(field.name.lowercased()) { response.headers.add(field.name, field.value) }
        response.misbehaviors = misbehaviors
        return response
    }

    private func isCurrent(for request: LoopbackOrigin.Request) -> Bool {
        if let known = request.headers["If-None-Match"] {
            guard known != "*" else { return true }
            guard let tag = headers["ETag"] else { return false }
            return EntityTag.list(known).contains { $0.opaque == EntityTag(tag)?.opaque }
        }
        guard let modified = headers["Last-Modified"] else { return false }
        return request.headers["If-Modified-Since"] == modified
    }

    /// Returns the FNV-1a hash of a body, which distinguishes bodies but resists no attack.
    private static func fingerprint(of data: Data) -> String {
        let hash = data.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
        return String(hash, radix: 16)
    }
}

/// An entity tag (RFC 9110, section 8.8.3).
struct EntityTag: Equatable {
    let opaque: Substring
    let isWeak: Bool

    init?(_ text: some StringProtocol) {
        let trimmed = Substring(text).trimmingPrefix(while: \.isWhitespace)
        isWeak = trimmed.hasPrefix("W/")
        let quoted = isWeak ? trimmed.dropFirst(2) : trimmed
        guard quoted.count >= 2, quoted.first == "\"", let end = quoted.dropFirst().firstIndex(of: "\"") else { return nil }
        opaque = quoted[quoted.index(after: quoted.startIndex)..<end]
    }

    /// Returns the tags of an `If-None-Match` field; a comma inside quotation marks belongs to the tag.
    static func list(_ field: String) -> [EntityTag] {
        var tags: [EntityTag] = []
        var rest = field[...]
        while let opening = rest.firstIndex(of: "\"") {
            let inside = rest[rest.index(after: opening)...]
            guard let closing = inside.firstIndex(of: "\"") else { break }
            let isWeak = rest[..<opening].hasSuffix("W/")
            EntityTag((isWeak ? "W/" : "") + rest[opening...closing]).map { tags.append($0) }
            rest = inside[inside.index(after: closing)...]
        }
        return tags
    }
}
