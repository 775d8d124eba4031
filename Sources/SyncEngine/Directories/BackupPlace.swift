internal import StoreCore
internal import StorePlatform

/// The directory that receives the files which a pass replaces or removes, under their own paths.
///
/// Every file is opened from the descriptor of the directory, without following a link.
final class BackupPlace: Sendable {
    private let root: DirectoryHandle
    private let mode: UInt16?
    /// Held while a file is stored, because two files may need the same temporary name.
    private let storing = Lock(())

    private static let temporaryName = ".storehouse-backup"

    /// Opens the directory, and creates it if it is missing.
    ///
    /// - Throws: ``SyncError/Code/foreignOwner`` if the directory belongs to another user; ``SyncError/Code/unsafeName`` if it is the target
    ///   or in the target's own directory.
    init(_ directory: Directory, of places: TargetPlaces, modes: FileModes) throws {
        if try DirectoryHandle(opening: directory) == nil { try directory.create(durability: .crash, mode: modes.directories ?? 0o777) }
        guard let root = try DirectoryHandle(opening: directory) else { throw SyncError.vanished(directory.path) }
        let isOwn = directory.path.split(separator: "/").contains { $0 == RelativePath.reserved }
        guard !isOwn, !places.root.isReached(by: directory) else {
            throw SyncError(
                .unsafeName,
                "cannot keep backups in \(directory.path.shownSafely): a pass changes the files there itself; choose another directory")
        }
        try root.verifyOwner(beside: places.own)
        self.root = root
        mode = modes.directories
    }

    /// Stores a file under its path, in place of an earlier one; the file also keeps its name in the target.
    ///
    /// On the same disk, the file gets a second name. On another disk, it is copied.
    func store(_ name: String, in directory: DirectoryHandle, as path: RelativePath) throws {
        guard let last = path.parts.last, try directory.status(of: name) != nil else { return }
        var folder = root
        for part in path.parts.dropLast() { folder = try folder.makeDirectory(part, mode: mode) }
        try storing.withLock { _ throws in
            try root.remove(Self.temporaryName)
            do throws(StoreError) {
                try directory.link(name, to: root, as: Self.temporaryName)
            } catch {
                guard !error.isFullDisk else { throw error }
                try copy(name, in: directory)
            }
            try root.rename(Self.temporaryName, to: folder, as: last)
            // If both names already belonged to one file, the system has not removed the first (`rename(2)`).
            try root.remove(Self.temporaryName)
        }
    }

    private func copy(_ name: String, in directory: DirectoryHandle) throws {
        guard let source = try OpenFile(reading: name, in: directory) else { return }
        let copy = try WritableFile(Self.temporaryName, in: root)
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 16)
        defer { buffer.deallocate() }
        var offset = 0
        while true {
            let count = try source.read(into: buffer, at: offset)
            guard count > 0 else { break }
            try copy.write(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer).prefix(count)), at: offset)
            offset += count
        }
        try copy.setPermissions(try source.status().permissions & 0o777)
        try copy.synchronize()
    }
}
