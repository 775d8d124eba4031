internal import Foundation
import StoreCore

/// Whether bytes from an origin are a text, and the text that was expected.
enum TextValidation {
    /// What is expected of the bytes.
    struct Expectation {
        var mediaTypes: Set<String> = []
        var emptiness = TextSource.Emptiness.refused
        var limit = Int.max
        var length: Int?
        var sha256: String?
    }

    /// Checks bytes that a server gave.
    ///
    /// - Returns: The text, without its byte order mark.
    /// - Throws: Why it is none; without the identifier.
    static func text(of answer: RemoteText, _ expected: Expectation) throws(TextStoreError) -> String {
        let allowsMarkup = try check(answer, expected)
        let text = try self.text(of: answer.bytes, expected.emptiness)
        if !allowsMarkup, HTMLSniffing.isPage(text) {
            throw TextStoreError(.unexpectedMediaType, "the answer is a page of HTML; declare text/html where that is meant")
        }
        return text
    }

    /// Checks size, digest and declared type, without parsing the bytes.
    ///
    /// - Returns: Whether the type allows HTML.
    /// - Throws: The reason for a refusal, without the identifier.
    @discardableResult
    static func check(_ answer: RemoteText, _ expected: Expectation) throws(TextStoreError) -> Bool {
        let bytes = answer.bytes
        guard bytes.count <= expected.limit else {
            throw TextStoreError(.tooLarge, "the answer has \(bytes.count) bytes, more than the limit of \(expected.limit)")
        }
        if let length = expected.length, length != bytes.count {
            throw TextStoreError(.lengthMismatch, "the answer has \(bytes.count) bytes, the manifest says \(length)")
        }
        if let sha256 = expected.sha256 {
            let digest = bytes.withUnsafeBytes { SHA256.digest(of: $0) }.hex
            guard digest == sha256 else {
                throw TextStoreError(
                    .digestMismatch,
                    "the answer's SHA-256 is \(digest), the manifest says \(sha256); the origin or a cache before it is stale")
            }
        }
        return try checkMediaType(answer.contentType, expected.mediaTypes)
    }

    /// Reads strict UTF-8.
    static func text(of bytes: Data, _ emptiness: TextSource.Emptiness) throws(TextStoreError) -> String {
        let body = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? bytes.dropFirst(3) : bytes
        guard emptiness == .allowed || !body.isEmpty else {
            throw TextStoreError(.malformedText, "it is empty; allow that in its source where it is meant")
        }
        let (text, hasNUL) = body.withUnsafeBytes { raw in
            let bytes = raw.bindMemory(to: UInt8.self)
            return (String(validating: bytes, as: UTF8.self), bytes.contains(0))
        }
        guard !hasNUL else { throw TextStoreError(.malformedText, "it has a NUL character; it may be UTF-16 or no text at all") }
        guard let text else { throw TextStoreError(.malformedText, "it is not UTF-8; save the file in that encoding") }
        return text
    }

    /// Whether the type allows HTML; throws where it is no text's.
    private static func checkMediaType(_ contentType: String?, _ declared: Set<String>) throws(TextStoreError) -> Bool {
        let parts = (contentType ?? "").split(separator: ";").map { $0.trimmingCharacters(in: .whitespaces).lowercased() }
        guard let type = parts.first, !type.isEmpty else {
            guard declared.contains("") else {
                throw TextStoreError(.unexpectedMediaType, "the answer has no Content-Type; let the server say text/plain")
            }
            return false
        }
        let isDeclared = declared.contains { $0.lowercased() == type }
        let isMarkup = type == "text/html" || type == "application/xhtml+xml"
        guard isDeclared || (type.hasPrefix("text/") && !isMarkup) else {
            throw TextStoreError(
                .unexpectedMediaType, "the answer is \(type.prefix(64)); declare that type in the source where it is meant")
        }
        for part in parts.dropFirst() where part.hasPrefix("charset=") {
            let charset = part.dropFirst(8).trimmingCharacters(in: CharacterSet(charactersIn: "\""))
            guard charset == "utf-8" || charset == "utf8" || charset == "us-ascii" else {
                throw TextStoreError(.malformedText, "the answer is said to be \(charset.prefix(32)); texts are UTF-8")
            }
        }
        // Markdown may contain HTML anywhere (RFC 7763, section 1.1).
        return isDeclared && (isMarkup || type == "text/markdown")
    }
}
