internal import Foundation
internal import RemoteHTTP
internal import StoreCore

/// The saved state of a partial file, from which a later request resumes.
struct DownloadState: Codable, Hashable, Sendable {
    var address: String
    /// The strong validator of the representation, as sent in `If-Range`.
    var validator: String
    var total: Int64?

    /// Whether a download from an address may resume: from the same one, or from the same path with a strong entity tag.
    ///
    /// The query of a signed address differs each time. The server compares the tag, so another file is not taken for the same.
    func mayResume(from other: String) -> Bool {
        if address == other { return true }
        return validator.hasPrefix("\"") && address.prefix { $0 != "?" } == other.prefix { $0 != "?" }
    }
}

/// The action that a response requires for a partial file, as a pure decision (RFC 9110 §14, §13.1.5).
enum DownloadDecision: Hashable {
    /// The response contains the whole file: write from the first byte.
    case restart(total: Int64?)
    /// The response contains the bytes up to an end: append them. The file is complete only if the end is the total.
    case append(end: Int64, total: Int64?)
    /// The partial file has all bytes of the version already.
    case complete
    /// The partial file is unusable: request the whole file.
    case askAgain
    case refuse(String)

    /// Returns the action for a response; `offset` is the first byte of the requested range, `nil` for a request for the whole file.
    static func decide(status: Int, fields: HTTPFields, offset: Int64?, known: DownloadState?) -> DownloadDecision {
        let validator = known.flatMap { fields[$0.validator.hasPrefix("\"") ? "ETag" : "Last-Modified"] }
        let isOtherVersion = validator != nil && validator != known?.validator
        switch status {
        case 200:
            // The file has changed, or the server does not support ranges.
            return .restart(total: isPacked(fields) ? nil : fields["Content-Length"].flatMap { Int64($0) })
        case 206:
            guard let offset else { return .refuse("the server sent a part of the file, but the request was for the whole file") }
            guard let range = ContentRange(fields["Content-Range"]), let first = range.first, let last = range.last else {
                return .refuse("the server sent a part without a valid Content-Range")
            }
            // Such a server may ignore the first byte of a range. It is asked for the whole file.
            if first < offset { return .askAgain }
            guard first == offset else { return .refuse("the part begins at byte \(first) instead of \(offset)") }
            if let total = range.total, let before = known?.total, total != before {
                return .refuse("the size of the file changed from \(before) to \(total) bytes")
            }
            guard !isPacked(fields) else {
                return .refuse("the part is compressed, and compressed parts cannot be joined")
            }
            if isOtherVersion { return .refuse("the part belongs to another version of the file") }
            let total = range.total ?? known?.total
            if let total, last >= total { return .refuse("the part ends at byte \(last), behind the end of the file") }
            return .append(end: last + 1, total: total)
        case 416:
            guard let offset else { return .refuse("the server rejected a range, but the request had none") }
            if isOtherVersion { return .askAgain }
            let stated = ContentRange(fields["Content-Range"])?.total
            // Another total belongs to another version.
            if let stated, let before = known?.total, stated != before { return .askAgain }
            return (stated ?? known?.total) == offset ? .complete : .askAgain
        default:
            return .refuse("the server returned status \(status), which is neither the file nor a part of it")
        }
    }

    /// Returns the validator to resume with; `nil` if the response has no strong one (RFC 9110 §8.8.2.2, §13.1.5).
    static func strongValidator(of fields: HTTPFields, now: Date) -> String? {
        if let tag = fields["ETag"] { return isStrongTag(tag) ? tag : nil }
        guard let text = fields["Last-Modified"], let modified = HTTPDate.parse(text, now: now),
            let date = fields["Date"].flatMap({ HTTPDate.parse($0, now: now) }), date.timeIntervalSince(modified) >= 60
        else { return nil }
        return text
    }

    static func isStrong(_ validator: String, now: Date) -> Bool {
        isStrongTag(validator) || HTTPDate.parse(validator, now: now) != nil
    }

    /// Whether the content has a coding, so that its bytes differ from those of the file.
    static func isPacked(_ fields: HTTPFields) -> Bool { !fields.contentCodings.isEmpty }

    private static func isStrongTag(_ tag: String) -> Bool { Validator.isEntityTag(tag) && tag.hasPrefix("\"") }
}

/// A `Content-Range` field (RFC 9110 §14.4).
struct ContentRange: Hashable {
    var first: Int64?
    var last: Int64?
    var total: Int64?

    init?(_ field: String?) {
        guard let field, field.lowercased().hasPrefix("bytes ") else { return nil }
        let parts = field.dropFirst("bytes ".count).split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        if parts[1] != "*" {
            guard let total = ContentRange.number(parts[1]) else { return nil }
            self.total = total
        }
        guard parts[0] != "*" else { return }
        let bounds = parts[0].split(separator: "-", omittingEmptySubsequences: false)
        guard bounds.count == 2, let first = ContentRange.number(bounds[0]), let last = ContentRange.number(bounds[1]), first <= last,
            total.map({ last < $0 }) ?? true
        else { return nil }
        self.first = first
        self.last = last
    }

    private static func number(_ text: Substring) -> Int64? {
        guard !text.isEmpty, text.utf8.allSatisfy(\.isDigit), let number = Int64(text) else { return nil }
        // The end of a range is one more than its last byte.
        return number < .max ? number : nil
    }
}
