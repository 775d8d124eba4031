public import Foundation
internal import StoreCore

/// The part of a file that has arrived; a `FileTransfer` appends to it.
///
/// It outlives the process: what broke off goes on from here, as long as the list still has the same version of the file. The bytes are
/// hashed as they come. To be used by one task at a time.
public final class FilePart: Sendable {
    /// Where the transfer can go on; `nil` where it must begin with the first byte.
    public let resumePoint: ResumePoint?

    /// How much must be there before it is worth the while to remember where it came from.
    static let resumableSize = 32 * 1024

    private let path: String
    private let version: String
    private let limit: Int?
    private let names: PartNames
    private let places: TargetPlaces
    private let file: WritableFile
    private let state: Lock<State>

    private struct State: Sendable {
        /// How many bytes are there.
        var length: Int
        /// Whether this transfer has said where it begins.
        var hasBegun = false
        var validator: String?
        /// Whether it is written down what the bytes belong to.
        var isRemembered: Bool
        /// The hash of all that is there; `nil` where it has not been read yet.
        var hash: SHA256?
        var isAdopted = false
        /// The digest of the working file as the transfer has computed it.
        var adoptedDigest: SHA256.Digest?
        /// Whether bytes of an earlier attempt are in it.
        var isResumed = false
    }

    /// Opens the part of an item.
    init(of item: some FileItem, in places: TargetPlaces) throws {
        path = item.path
        version = item.version
        // A size that does not fit is one that no file reaches.
        limit = item.byteCount.map { Int(clamping: $0) }
        names = PartNames(path: item.path)
        self.places = places
        // Read-write for the owner, whatever mode the file gets with its name; no other user reads more than that one allows.
        let file = try WritableFile.unshared(names.bytes, in: places.parts, isCopied: false, mode: places.fileMode | 0o600)
        self.file = file
        let length = try file.status().size
        let memory = length > 0 ? try PartMemory.read(names.memory, in: places.parts) : nil
        if let memory, memory.path == path, memory.version == version, limit.map({ length <= $0 }) ?? true {
            resumePoint = length == limit ? nil : ResumePoint(offset: Int64(length), validator: memory.validator)
        } else {
            resumePoint = nil
        }
        state = Lock(State(length: length, isRemembered: memory != nil))
    }

    // MARK: For transfers

    /// Says at which byte the bytes begin that are appended next; nothing needs to be said before the first byte of a whole file.
    ///
    /// - Parameters:
    ///   - offset: 0 where the whole content comes, also where it has changed at the origin; ``ResumePoint/offset`` where the rest comes.
    ///   - validator: What the origin tells this content apart by; `nil` where there is nothing strong enough, and then the transfer cannot
    ///     be resumed.
    /// - Throws: ``SyncError/Code/transferMisused`` for any other byte; `StoreError` where the disk fails.
    public func begin(at offset: Int64 = 0, validator: String? = nil) throws {
        let counted = try state.withLock { state throws -> Int in
            guard offset == 0 || (offset == state.length && offset == resumePoint?.offset && !state.hasBegun) else {
                throw SyncError(
                    .transferMisused,
                    "downloading “\(path.shownSafely)”: the transfer begins at byte \(offset), and \(state.length) bytes are there that can be "
                        + "resumed at \(resumePoint.map { "\($0.offset)" } ?? "no byte"); begin at 0, or where the resume point says")
            }
            if offset == 0 {
                try restart(&state)
            } else if state.hash == nil {
                state.hash = try hashOfWhatIsThere(state.length)
                state.isResumed = true
            }
            state.hasBegun = true
            state.validator = validator ?? (offset > 0 ? resumePoint?.validator : nil)
            return Int(offset)
        }
        if counted > 0 { SyncProgress.transferred(counted) }
    }

    /// Appends bytes.
    ///
    /// - Parameter bytes: The next bytes.
    /// - Throws: ``SyncError/Code/wrongContent`` where the file becomes larger than the list says; `StoreError` where the disk fails.
    public func append(_ bytes: some ContiguousBytes) throws {
        let count = try bytes.withUnsafeBytes { bytes in
            try state.withLock { state throws -> Int in
                if !state.hasBegun {
                    try restart(&state)
                    state.hasBegun = true
                }
                if let limit, bytes.count > limit - state.length {
                    throw SyncError.wrongContent(
                        path, "more than the \(limit) bytes came that the list announces", isWorthRetrying: state.isResumed)
                }
                let length = state.length + bytes.count
                // First what the bytes belong to, then the bytes: never the other way round.
                if !state.isRemembered, length >= Self.resumableSize, let validator = state.validator {
                    try PartMemory(path: path, version: version, validator: validator).write(names.memory, in: places.parts)
                    state.isRemembered = true
                }
                try places.probe?(.writes(path))
                try file.write(bytes, at: state.length)
                state.hash?.update(bytes)
                state.length = length
                return bytes.count
            }
        }
        SyncProgress.transferred(count)
    }

