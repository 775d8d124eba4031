package import Foundation
import StoreCore
internal import StorePlatform

/// Checks whether bytes from an origin are the expected text.
enum TextValidation {
    /// The requirements of a source and its manifest entry; the defaults require only a text.
    struct Expectation {
        var mediaTypes: Set<String> = []
        var emptiness = TextSource.Emptiness.refused
        var limit = Int.max
        var length: Int?
        var sha256: String?
    }

    /// Checks a response, and returns its text without a byte order mark; the reason for a refusal does not name the text.
    static func text(of response: RemoteText, _ expected: Expectation) throws(TextStoreError) -> String {
        let allowsMarkup = try check(response, expected)
        let text: String
        do throws(TextStoreError) {
            text = try self.text(of: response.bytes, expected.emptiness)
        } catch {
            throw .response(error.code, error.message)
        }
        if !allowsMarkup, HTMLSniffing.isPage(text) {
            throw .response(
                .unexpectedMediaType,
                "it begins like an HTML page; if that is intended, send it as text/html or text/markdown, and declare that type")
        }
        return text
    }

    /// Checks size, digest, and declared type, without parsing the bytes. Returns whether the type allows HTML.
    @discardableResult
    static func check(_ response: RemoteText, _ expected: Expectation) throws(TextStoreError) -> Bool {
        let bytes = response.bytes
        guard bytes.count <= expected.limit else {
            throw .response(.tooLarge, "its \(bytes.count) bytes exceed the limit of \(expected.limit); raise the limit")
        }
        try check(bytes.count, expected) { bytes.withUnsafeBytes { SHA256.digest(of: $0) } }
        return try checkMediaType(response.contentType, expected.mediaTypes)
    }

    /// Returns whether the bytes of a fetched text have the length and the digest of the manifest.
    static func isAcceptable(_ record: TextRecord, _ expected: Expectation) -> Bool {
        let length = TextVerification(record, as: nil, isListed: false).bytes.count
        // The reason does not matter, because the text is fetched in any case.
        return (try? check(length, expected) { record.facts.fileDigest }) != nil
    }

    /// Checks the length and the digest of a text against those of the manifest.
    private static func check(_ count: Int, _ expected: Expectation, _ digest: () -> SHA256.Digest) throws(TextStoreError) {
        if let length = expected.length, length != count {
            throw .response(.lengthMismatch, "it has \(count) bytes, and the manifest lists \(length); try again later")
        }
        guard let sha256 = expected.sha256, case let found = digest().hex, found != sha256 else { return }
        throw .response(.digestMismatch, "its SHA-256 is \(found), not the manifest's \(sha256); check the origin and its caches")
    }

    /// Decodes UTF-8 without a byte order mark; throws for malformed bytes, for NUL, and for an empty text that is not allowed.
    static func text(of bytes: Data, _ emptiness: TextSource.Emptiness) throws(TextStoreError) -> String {
        let body = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? bytes.dropFirst(3) : bytes
        guard emptiness == .allowed || !body.isEmpty else {
            throw TextStoreError(.malformedText, "the text is empty; allow that in its source if it is intended")
        }
        let (text, hasNUL) = body.withUnsafeBytes { raw in
            let bytes = raw.bindMemory(to: UInt8.self)
            return (String(validating: bytes, as: UTF8.self), bytes.contains(0))
        }
        guard !hasNUL else { throw TextStoreError(.malformedText, "the text contains NUL; save the file as UTF-8") }
        guard let text else { throw TextStoreError(.malformedText, "the text is not UTF-8; save the file as UTF-8") }
        return text
    }

    /// Returns whether the type allows HTML; throws if the type is not a text's.
    private static func checkMediaType(_ contentType: String?, _ declared: Set<String>) throws(TextStoreError) -> Bool {
        let parts = (contentType ?? "").split(separator: ";").map { $0.trimmingCharacters(in: .whitespaces).lowercased() }
        guard let type = parts.first, !type.isEmpty else {
            guard declared.contains("") else {
                throw .response(.unexpectedMediaType, "it has no Content-Type; send text/plain")
            }
            return false
        }
        let isDeclared = declared.contains { $0.lowercased() == type }
        let isMarkup = type == "text/html" || type == "application/xhtml+xml"
        guard isDeclared || (type.hasPrefix("text/") && !isMarkup) else {
            throw .response(.unexpectedMediaType, "its type is \(type.prefix(64)); declare that type if it is intended")
        }
        for part in parts.dropFirst() where part.hasPrefix("charset=") {
            let charset = part.dropFirst(8).trimmingCharacters(in: CharacterSet(charactersIn: "\""))
            guard charset == "utf-8" || charset == "utf8" || charset == "us-ascii" else {
                throw .response(.malformedText, "its charset is \(charset.prefix(32)); send UTF-8")
            }
        }
        // RFC 7763 §1.1 allows HTML anywhere in Markdown.
        return isDeclared && (isMarkup || type == "text/markdown")
    }
}

extension TextStoreError {
    fileprivate static func response(_ code: Code, _ reason: String) -> TextStoreError {
        TextStoreError(code, "cannot use the response: \(reason)")
    }

    /// Makes the error with which a store would refuse a file of a server; `nil` if the file is a text.
    ///
    /// - Parameter markupType: The type of a file that may contain HTML, which the text's source then declares; `nil` for a plain text.
    package init?(refusing bytes: Data, markupType: String? = nil, limit: Int = 1_000_000) {
        let response = RemoteText(bytes: bytes, contentType: markupType ?? "text/plain")
        do throws(TextStoreError) {
            _ = try TextValidation.text(of: response, .init(mediaTypes: markupType.map { [$0] } ?? [], limit: limit))
            return nil
        } catch {
            self = error
        }
    }
}
