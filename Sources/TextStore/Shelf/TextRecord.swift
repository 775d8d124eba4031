internal import Foundation
import StoreCore
internal import StoreFiles
internal import StorePlatform

/// A fetched text with its facts, saved as one file that is never rewritten.
final class TextRecord: Equatable, Sendable {
    let identifier: String
    let text: String
    let facts: Facts
    /// The response's header fields by their lowercase names, which a verifier sees again at the next start; `nil` for a text that was
    /// fetched without a verifier, so that no verified manifest covers it.
    let headers: [String: String]?

    init(identifier: String, text: String, facts: Facts, headers: [String: String]? = nil) {
        self.identifier = identifier
        self.text = text
        self.facts = facts
        self.headers = headers
    }

    static func == (lhs: TextRecord, rhs: TextRecord) -> Bool {
        lhs.identifier == rhs.identifier && lhs.text == rhs.text && lhs.facts == rhs.facts && lhs.headers == rhs.headers
    }

    /// The parts of a record that describe its text.
    struct Facts: Hashable, Sendable {
        var version: SemanticVersion?
        var epoch = Edition()
        /// The SHA-256 of the text's UTF-8.
        var digest: SHA256.Digest
        /// The SHA-256 of the bytes as the origin sent them, including a byte order mark.
        var fileDigest: SHA256.Digest
        var validator: Validator?
        /// The address that the validator belongs to.
        var url: String?
        var isVerified: Bool
        var fetchedAt: Date
    }

    var rank: Rank { Rank(epoch: facts.epoch, version: facts.version) }

    /// Returns whether another record has the same text of the same rank.
    func hasText(of other: TextRecord?) -> Bool { rank == other?.rank && facts.digest == other?.facts.digest }

    func write(as name: RecordName, in directory: Directory, options: FileWriteOptions) throws(TextStoreError) {
        var writer = ByteWriter()
        writer.put(identifier)
        writer.put(facts)
        writer.put(text)
        if let headers { writer.put(table: headers.sorted { $0.key < $1.key }) { $0.put($1) } }
        do throws(TextStoreError) {
            try SealedFile.session.save(writer.bytes, as: name.text, in: directory, options: options)
        } catch {
            throw error.about(identifier)
        }
    }

    /// Reads a record. A missing file counts as damaged, because the pointer names it.
    static func read(
        _ place: Pointer.Place, of identifier: String, in directory: Directory, with reader: inout SealedFile.Reader
    ) throws(TextStoreError) -> TextRecord {
        let name = place.file
        func damaged(_ reason: String) -> TextStoreError {
            TextStoreError(
                .damagedFile, identifier: identifier, "cannot use \(directory.path(of: name.text)): \(reason); the text is fetched again")
        }
        let found: TextRecord??
        do throws(TextStoreError) { found = try reader.load(name.text, TextRecord.init(reading:)) } catch { throw error.about(identifier) }
        guard let found else { throw damaged("the file is missing") }
        guard let record = found else { throw damaged("another version of the framework wrote it") }
        guard record.identifier == identifier else { throw damaged("it belongs to another text") }
        // A whole record, but not the one that was stored under this name.
        guard record.facts.digest == place.digest, record.rank == place.rank else { throw damaged("it holds another text or version") }
        return record
    }

    /// Reads a saved record; `nil` if it has another format.
    private convenience init?(reading bytes: UnsafeRawBufferPointer) {
        var reader = ByteReader(bytes)
        do throws(ByteReader.Foreign) {
            let identifier = try reader.text(), facts = try reader.facts()
            let text = try reader.text()
            let headers = reader.isAtEnd ? nil : try reader.table { reader throws(ByteReader.Foreign) in try reader.text() }
            guard reader.isAtEnd else { return nil }
            self.init(identifier: identifier, text: text, facts: facts, headers: headers)
        } catch {
            return nil
        }
    }
}

extension ByteWriter {
    fileprivate mutating func put(_ facts: TextRecord.Facts) {
        put(facts.version)
        put(facts.epoch)
        put(facts.digest)
        // The digests differ only because of a byte order mark.
        put(facts.fileDigest == facts.digest ? nil : facts.fileDigest) { $0.put($1) }
        put(facts.validator?.entityTag) { $0.put($1) }
        put(facts.validator?.lastModified) { $0.put($1) }
        put(facts.url) { $0.put($1) }
        put(facts.isVerified)
        put(facts.fetchedAt)
    }
}

extension ByteReader {
    fileprivate mutating func facts() throws(Foreign) -> TextRecord.Facts {
        func text(_ reader: inout ByteReader) throws(Foreign) -> String { try reader.text() }
        let version = try version(), epoch = try edition()
        let digest = try digest()
        let fileDigest = try optional { reader throws(Foreign) in try reader.digest() } ?? digest
        let tag = try optional(text), date = try optional(text), url = try optional(text)
        return TextRecord.Facts(
            version: version, epoch: epoch, digest: digest, fileDigest: fileDigest,
            validator: tag == nil && date == nil ? nil : Validator(entityTag: tag, lastModified: date), url: url,
            isVerified: try flag(), fetchedAt: try self.date())
    }
}