    /// A place for a transfer that writes files itself: a name, in a directory of its own, that stays the same from attempt to attempt.
    ///
    /// What such a transfer keeps beside the file, to resume by, stays there too. Once the file is whole, ``adoptWorkingFile(sha256:)`` takes it.
    ///
    /// - Returns: The file's place; there may be nothing yet.
    /// - Throws: `StoreError` where the disk fails.
    public func workingFile() throws -> URL {
        // What an earlier attempt has left there is resumed by the transfer itself.
        if try places.parts.status(of: names.directory) != nil { state.withLock { $0.isResumed = true } }
        let directory = try places.parts.makeDirectory(names.directory)
        return URL(filePath: directory.path, directoryHint: .isDirectory).appending(
            path: PartNames.workingFile, directoryHint: .notDirectory)
    }

    /// Takes the file at `workingFile()` for the whole content, once the transfer returns; the item fails if there is no such file.
    ///
    /// - Parameter sha256: The digest that the transfer has computed from the bytes as they arrived, as 64 hexadecimal digits. Without it, the
    ///   target reads the whole file to compute it.
    public func adoptWorkingFile(sha256: String? = nil) {
        state.withLock { state in
            state.isAdopted = true
            state.adoptedDigest = sha256.flatMap { SHA256.Digest(hex: Array($0.lowercased().utf8)) }
            state.hasBegun = true
        }
    }

    // MARK: For the target

    /// Whether all bytes are there already, by size and digest, so that nothing needs to be transferred.
    func isWholeAlready(digest: SHA256.Digest?) throws -> Bool {
        try state.withLock { state throws -> Bool in
            guard let digest, state.length > 0 || limit == 0, limit.map({ $0 == state.length }) ?? true else { return false }
            // Kept for a transfer that goes on from here: the part is read once.
            let hash = try state.hash ?? hashOfWhatIsThere(state.length)
            state.hash = hash
            guard hash.digest() == digest else { return false }
            state.hasBegun = true
            return true
        }
    }

    /// What has arrived, ready to be given its name.
    struct Whole: Sendable {
        /// The directory that it stands in, where it is not the one of all parts.
        var directory: String?
        var name: String
        var digest: SHA256.Digest
        var stamp: FileStamp
        var file: WritableFile
    }

    /// Checks size and digest.
    ///
    /// - Throws: ``SyncError/Code/wrongContent``; what is there is then thrown away.
    func finish(digest wanted: SHA256.Digest?) throws -> Whole {
        let (isAdopted, adoptedDigest, known) = state.withLock { ($0.isAdopted, $0.adoptedDigest, $0.hasBegun ? $0.hash : SHA256()) }
        let whole: Whole
        if isAdopted {
            guard let directory = try places.parts.directory(names.directory) else {
                throw SyncError(
                    .transferMisused, "downloading “\(path.shownSafely)”: the transfer has adopted a file that it never asked a place for")
            }
            let adopted = try WritableFile(PartNames.workingFile, in: directory)
            let status = try adopted.status()
            if status.permissions != places.fileMode { try adopted.setPermissions(places.fileMode) }
            let digest = try adoptedDigest ?? Self.hash(adopted, status.size).digest()
            whole = Whole(
                directory: names.directory, name: PartNames.workingFile, digest: digest, stamp: FileStamp(try adopted.status()),
                file: adopted)
        } else {
            // A transfer that brought nothing has brought an empty file.
            if !state.withLock({ $0.hasBegun }) { try begin() }
            var status = try file.status()
            let length = state.withLock { $0.length }
            if status.size > length {
                // A write that failed halfway has left bytes that no digest covers.
                try file.truncate(to: length)
                status = try file.status()
            }
            if status.permissions != places.fileMode { try file.setPermissions(places.fileMode) }
            let stamp = FileStamp(status)
            let digest = try (known ?? hashOfWhatIsThere(stamp.size)).digest()
            whole = Whole(directory: nil, name: names.bytes, digest: digest, stamp: stamp, file: file)
        }
        var complaint: String?
        if let limit, limit != whole.stamp.size { complaint = "\(whole.stamp.size) bytes came, and the list announces \(limit)" }
        if complaint == nil, let wanted, wanted != whole.digest { complaint = "its digest is \(whole.digest), and the list says \(wanted)" }
        if let complaint {
            // A part that is only short can still be resumed, where it is remembered what its bytes belong to.
            let (isResumed, isRemembered) = state.withLock { ($0.isResumed, $0.isRemembered) }
            let isShort = !isAdopted && whole.stamp.size < limit ?? 0
            if !isShort { try discard() }
            throw SyncError.wrongContent(path, complaint, isWorthRetrying: isResumed || (isShort && isRemembered))
        }
        return whole
    }

