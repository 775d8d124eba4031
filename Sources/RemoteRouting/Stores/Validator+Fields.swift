package import Foundation
public import StoreCore

extension Validator {
    /// The validators of a response, verbatim (RFC 9110 §8.8); `nil` if it has none that can be sent back.
    ///
    /// ```swift
    /// let etag = Validator(of: response)?.entityTag
    /// ```
    ///
    /// - Parameter response: A response of a ``RemoteHost``.
    public init?(of response: RemoteResponse<some Any>) { self.init(of: response.fields, now: response.exchange.respondedAt) }

    /// The validators of an answer (RFC 9110 §8.8), verbatim; `nil` where it has none that can be sent back.
    ///
    /// - Parameters:
    ///   - fields: The header of the answer.
    ///   - now: The present moment of the wall clock.
    package init?(of fields: HTTPFields, now: Date) {
        let tags = fields.values(of: "ETag")
        let dates = fields.values(of: "Last-Modified")
        // Two different ones name no version at all.
        self.init(
            entityTag: tags.count == 1 && Validator.isEntityTag(tags[0]) ? tags[0] : nil,
            lastModified: dates.count == 1 && HTTPDate.parse(dates[0], now: now) != nil ? dates[0] : nil)
        if entityTag == nil, lastModified == nil { return nil }
    }

    /// Whether the tag names the very bytes, and not only what they mean (RFC 9110 §8.8.1).
    package var hasStrongEntityTag: Bool {
        entityTag.map { !$0.hasPrefix("W/") && Validator.isEntityTag($0) } ?? false
    }

    /// Whether this is an entity tag of RFC 9110 §8.8.3: what is none, such as `*`, would mean something else when it is sent back.
    static func isEntityTag(_ text: String) -> Bool {
        var bytes = text.utf8[...]
        if bytes.starts(with: "W/".utf8) { bytes = bytes.dropFirst(2) }
        guard bytes.count >= 2, bytes.first == UInt8(ascii: "\""), bytes.last == UInt8(ascii: "\"") else { return false }
        return bytes.dropFirst().dropLast().allSatisfy { $0 == 0x21 || $0 >= 0x23 && $0 != 0x7F }
    }
}

extension Headers {
    /// Makes a request conditional (RFC 9110 §13.1.2, §13.1.3).
    ///
    /// Both fields are sent: a server that knows tags ignores the date.
    ///
    /// - Parameter validator: What the store has; one that was damaged on its way through a file is left out.
    /// - Returns: Whether the request is conditional now.
    mutating func append(conditionsOf validator: Validator, now: Date) -> Bool {
        var isConditional = false
        if let tag = validator.entityTag, Validator.isEntityTag(tag) {
            append("If-None-Match", tag)
            isConditional = true
        }
        if let date = validator.lastModified, HTTPDate.parse(date, now: now) != nil {
            append("If-Modified-Since", date)
            isConditional = true
        }
        return isConditional
    }
}
