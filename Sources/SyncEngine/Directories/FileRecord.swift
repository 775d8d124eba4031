internal import StoreFiles
internal import StorePlatform

/// The size, time and inode of a file; a cheap test of whether its content may have changed.
struct FileStamp: Hashable, Sendable {
    var size: Int
    /// The modification time in nanoseconds since 1970.
    var modified: Int64
    var inode: UInt64
}

extension FileStamp {
    init(_ status: FileStatus) {
        self.init(size: status.size, modified: status.modified, inode: status.inode)
    }
}

/// The journal's record of an installed file.
struct FileRecord: Hashable, Sendable {
    /// The version in the list from which the file was downloaded.
    var version: String
    var digest: SHA256.Digest
    var stamp: FileStamp
    /// The previous record of the path, as long as the previous file may still be in place; at most one, and itself without one.
    var before: [FileRecord] = []

    /// Returns the record that matches a stamp, this one or the previous one; `nil` if the file was touched since.
    func matching(_ stamp: FileStamp) -> FileRecord? { self.stamp == stamp ? self : before.first { $0.stamp == stamp } }

    /// Returns the record that matches a digest, this one or the previous one; `nil` if the file was edited.
    func matching(_ digest: SHA256.Digest) -> FileRecord? { self.digest == digest ? self : before.first { $0.digest == digest } }

    /// Returns whether a file of this size may have the content of this record or of the previous one.
    func mayHave(size: Int) -> Bool { stamp.size == size || before.contains { $0.stamp.size == size } }
}

extension FileRecord {
    func write(to writer: inout ByteWriter) {
        writer.put(stamp.size)
        writer.put(UInt64(bitPattern: stamp.modified))
        writer.put(stamp.inode)
        writer.put(digest)
        // Most lists use the digest as version.
        writer.put(version == digest.hex ? nil : version) { $0.put($1) }
    }

    init(reading reader: inout ByteReader) throws(ByteReader.Foreign) {
        let size = try reader.int()
        guard size >= 0 else { throw ByteReader.Foreign() }
        let stamp = FileStamp(size: size, modified: Int64(bitPattern: try reader.number()), inode: try reader.number())
        let digest = try reader.digest()
        let version = try reader.optional { reader throws(ByteReader.Foreign) in try reader.text() }
        self.init(version: version ?? digest.hex, digest: digest, stamp: stamp)
    }
}
