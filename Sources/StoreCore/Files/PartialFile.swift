#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif
package import StoreCore
package import StorePlatform

/// The first bytes of a file that arrives in several attempts, perhaps of several processes, and a note about them in a second file.
///
/// The note says to which content the bytes belong. It is written before the bytes and removed before them, because bytes without a note are
/// discarded, but bytes with a stale note would be trusted. The owner compares the complete file with its size and digest, and renames it.
package struct PartialFile: Sendable {
    /// The file of the bytes; after a failed write, it may be longer than `length`.
    package let file: WritableFile
    /// The number of bytes, from the beginning of the file without a gap.
    package private(set) var length: Int
    /// Whether there may be a note; `note(_:)` finds out.
    package private(set) var mayHaveNote: Bool
    private let noteName: String
    private let folder: DirectoryHandle
    private let isHashed: Bool
    /// The hash of all bytes; `nil` if they were not read or hashed yet.
    private var hash: SHA256?

    /// Takes over the file of an earlier attempt, or an empty file. The open file has no other name and no other user.
    package init(
        _ file: WritableFile, length: Int, note: String, in folder: DirectoryHandle, mayHaveNote: Bool = true, isHashed: Bool = true
    ) {
        (self.file, self.length, noteName, self.folder) = (file, length, note, folder)
        (self.mayHaveNote, self.isHashed) = (mayHaveNote, isHashed)
    }

    /// Opens or creates a file, readable and writable for this user only, and locks it. The owner unlocks it in the end. Throws
    /// `EWOULDBLOCK` if another download is writing the same file.
    package static func locked(
        _ name: String, note: String, in folder: DirectoryHandle, isHashed: Bool
    ) throws(StoreError) -> PartialFile {
        for _ in 0..<32 {
            // No lock means that another download has renamed the file to its target between opening and locking.
            guard let file = try FileLock(name, in: folder, patience: .zero).take() else { continue }
            let status = try file.status()
            if status.linkCount <= 1 { return PartialFile(file, length: status.size, note: note, in: folder, isHashed: isHashed) }
            // The file has another hard link, such as a backup. Writing in place would change the backup too.
            try folder.remove(name)
        }
        // The directory itself was renamed.
        throw .fileSystem("opening", path: folder.path(of: name), errno: ESTALE)
    }

    // MARK: The bytes

    /// Appends bytes.
    package mutating func append(_ bytes: UnsafeRawBufferPointer) throws(StoreError) {
        // Some watches have an `Int` of 32 bits.
        guard bytes.count <= Int.max - length else { throw .fileSystem("writing", path: file.path, errno: EFBIG) }
        if isHashed, hash == nil { _ = try wholeHash() }
        try file.write(bytes, at: length)
        hash?.update(bytes)
        length += bytes.count
    }

    /// Returns the digest of all bytes; reads only those that were not hashed as they arrived, and only once.
    package mutating func digest() throws(StoreError) -> SHA256.Digest { try wholeHash().digest() }

    private mutating func wholeHash() throws(StoreError) -> SHA256 {
        if let hash { return hash }
        var whole = SHA256()
        _ = try whole.update(from: 0, to: length) { buffer, offset throws(StoreError) in try file.read(into: buffer, at: offset) }
        hash = whole
        return whole
    }

    /// Removes the note, and then the bytes.
    package mutating func restart() throws(StoreError) {
        try forget()
        if length > 0 { try file.truncate(to: 0) }
        (length, hash) = (0, isHashed ? SHA256() : nil)
    }

    // MARK: The note

    /// Reads the note; `nil` if it is missing or damaged.
    ///
    /// If the note has an intact header of another version, it is removed, as the thrown ``StoreError/Code/unreadableRecord`` states, so
    /// that the next call returns `nil`.
    package mutating func note<Note: Decodable>(_ type: Note.Type) throws(StoreError) -> Note? {
        guard mayHaveNote else { return nil }
        mayHaveNote = try folder.status(of: noteName)?.kind == .regular
        guard mayHaveNote else { return nil }
        var reader = SealedFile.Reader(.part, in: folder, limit: 65_536)
        do throws(StoreError) {
            return try reader.read(noteName) { try? JSONDecoder().decode(type, from: Data($0)) } ?? nil
        } catch {
            guard error.code == .unreadableRecord else { throw error }
            guard let version = error.underlyingError as? OtherVersion else { return nil }
            // The download can begin again. The user of an app could not remove the file.
            try forget()
            throw StoreError(version, of: folder.path(of: noteName), remedy: "it was removed; download again to start over")
        }
    }

    /// Writes the note in one step.
    package mutating func remember(_ note: some Encodable) throws(StoreError) {
        let json: Data
        do { json = try JSONEncoder().encode(note) } catch {
            throw StoreError(.unwritableRecord, "encoding \(noteName)", underlyingError: error)
        }
        try SealedFile.part.write(Array(json), as: noteName, in: folder)
        mayHaveNote = true
    }

    /// Removes the note.
    package mutating func forget() throws(StoreError) {
        guard mayHaveNote else { return }
        try folder.remove(noteName)
        mayHaveNote = false
    }
}
