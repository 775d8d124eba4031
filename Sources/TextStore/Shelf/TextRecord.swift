internal import Foundation
import StoreCore

/// A text as it was fetched, with all that is known of it; saved as one file that is never written again.
struct TextRecord: Hashable, Sendable {
    var identifier: String
    var text: String
    var facts: Facts

    /// What is known of the text.
    struct Facts: Hashable, Codable, Sendable {
        var version: SemanticVersion?
        var epoch: UInt64 = 0
        /// The SHA-256 of the text's UTF-8.
        var digest: String
        /// The SHA-256 of the bytes as the origin sent them, a byte order mark included.
        var fileDigest: String
        var validator: Validator?
        /// The address that the validator belongs to.
        var url: String?
        var isVerified: Bool
        var fetchedAt: Date
    }

    var rank: Rank { Rank(epoch: facts.epoch, version: facts.version) }

    private struct Head: Codable {
        var identifier: String
        var facts: Facts
    }

    /// A name that no other record has: the identifier's digest, and 64 random bits.
    static func makeName(_ identifier: String) -> String {
        let random = String(UInt64.random(in: .min ... .max), radix: 16)
        return "\(FileNames.digest(of: identifier))-\(String(repeating: "0", count: 16 - random.count))\(random).text"
    }

    /// Whether a file's name is that of a record.
    static func isName(_ name: String) -> Bool {
        let name = Array(name.utf8)
        guard name.count == 64 + 1 + 16 + 5, name[64] == UInt8(ascii: "-"), name.suffix(5).elementsEqual(".text".utf8) else { return false }
        return (name[..<64] + name[65..<81]).allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
    }

    func write(as name: String, in directory: Directory, options: FileWriteOptions) throws(TextStoreError) {
        let head: Data
        do { head = try JSONEncoder().encode(Head(identifier: identifier, facts: facts)) } catch {
            throw TextStoreError(
                .fileSystem, identifier: identifier, "encoding what is known of the text: this is a defect of the framework",
                underlyingError: error)
        }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(8 + head.count + text.utf8.count)
        withUnsafeBytes(of: UInt64(head.count).littleEndian) { bytes.append(contentsOf: $0) }
        bytes.append(contentsOf: head)
        bytes.append(contentsOf: text.utf8)
        do throws(TextStoreError) {
            try SealedFile.write(bytes, as: name, in: directory, options: options)
        } catch {
            throw error.about(identifier)
        }
    }

    /// Reads a record.
    ///
    /// - Throws: ``TextStoreError/Code/damagedFile`` where there is none, too: a name was given because there was one.
    static func read(_ name: String, of identifier: String, in directory: Directory) throws(TextStoreError) -> TextRecord {
        func damaged(_ reason: String) -> TextStoreError {
            TextStoreError(
                .damagedFile, identifier: identifier, "reading \(directory.path(of: name)): \(reason); the text is fetched again")
        }
        let payload: ArraySlice<UInt8>?
        do throws(TextStoreError) { payload = try SealedFile.read(name, in: directory) } catch { throw error.about(identifier) }
        guard let payload else { throw damaged("the file is missing") }
        guard payload.count >= 8 else { throw damaged("it ends within its head") }
        let size = payload.prefix(8).reversed().reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
        let rest = payload.dropFirst(8)
        guard size <= UInt64(rest.count) else { throw damaged("it ends within its head") }
        let head: Head
        do { head = try JSONDecoder().decode(Head.self, from: Data(rest.prefix(Int(size)))) } catch {
            throw damaged("another version of the framework wrote it")
        }
        guard head.identifier == identifier else { throw damaged("it is of another text") }
        guard let text = String(validating: rest.dropFirst(Int(size)), as: UTF8.self) else { throw damaged("it is not UTF-8") }
        return TextRecord(identifier: identifier, text: text, facts: head.facts)
    }
}

/// Names of files for names of anything: any string has one, it leads nowhere else, and two strings never share one.
enum FileNames {
    /// The SHA-256 of a name in the composed normal form, so that two spellings of one string are one name.
    static func digest(of name: String) -> String {
        // A string in a list, because the encoder wants an array or an object; it cannot fail for one.
        let composed = name.precomposedStringWithCanonicalMapping
        return SHA256.digest(of: Array(composed.utf8)).hex
    }
}
