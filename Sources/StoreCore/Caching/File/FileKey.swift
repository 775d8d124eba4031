/// A key as the file system knows it: the canonical JSON that is stored, and the file name made of its digest.
struct FileKey: Sendable {
    /// The key's canonical JSON; equal for equal keys.
    let json: [UInt8]
    /// The SHA-256 of ``json``.
    let digest: SHA256.Digest

    /// Encodes a key.
    ///
    /// - Throws: ``StoreError/Code/unwritableRecord`` where the key does not encode.
    init(_ param: some Encodable) throws(StoreError) {
        do {
            json = try CanonicalJSON.encode(param)
        } catch {
            throw StoreError(
                .unwritableRecord, "encoding the key \(param) of a record; let its type encode every value that is used as a key",
                underlyingError: error)
        }
        digest = SHA256.digest(of: json)
    }

    /// The name of the record's file: 64 lower-case hexadecimal digits and `.record`.
    var fileName: String { FileKey.fileName(of: digest) }

    static func fileName(of digest: SHA256.Digest) -> String { digest.hex + ".record" }

    /// The digest in a file's name; `nil` where the name is not that of a record, and so not ours.
    static func digest(fileName: String) -> SHA256.Digest? {
        let name = fileName.utf8
        guard name.count == 71, name.suffix(7).elementsEqual(".record".utf8) else { return nil }
        return SHA256.Digest(hex: name.prefix(64))
    }

    /// Tells our temporary files from those of others.
    static let temporaryKind = "record"
}
