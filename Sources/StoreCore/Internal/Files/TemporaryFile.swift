#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif
internal import Synchronization

/// A file being written under a temporary name, which `commit(as:)` makes the file of its real name in one step.
///
/// Whoever reads the real name gets the old file or the new one, each whole. Where the file goes out of scope uncommitted, it is removed;
/// where the process ends before that, its orphan stays and is known by its name: see ``isName(_:kind:)``.
package struct TemporaryFile: ~Copyable {
    private let directory: Directory
    private let name: String
    private let options: FileWriteOptions
    /// The open file; −1 once it is closed.
    private var descriptor: Int32
    /// Whether the temporary name still has to be removed.
    private var isPending = true

    private init(in directory: Directory, name: String, options: FileWriteOptions, descriptor: Int32) {
        self.directory = directory
        self.name = name
        self.options = options
        self.descriptor = descriptor
    }

    /// Makes an empty file, readable and writable for this user only (mode 0600), in the directory of its later name.
    ///
    /// - Parameters:
    ///   - directory: The directory; it must exist.
    ///   - kind: A word that tells whose temporary files these are; letters only.
    ///   - options: Durability and protection.
    /// - Returns: The open file.
    /// - Throws: ``StoreError/Code/fileSystem``; with `ENOENT` where the directory is missing.
    package static func create(
        in directory: Directory, kind: String, options: FileWriteOptions = FileWriteOptions()
    ) throws(StoreError) -> TemporaryFile {
        // 64 random bits beside the process's own number are not met twice: a name that is taken is a failure like any other.
        let name = makeName(kind: kind)
        let path = directory.path(of: name)
        let descriptor = uninterrupted { open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode_t(0o600)) }
        guard descriptor >= 0 else { throw .fileSystem("creating", path: path, errno: errno) }
        let file = TemporaryFile(in: directory, name: name, options: options, descriptor: descriptor)
        try options.protection.apply(to: descriptor, path: path)
        try options.probe?(.created)
        return file
    }

    deinit {
        // Both only clean up behind a failure that is being thrown already.
        if descriptor >= 0 { _ = close(descriptor) }
        if isPending { _ = unlink(directory.path(of: name)) }
    }

    /// Appends bytes.
    ///
    /// - Parameter bytes: The bytes; all of them are written, in as many calls as it takes.
    /// - Throws: ``StoreError/Code/fileSystem``.
    package mutating func write(_ bytes: UnsafeRawBufferPointer) throws(StoreError) {
        var rest = bytes
        while !rest.isEmpty {
            let descriptor = descriptor
            let count = uninterrupted { Self.writeSome(descriptor, rest) }
            if count < 0 { throw failure("writing") }
            // Nothing written and no error: POSIX allows it, and trying for ever would not help.
            if count == 0 { throw failure("writing", errno: EIO) }
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count))
        }
    }

    /// Gives the file its real name, in place of the file that has it.
    ///
    /// With ``Durability/power`` the order is: synchronize the file, rename, synchronize the directory.
    ///
    /// - Parameter finalName: The real name, in the same directory.
    /// - Throws: ``StoreError/Code/fileSystem``; the file of that name is then the old one, except where only the directory could not
    ///   be synchronized.
    package consuming func commit(as finalName: String) throws(StoreError) {
        try options.probe?(.written)
        if options.durability == .power {
            guard synchronizeDescriptor(descriptor) == 0 else { throw failure("synchronizing") }
            try options.probe?(.fileSynchronized)
        }
        let result = close(descriptor)
        descriptor = -1
        // A network volume may notice only now that there is no room. After a signal the descriptor is closed all the same.
        guard result == 0 || errno == EINTR else { throw failure("closing") }
        let path = directory.path(of: finalName)
        let move = { [directory, name] () throws(StoreError) in
            guard rename(directory.path(of: name), path) == 0 else {
                throw .fileSystem("renaming a new file to", path: path, errno: errno)
            }
        }
        if options.locksNames { try directory.withLock(exclusively: false, move) } else { try move() }
        isPending = false
        try options.probe?(.renamed)
        if options.durability == .power {
            try directory.synchronize()
            try options.probe?(.directorySynchronized)
        }
    }

    private func failure(_ operation: String, errno code: Int32 = errno) -> StoreError {
        .fileSystem(operation, path: directory.path(of: name), errno: code)
    }

    private static func writeSome(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
        // Darwin refuses more than 2 GB in one call.
        #if canImport(Darwin)
        Darwin.write(descriptor, bytes.baseAddress, min(bytes.count, 1 << 30))
        #elseif canImport(Glibc)
        Glibc.write(descriptor, bytes.baseAddress, min(bytes.count, 1 << 30))
        #elseif canImport(Musl)
        Musl.write(descriptor, bytes.baseAddress, min(bytes.count, 1 << 30))
        #endif
    }
}

extension TemporaryFile {
    /// Where this process's names begin; asking for new random bits each time would be a call of the system for each file.
    private static let random = UInt64.random(in: .min ... .max)
    private static let count = Atomic<UInt64>(0)

    /// A name that no other file has: the kind, the process, and 64 random bits to which a number is added.
    static func makeName(kind: String) -> String {
        let number = count.wrappingAdd(1, ordering: .relaxed).newValue
        let random = String(random &+ number, radix: 16)
        return ".\(kind).\(getpid()).\(String(repeating: "0", count: 16 - random.count))\(random).tmp"
    }

    /// Whether a file's name is that of a temporary file of this kind, made by any process.
    ///
    /// - Parameters:
    ///   - name: The file's name.
    ///   - kind: The word given when such files are made.
    package static func isName(_ name: String, kind: String) -> Bool {
        let parts = name.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 5, parts[0].isEmpty, parts[1].elementsEqual(kind.utf8), parts[4].elementsEqual("tmp".utf8) else {
            return false
        }
        let isProcess = !parts[2].isEmpty && parts[2].count <= 10 && parts[2].allSatisfy { (0x30...0x39).contains($0) }
        let isRandom = parts[3].count == 16 && parts[3].allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
        return isProcess && isRandom
    }

    /// How old an orphan must be before it is removed; no save takes that long.
    package static let orphanAge = Duration.seconds(3600)
}
