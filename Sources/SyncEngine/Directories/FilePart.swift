#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

internal import StoreCore
internal import StoreFiles
internal import StorePlatform

/// The downloaded part of a file; a `FileTransfer` appends to it.
///
/// A part outlives the process: an interrupted download resumes from it as long as the list still has the same version of the file. The
/// bytes are hashed as they arrive. Only one task at a time may use a part.
public final class FilePart: Sendable {
    /// The point at which the transfer can resume; `nil` if it must start at the first byte.
    public let resumePoint: ResumePoint?

    /// The smallest size for which storing a validator is worthwhile.
    static let resumableSize = 32 * 1024

    private let path: String
    private let version: String
    private let limit: Int?
    private let names: PartNames
    private let places: TargetPlaces
    /// The permissions of the complete file.
    private let mode: UInt16
    /// The modification time of the complete file in seconds; `nil` keeps the time of its last write.
    private let modified: Int64?
    private let state: Lock<State>

    private struct State: Sendable {
        /// The stored bytes, with their item and validator as the note.
        var part: PartialFile
        /// Whether this transfer has set its first byte.
        var hasBegun = false
        var validator: String?
        var isAdopted = false
        /// The digest of the working file, computed by the transfer.
        var adoptedDigest: SHA256.Digest?
        /// Whether the part contains bytes of an earlier attempt.
        var isResumed = false
        var working: DirectoryHandle?
    }

    init(of item: some FileItem, in places: TargetPlaces) throws {
        // The key, because a pass discards the parts of all other keys.
        path = item.key.path
        version = item.version
        // No file reaches a size that does not fit into `Int`.
        limit = item.byteCount.map { Int(clamping: $0) }
        names = PartNames(path: path)
        self.places = places
        let mode = item.metadata?.boundedMode(places.metadata) ?? places.fileMode
        self.mode = mode
        modified = item.metadata?.boundedTime(places.metadata)
        // The owner needs read and write access under any mode of the installed file. Other users get no more access than that mode
        // allows.
        let file = try places.parts.writable(names.bytes) { [names] () throws(StoreError) in
            try WritableFile.unshared(names.bytes, in: places.parts, isCopied: false, mode: mode | 0o600)
        }
        let length = file.opened.size
        var part = PartialFile(
            file, length: length, note: names.memory, in: places.parts, mayHaveNote: places.mayHaveMemories.withLock { $0 })
        // A killed process may leave a validator without bytes. The restart must know it to remove it.
        let memory = try part.note(PartMemory.self)
        if length > 0, let memory, memory.path == path, memory.version == version, limit.map({ length <= $0 }) ?? true {
            resumePoint = length == limit ? nil : ResumePoint(offset: Int64(length), validator: memory.validator)
        } else {
            resumePoint = nil
        }
        state = Lock(State(part: part))
        // The pass flushes the bytes of an interrupted transfer at its end, because a list without digests cannot show that a later power
        // loss has torn them.
        places.touch(RelativePath(trusting: []), depth: 0)
    }

    // MARK: For transfers

    /// Sets the offset of the next appended byte; without this call, the first `append(_:)` begins at 0.
    ///
    /// - Parameters:
    ///   - offset: 0 for complete content, even if it has changed at the origin; ``ResumePoint/offset`` for the remaining bytes.
    ///   - validator: The origin's strong validator of this content; `nil` if it has none. Without a validator, the download cannot be
    ///     resumed.
    /// - Throws: ``SyncError/Code/transferMisused`` for any other offset; `StoreError` if the disk fails.
    public func begin(at offset: Int64 = 0, validator: String? = nil) throws {
        let counted = try state.withLock { state throws -> Int in
            let length = state.part.length
            guard offset == 0 || (offset == length && offset == resumePoint?.offset && !state.hasBegun) else {
                throw SyncError(
                    .transferMisused,
                    "cannot download “\(path.shownSafely)”: the transfer begins at byte \(offset), but the part has \(length) bytes and can be "
                        + "resumed at \(resumePoint.map { "byte \($0.offset)" } ?? "no byte"); begin at 0 or at the resume point")
            }
            // The bytes that this transfer has appended no longer count if it starts over.
            let discarded = state.hasBegun ? length : 0
            if offset == 0 { try restart(&state) } else { (state.isResumed, state.hasBegun) = (true, true) }
            state.validator = validator ?? (offset > 0 ? resumePoint?.validator : nil)
            return Int(offset) - discarded
        }
        if counted != 0 { SyncProgress.transferred(counted) }
    }

