/// A key as the file system knows it: the canonical JSON that is stored, and the file name made of its digest.
struct FileKey: Sendable {
    /// The key's canonical JSON; equal for equal keys.
    let json: [UInt8]
    /// The SHA-256 of `json`.
    let digest: SHA256.Digest
    /// The name of the record's file.
    let fileName: String

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
        fileName = RecordFiles.name(of: digest)
    }
}
