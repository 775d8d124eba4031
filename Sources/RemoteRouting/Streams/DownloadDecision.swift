internal import Foundation
internal import StoreCore

/// What is known of a file that is there in part, so that the rest can be asked for.
struct DownloadState: Codable, Hashable, Sendable {
    /// Where it comes from, after redirects have been left aside.
    var address: String
    /// The strong validator of the representation, as it goes into `If-Range`.
    var validator: String
    /// How many bytes there are in all, where the server said.
    var total: Int64?
}

/// What an answer means for a file that is there in part: a pure decision (RFC 9110 §14, §13.1.5).
enum DownloadDecision: Hashable {
    /// The answer has the whole file: begin at its first byte.
    case restart(total: Int64?)
    /// The answer has what is missing: go on behind what is there.
    case append(total: Int64?)
    /// Nothing is missing.
    case complete
    /// What is there is of no use: ask for the whole.
    case askAgain
    /// The answer is none to what was asked.
    case refuse(String)

    /// Decides.
    ///
    /// - Parameters:
    ///   - status: The status of the response.
    ///   - fields: The header of the response.
    ///   - offset: How many bytes were said to be there; `nil` where the whole was asked for.
    ///   - known: What is known of those bytes.
    static func decide(status: Int, fields: HTTPFields, offset: Int64?, known: DownloadState?) -> DownloadDecision {
        switch status {
        case 200:
            // The file has changed, or the server does not know parts.
            return .restart(total: isPacked(fields) ? nil : fields["Content-Length"].flatMap { Int64($0) })
        case 206:
            guard let offset else { return .refuse("a part came although the whole was asked for") }
            guard let range = ContentRange(fields["Content-Range"]), let first = range.first, let last = range.last else {
                return .refuse("a part came that does not say which part it is")
            }
            guard first == offset else { return .refuse("the part that came begins at byte \(first) and not at \(offset)") }
            if let total = range.total, last != total - 1 { return .refuse("the part that came is not the rest, which was asked for") }
            if let total = range.total, let before = known?.total, total != before {
                return .refuse("the file has \(total) bytes now, and had \(before)")
            }
            guard !isPacked(fields) else {
                return .refuse("the part that came is packed, and parts of what is packed cannot be put together")
            }
            if let before = known?.validator, let now = fields[before.hasPrefix("\"") ? "ETag" : "Last-Modified"], now != before {
                return .refuse("the part that came is one of another version")
            }
            return .append(total: range.total ?? known?.total)
        case 416:
            guard let offset else { return .refuse("the server refuses a range that nobody asked for") }
            let total = ContentRange(fields["Content-Range"])?.total ?? known?.total
            return total == offset ? .complete : .askAgain
        default:
            return .refuse("the server answered \(status), which is neither the file nor a part of it")
        }
    }

    /// The validator to resume with; `nil` where there is none that is strong (RFC 9110 §8.8.2.2, §13.1.5).
    static func strongValidator(of fields: HTTPFields, now: Date) -> String? {
        if let tag = fields["ETag"] { return isStrongTag(tag) ? tag : nil }
        guard let text = fields["Last-Modified"], let modified = HTTPDate.parse(text, now: now),
            let date = fields["Date"].flatMap({ HTTPDate.parse($0, now: now) }), date.timeIntervalSince(modified) >= 60
        else { return nil }
        return text
    }

    /// Whether a validator that was kept is still one that `strongValidator(of:now:)` could have given.
    static func isStrong(_ validator: String, now: Date) -> Bool {
        isStrongTag(validator) || HTTPDate.parse(validator, now: now) != nil
    }

    /// Whether the content is coded, so that its bytes are not those of the file.
    static func isPacked(_ fields: HTTPFields) -> Bool {
        fields["Content-Encoding"].map { $0.lowercased() != "identity" } ?? false
    }

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
        guard !text.isEmpty, text.utf8.allSatisfy(\.isDigit) else { return nil }
        return Int64(text)
    }
}