    /// Appends bytes.
    ///
    /// - Parameter bytes: The next bytes.
    /// - Throws: ``SyncError/Code/wrongContent`` if the file exceeds its listed size; `StoreError` if the disk fails.
    public func append(_ bytes: some ContiguousBytes) throws {
        let count = try bytes.withUnsafeBytes { bytes in
            try state.withLock { state throws -> Int in
                if !state.hasBegun { try restart(&state) }
                let length = state.part.length
                if let limit, bytes.count > limit - length {
                    throw SyncError.wrongContent(
                        path, "the origin sent more than the \(limit) bytes that the list gives", isWorthRetrying: state.isResumed)
                }
                // Stores the item and validator before the bytes, so that the bytes never belong to an unknown item.
                if !state.part.mayHaveNote, bytes.count >= Self.resumableSize - length, let validator = state.validator {
                    places.mayHaveMemories.withLock { $0 = true }
                    try state.part.remember(PartMemory(path: path, version: version, validator: validator))
                }
                try places.probe?(.writes(path))
                try state.part.append(bytes)
                return bytes.count
            }
        }
        SyncProgress.transferred(count)
    }

    /// Returns a path for a transfer that writes a file itself, in a directory of its own that is the same for every attempt.
    ///
    /// The transfer's own resume data can be kept in the same directory. Once the file is complete, ``adoptWorkingFile(sha256:)`` accepts
    /// it. Where the system can name an open directory, as in `/proc` on Linux, the path leads to the directory by its descriptor. It then
    /// leads nowhere else, even if a link takes the directory's place, and is valid until the transfer returns.
    ///
    /// - Returns: The location of the file, which may not exist yet.
    /// - Throws: `StoreError` if the disk fails; ``SyncError/Code/foreignOwner`` if the directory belongs to another user.
    public func workingFile() throws -> URL {
        // The transfer itself resumes the data that an earlier attempt left there.
        if try places.parts.status(of: names.directory) != nil { state.withLock { $0.isResumed = true } }
        let directory = try places.parts.makeDirectory(names.directory)
        try directory.verifyOwner(beside: places.own)
        state.withLock { $0.working = directory }
        return URL(filePath: directory.lastingPath ?? directory.path, directoryHint: .isDirectory).appending(
            path: PartNames.workingFile, directoryHint: .notDirectory)
    }

    /// Accepts the file at `workingFile()` as the complete content when the transfer returns.
    ///
    /// The item fails if the file does not exist.
    ///
    /// - Parameter sha256: The digest that the transfer has computed while receiving the bytes, as 64 hexadecimal digits. Without it, the
    ///   target reads the complete file to compute the digest.
    public func adoptWorkingFile(sha256: String? = nil) {
        state.withLock { state in
            state.isAdopted = true
            state.adoptedDigest = sha256.flatMap { SHA256.Digest(hex: Array($0.lowercased().utf8)) }
            state.hasBegun = true
        }
    }

    // MARK: For the target

    /// Returns whether size and digest prove the part complete, so that no transfer is needed.
    func isWholeAlready(digest: SHA256.Digest?) throws -> Bool {
        try state.withLock { state throws -> Bool in
            let length = state.part.length
            guard let digest, length > 0 || limit == 0, limit ?? length == length, try state.part.digest() == digest else { return false }
            state.hasBegun = true
            return true
        }
    }

    /// A complete download, ready to be installed.
    struct Whole: Sendable {
        /// The directory of the file, unless it is the directory of all parts.
        var directory: DirectoryHandle?
        var name: String
        var digest: SHA256.Digest
        var stamp: FileStamp
        /// The open file; `nil` for a moved file, which is only linked.
        var file: WritableFile?
    }

    /// Checks size and digest; discards a part with wrong content unless it is only too short.
    func finish(digest wanted: SHA256.Digest?) throws -> Whole {
        // A transfer that appends nothing produces an empty file.
        if !state.withLock({ $0.hasBegun }) { try begin() }
        let (isAdopted, adoptedDigest, part) = state.withLock { ($0.isAdopted, $0.adoptedDigest, $0.part) }
        let directory = try isAdopted ? adoptedDirectory() : nil
        let file = try directory?.writable(PartNames.workingFile) ?? part.file
        var status = try file.status()
        if !isAdopted, status.size > part.length {
            // A partially failed write leaves bytes that the digest does not cover.
            try file.truncate(to: part.length)
            status = try file.status()
        }
        if status.permissions != mode { try file.setPermissions(mode) }
        if let modified {
            try file.setModificationTime(modified)
            status = try file.status()
        }
        let stamp = FileStamp(status)
        let digest: SHA256.Digest
        if let adoptedDigest {
            digest = adoptedDigest
        } else if isAdopted {
            digest = try file.digest(of: stamp.size)
        } else {
            digest = try state.withLock { state throws in try state.part.digest() }
        }
        let whole = Whole(
            directory: directory, name: isAdopted ? PartNames.workingFile : names.bytes, digest: digest, stamp: stamp, file: file)
        var reason: String?
        if let limit, limit != whole.stamp.size { reason = "it has \(whole.stamp.size) bytes, not \(limit) as listed" }
        if reason == nil, let wanted, wanted != whole.digest { reason = "its digest is \(whole.digest), not \(wanted) as listed" }
        if let reason {
            // A part that is only too short can still be resumed if its validator is stored.
            let isResumed = state.withLock { $0.isResumed }
            let isShort = !isAdopted && whole.stamp.size < limit ?? 0
            if !isShort { try discard() }
            throw SyncError.wrongContent(path, reason, isWorthRetrying: isResumed || (isShort && part.mayHaveNote))
        }
        return whole
    }

