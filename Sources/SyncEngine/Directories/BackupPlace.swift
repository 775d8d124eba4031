#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif
internal import StoreCore
internal import StorePlatform

/// The directory that receives the files which a pass replaces or removes, under their own paths.
///
/// Every file is opened from the descriptor of the directory, without following a link.
final class BackupPlace: Sendable {
    private let root: DirectoryHandle
    private let places: TargetPlaces
    private let mode: UInt16?
    /// The name of a file that is not complete yet. Several targets may share a backup, and the lock of each protects its own name.
    private let temporaryName: String
    /// Held while a file is stored, because two files may need the same temporary name.
    private let storing = Lock(())

    /// Opens the directory, and creates it if it is missing.
    ///
    /// - Throws: ``SyncError/Code/foreignOwner`` if the directory belongs to another user; ``SyncError/Code/unsafeName`` if it contains the
    ///   target, or is the target or in the target's own directory.
    init(_ url: URL, of places: TargetPlaces, modes: FileModes) throws {
        let directory = Directory(path: url.path(percentEncoded: false))
        if try DirectoryHandle(opening: directory) == nil { try directory.create(durability: .crash, mode: modes.directories ?? 0o777) }
        guard let root = try DirectoryHandle(opening: directory) else { throw SyncError.vanished(directory.path) }
        let path = url.resolvingSymlinksInPath().pathComponents
        let target = URL(filePath: places.root.path, directoryHint: .isDirectory).resolvingSymlinksInPath()
        // A folding disk treats all spellings of the reserved name as equal.
        let isReserved = path.contains { NameFolding.all.fold($0) == RelativePath.reserved }
        guard !isReserved, !target.pathComponents.starts(with: path), !places.root.isReached(by: directory) else {
            throw SyncError(
                .unsafeName,
                "cannot keep backups in \(directory.path.shownSafely): a pass changes the files there itself; choose another directory")
        }
        try root.verifyOwner(beside: places.own)
        temporaryName = ".storehouse-" + PartNames(path: "\(try places.root.status().inode) \(target.path(percentEncoded: false))").bytes
        self.root = root
        self.places = places
        mode = modes.directories
    }

    /// Stores a file under its path, in place of an earlier one; the file also keeps its name in the target.
    ///
    /// On the same disk, the file gets a second name. On another disk, it is copied, which takes a while: the caller has to check afterward
    /// that the file is still the same.
    func store(_ name: String, in directory: DirectoryHandle, as path: RelativePath) throws {
        guard let last = path.parts.last, try directory.status(of: name) != nil else { return }
        try storing.withLock { _ throws in
            var folder = root
            for part in path.parts.dropLast() {
                try putAside(part, in: folder) { $0 == .regular }
                folder = try folder.makeDirectory(part, durability: places.durability, mode: mode)
            }
            try putAside(last, in: folder) { $0 == .directory }
            try root.remove(temporaryName)
            var isCopied = false
            do throws(StoreError) {
                try directory.link(name, to: root, as: temporaryName)
            } catch {
                guard !error.isFullDisk else { throw error }
                try copy(name, in: directory)
                isCopied = true
            }
            try places.probe?(.backsUp(path.key.path))
            try root.rename(temporaryName, to: folder, as: last)
            // On one disk, no later change of a name is kept without this one.
            if isCopied, places.durability == .power { try folder.synchronize() }
            // If both names already belonged to one file, the system has not removed the first (`rename(2)`).
            try root.remove(temporaryName)
        }
    }

    /// Gives an earlier backup that is in the way a free name, because a path may have been a file, and then a directory.
    private func putAside(_ name: String, in folder: DirectoryHandle, if isInTheWay: (FileKind) -> Bool) throws {
        guard let found = try folder.status(of: name), isInTheWay(found.kind) else { return }
        var number = 1
        while try folder.status(of: "\(name)~\(number)") != nil { number += 1 }
        try folder.rename(name, to: folder, as: "\(name)~\(number)")
    }

    private func copy(_ name: String, in directory: DirectoryHandle) throws {
        guard let source = try OpenFile(reading: name, in: directory) else { return }
        do {
            let copy = try WritableFile(temporaryName, in: root)
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 16)
            defer { buffer.deallocate() }
            var offset = 0
            while true {
                try Task.checkCancellation()
                let count = try source.read(into: buffer, at: offset)
                guard count > 0 else { break }
                try copy.write(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer).prefix(count)), at: offset)
                offset += count
            }
            try copy.setPermissions(try source.status().permissions & 0o777)
            try copy.synchronize()
        } catch {
            // An incomplete copy would keep a full disk full. The error of the copy is the one to report.
            _ = try? root.remove(temporaryName)
            throw error
        }
    }
}
