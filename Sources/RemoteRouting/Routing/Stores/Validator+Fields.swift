package import Foundation
package import RemoteHTTP
public import StoreCore

extension Validator {
    /// Creates a validator from a response's verbatim fields (RFC 9110 §8.8); returns `nil` if none of them is usable.
    ///
    /// Behind a redirect none is, because they identify versions of its target, and the next request goes to the route's address. The notes
    /// of the validator record the request fields that selected the response; see ``RemoteHost/accepts(_:for:)``.
    ///
    /// ```swift
    /// let etag = Validator(of: response)?.entityTag
    /// ```
    ///
    /// - Parameter response: A response of a ``RemoteHost``.
    public init?(of response: RemoteResponse<some Any>) {
        let exchange = response.exchange
        let own = exchange.redirects.isEmpty ? Validator(of: response.fields, now: exchange.respondedAt) : nil
        self.init(own, notesOf: exchange)
    }

    package init?(of fields: HTTPFields, now: Date) {
        let tags = fields.values(of: "ETag")
        let dates = fields.values(of: "Last-Modified")
        // Ignores repeated fields, because they identify no version.
        self.init(
            entityTag: tags.count == 1 && Validator.isEntityTag(tags[0]) ? tags[0] : nil,
            lastModified: dates.count == 1 && HTTPDate.parse(dates[0], now: now) != nil ? dates[0] : nil)
        if entityTag == nil, lastModified == nil { return nil }
    }

    /// Whether a text is an entity tag (RFC 9110 §8.8.3).
    ///
    /// Other texts, such as `*`, would have another meaning in a condition.
    static func isEntityTag(_ text: String) -> Bool {
        var bytes = text.utf8[...]
        if bytes.starts(with: "W/".utf8) { bytes = bytes.dropFirst(2) }
        guard bytes.count >= 2, bytes.first == UInt8(ascii: "\""), bytes.last == UInt8(ascii: "\"") else { return false }
        return bytes.dropFirst().dropLast().allSatisfy { $0 == 0x21 || $0 >= 0x23 && $0 != 0x7F }
    }
}

extension Headers {
    /// Adds the conditions of a validator without its damaged parts (RFC 9110 §13.1.2, §13.1.3); returns whether there are any.
    ///
    /// Sends both fields, because a server that supports entity tags ignores the date.
    mutating func append(conditionsOf validator: Validator, now: Date) -> Bool {
        let count = lines.count
        if let tag = validator.entityTag, Validator.isEntityTag(tag) { append("If-None-Match", tag) }
        if let date = validator.lastModified, HTTPDate.parse(date, now: now) != nil { append("If-Modified-Since", date) }
        return lines.count > count
    }
}