    private func adoptedDirectory() throws -> DirectoryHandle {
        // Opening the file would create a missing one.
        guard let directory = try state.withLock({ $0.working }) ?? places.parts.directory(names.directory),
            try directory.status(of: PartNames.workingFile) != nil
        else {
            throw SyncError(
                .transferMisused,
                "cannot install “\(path.shownSafely)”: the transfer adopted a working file that does not exist; write the file to the "
                    + "URL that workingFile() returns")
        }
        return directory
    }

    /// A staged file: enough to find the file again, without an open descriptor.
    struct Staged: Sendable {
        fileprivate var names: PartNames
        fileprivate var isAdopted: Bool
        fileprivate(set) var digest: SHA256.Digest
        fileprivate var stamp: FileStamp
        fileprivate var mode: UInt16

        /// Opens the file again to install it, unless it has changed since.
        func reopen(in places: TargetPlaces) throws -> Whole {
            let working = try isAdopted ? places.parts.directory(names.directory) : nil
            let directory = isAdopted ? working : places.parts
            let name = isAdopted ? PartNames.workingFile : names.bytes
            guard let directory, try directory.status(of: name) != nil else { throw SyncError.changedLocally(.contents) }
            let file = try directory.writable(name)
            let status = try file.status()
            if status.permissions != mode { try file.setPermissions(mode) }
            guard FileStamp(status) == stamp else { throw SyncError.changedLocally(.contents) }
            return Whole(directory: working, name: name, digest: digest, stamp: stamp, file: file)
        }

        /// Removes the staged file, or the remains of its part once it is installed.
        func cleanUp(in places: TargetPlaces) throws {
            try places.parts.remove(names.memory)
            try places.parts.remove(names.bytes)
            try places.removeWorkingDirectory(names.directory)
        }
    }

    /// Keeps the complete file in the directory of parts.
    func stage(_ whole: Whole) -> Staged {
        Staged(names: names, isAdopted: whole.directory != nil, digest: whole.digest, stamp: whole.stamp, mode: mode)
    }

    /// Discards the stored bytes, their validator, and the working directory, so that a transfer begins at zero.
    func discard() throws {
        try state.withLock { state throws in try restart(&state) }
        try places.removeWorkingDirectory(names.directory)
    }

    /// Removes the remains of the part once its file is installed.
    func cleanUp() throws {
        let isAdopted = try state.withLock { state throws -> Bool in
            try state.part.forget()
            return state.isAdopted
        }
        if isAdopted {
            try places.parts.remove(names.bytes)
            try places.removeWorkingDirectory(names.directory)
        }
    }

    private func restart(_ state: inout State) throws {
        try state.part.restart()
        state = State(part: state.part, hasBegun: true)
    }
}

/// The names of a part's files: of fixed length, and not chosen by the list.
struct PartNames: Hashable, Sendable {
    let bytes: String
    let memory: String
    let directory: String
    static let workingFile = "file"

    init(path: String) {
        bytes = String(SHA256.digest(of: Array(path.utf8)).hex.prefix(32))
        memory = bytes + ".item"
        directory = bytes + ".d"
    }
}

/// The item and validator to which the bytes of a part belong.
struct PartMemory: Codable, Hashable, Sendable {
    var path: String
    var version: String
    var validator: String
}

extension DirectoryHandle {
    /// Opens a complete file of a part, and once more with write access, which the permissions of an installed file may lack.
    fileprivate func writable(_ name: String, open: () throws(StoreError) -> WritableFile) throws(StoreError) -> WritableFile {
        do throws(StoreError) {
            return try open()
        } catch  where error.isDenial {
            guard let file = try OpenFile(reading: name, in: self) else { throw error }
            try file.grantOwnerAccess()
            return try open()
        }
    }

    fileprivate func writable(_ name: String) throws(StoreError) -> WritableFile {
        try writable(name) { () throws(StoreError) in try WritableFile(name, in: self) }
    }
}