    /// What is left of a part when its file was staged: enough to find the file again, and no open descriptor.
    struct Staged: Sendable {
        fileprivate var names: PartNames
        fileprivate var whole: (directory: String?, name: String, digest: SHA256.Digest, stamp: FileStamp)

        /// The digest of the file.
        var digest: SHA256.Digest { whole.digest }

        /// Opens the file again, to give it its name.
        ///
        /// - Throws: ``SyncError/Code/changedLocally`` where it is another one by now.
        func reopen(in places: TargetPlaces) throws -> Whole {
            let directory = try whole.directory.map { try places.parts.directory($0) } ?? places.parts
            guard let directory, try directory.status(of: whole.name) != nil else { throw SyncError.changedLocally(.contents) }
            let file = try WritableFile(whole.name, in: directory)
            guard FileStamp(try file.status()) == whole.stamp else { throw SyncError.changedLocally(.contents) }
            return Whole(directory: whole.directory, name: whole.name, digest: whole.digest, stamp: whole.stamp, file: file)
        }

        /// Removes the file, or what is left beside it once it has its name.
        func cleanUp(in places: TargetPlaces) throws {
            try places.parts.remove(names.memory)
            try places.parts.remove(names.bytes)
            try places.removeWorkingDirectory(names.directory)
        }
    }

    /// Leaves the whole file beside its place.
    func stage(_ whole: Whole) -> Staged {
        Staged(names: names, whole: (whole.directory, whole.name, whole.digest, whole.stamp))
    }

    /// Throws away all that is there.
    func discard() throws {
        try state.withLock { state throws in try restart(&state) }
        try places.removeWorkingDirectory(names.directory)
    }

    /// Removes what is left of the part when its bytes have got their name.
    func cleanUp() throws {
        let (isAdopted, isRemembered) = state.withLock { ($0.isAdopted, $0.isRemembered) }
        if isRemembered { try places.parts.remove(names.memory) }
        if isAdopted {
            try places.parts.remove(names.bytes)
            try places.removeWorkingDirectory(names.directory)
        }
    }

    private func restart(_ state: inout State) throws {
        // First what the bytes belonged to: bytes of nobody are thrown away, those of somebody else would be believed.
        if state.isRemembered { try places.parts.remove(names.memory) }
        if state.length > 0 { try file.truncate(to: 0) }
        state = State(length: 0, isRemembered: false, hash: SHA256())
    }

    private func hashOfWhatIsThere(_ length: Int) throws -> SHA256 {
        try Self.hash(file, length)
    }

    private static func hash(_ file: WritableFile, _ length: Int) throws -> SHA256 {
        var hash = SHA256()
        var offset = 0
        var buffer = [UInt8](repeating: 0, count: min(max(length, 1), 1 << 18))
        while offset < length {
            let count = try buffer.withUnsafeMutableBytes { buffer in
                let count = try file.read(into: buffer, at: offset)
                hash.update(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer).prefix(count)))
                return count
            }
            guard count > 0 else { break }
            offset += count
        }
        return hash
    }
}

/// The names of a part's files: of one length, and none that the list could choose.
struct PartNames: Hashable, Sendable {
    let bytes: String
    let memory: String
    let directory: String
    static let workingFile = "file"

    init(path: String) {
        bytes = String(SHA256.digest(of: Array(path.utf8)).hex.prefix(32))
        memory = bytes + ".json"
        directory = bytes + ".d"
    }
}

/// What the bytes of a part belong to.
struct PartMemory: Codable, Hashable, Sendable {
    var path: String
    var version: String
    var validator: String

    /// `nil` where there is none, or none that can be read: the transfer then begins again.
    static func read(_ name: String, in directory: DirectoryHandle) throws -> PartMemory? {
        guard try directory.status(of: name)?.kind == .regular else { return nil }
        let bytes = try WritableFile(name, in: directory).readAll(atMost: 65_536)
        // Of no interest why: it may have been cut when the process ended.
        return try? JSONDecoder().decode(PartMemory.self, from: Data(bytes))
    }

    func write(_ name: String, in directory: DirectoryHandle) throws {
        let bytes = try JSONEncoder().encode(self)
        let file = try WritableFile.unshared(name, in: directory, isCopied: false)
        try file.truncate(to: 0)
        try bytes.withUnsafeBytes { try file.write($0, at: 0) }
    }
}
