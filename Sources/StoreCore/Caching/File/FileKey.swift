/// A key in its stored form: its canonical JSON, and the file name derived from the JSON's digest.
struct FileKey: Sendable {
    /// The key's canonical JSON; equal for equal keys.
    let json: [UInt8]
    /// The SHA-256 of `json`.
    let digest: SHA256.Digest
    /// The name of the record's file.
    let fileName: String

    /// Encodes a key.
    ///
    /// - Throws: ``StoreError/Code/unwritableRecord`` if the key cannot be encoded.
    init(_ param: some Encodable) throws(StoreError) {
        do {
            json = try CanonicalJSON.encode(param)
        } catch {
            throw StoreError(
                .unwritableRecord, "encoding the key \(param) of a record; let its type encode every value that is used as a key",
                underlyingError: error)
        }
        digest = SHA256.digest(of: json)
        fileName = RecordFiles.name(of: digest)
    }
}
