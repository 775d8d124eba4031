import Foundation

extension LoopbackOrigin.Response {
    /// `304 Not Modified` without fields.
    public static let notModified = Self(status: 304)

    /// The same response with an `ETag`; without a tag, one that is made from the body, so that equal bodies have equal tags.
    ///
    /// - Parameter tag: The opaque tag without quotation marks.
    public func tagged(_ tag: String? = nil) -> Self {
        setting("ETag", to: "\"\(tag ?? Self.fingerprint(of: data ?? Data()))\"")
    }

    /// The same response with a weak `ETag`.
    ///
    /// - Parameter tag: The opaque tag without quotation marks.
    public func weaklyTagged(_ tag: String) -> Self {
        setting("ETag", to: "W/\"\(tag)\"")
    }

    /// `304` instead of this response when the request already has it (RFC 9110, section 13).
    ///
    /// `If-None-Match` compares weakly; only without it does `If-Modified-Since` count, which must equal `Last-Modified` exactly.
    public func revalidated(by request: LoopbackOrigin.Request) -> Self {
        guard status == 200, request.method == .get || request.method == .head, isCurrent(for: request) else { return self }
        // The fields a 304 must or should carry (RFC 9110, section 15.4.5).
        let kept = ["cache-control", "content-location", "date", "etag", "expires", "last-modified", "vary", "age"]
        var answer = Self.notModified
        for field in headers.fields where kept.contains(field.name.lowercased()) {
            answer.headers.add(field.name, field.value)
        }
        answer.misbehaviors = misbehaviors
        return answer
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

    /// FNV-1a over the body: it need not resist attack, only tell bodies apart.
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

    /// The tags of an `If-None-Match` field; a comma inside quotation marks belongs to the tag.
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
