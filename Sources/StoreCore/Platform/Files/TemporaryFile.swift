internal import Synchronization
package import StoreCore

/// A file written under a temporary name, which `commit(as:)` renames to its final name in one step.
///
/// A reader of the final name gets the old file or the new file, each complete. A value that goes out of scope uncommitted removes its file.
/// If the process ends before that, the orphan remains and is recognized by its name: see ``isName(_:kind:)``.
package struct TemporaryFile: ~Copyable {
    private let directory: any FilePlace
    private let name: String
    private let options: FileWriteOptions
    /// The open file; −1 once it is closed.
    private var descriptor: Int32
    /// Whether the temporary name must still be removed.
    private var isPending = true

    /// Creates an empty file in the directory of its final name, which must exist.
    ///
    /// - Parameters:
    ///   - directory: The path of the directory, or the open one, if the calls must not depend on its path.
    ///   - kind: A word that identifies the owner of temporary files; letters only.
    package static func create(
        in directory: any FilePlace, kind: String, options: FileWriteOptions = FileWriteOptions()
    ) throws(StoreError) -> TemporaryFile {
        // 64 random bits and the process identifier do not repeat, so a taken name is a failure like any other.
        let name = makeName(kind: kind)
        let (base, reference) = (directory.base, directory.reference(name))
        let descriptor = uninterrupted {
            openat(base, reference, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode_t(options.mode))
        }
        guard descriptor >= 0 else { throw .failedCall("creating", at: directory.path(of: name)) }
        let file = TemporaryFile(directory: directory, name: name, options: options, descriptor: descriptor)
        try options.protection.apply(to: descriptor, path: directory.path(of: name))
        try options.probe?(.created)
        return file
    }

    deinit {
        // Errors need no handling, because a failure is already being thrown.
        if descriptor >= 0 { _ = close(descriptor) }
        if isPending { _ = unlinkat(directory.base, directory.reference(name), 0) }
    }

    /// Appends bytes completely, in several calls if necessary.
    package mutating func write(_ bytes: UnsafeRawBufferPointer) throws(StoreError) {
        var rest = bytes
        while !rest.isEmpty {
            let descriptor = descriptor
            let count = uninterrupted { writeBytes(descriptor, rest) }
            if count < 0 { throw failure("writing") }
            // POSIX permits a write of nothing without an error; a retry would not help.
            if count == 0 { throw failure("writing", errno: EIO) }
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count))
        }
    }

    package mutating func write(_ bytes: [UInt8]) throws(StoreError) {
        try bytes.withUnsafeBufferPointer { bytes throws(StoreError) in try write(UnsafeRawBufferPointer(bytes)) }
    }

    /// Renames the file to its final name, and replaces a file that has the name.
    ///
    /// With ``Durability/power`` the order is: synchronize the file, rename, synchronize the directory. An error leaves the old file,
    /// unless only the synchronization of the directory failed.
    package consuming func commit(as finalName: String, _ prepare: () throws(StoreError) -> Void = {}) throws(StoreError) {
        try options.probe?(.written)
        try prepare()
        if options.durability == .power {
            guard synchronizeDescriptor(descriptor) == 0 else { throw failure("synchronizing") }
            try options.probe?(.fileSynchronized)
        }
        let result = close(descriptor)
        descriptor = -1
        // A network volume may report a full disk only now. After a signal the descriptor is closed nonetheless.
        guard result == 0 || errno == EINTR else { throw failure("closing") }
        let (base, old, new) = (directory.base, directory.reference(name), directory.reference(finalName))
        let move = { [directory] () throws(StoreError) in
            try renameFile(base, old, base, new, path: directory.path(of: finalName))
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
}

extension TemporaryFile {
    /// The random part of this process's first name; new random bits for each file would cost a system call.
    private static let random = UInt64.random(in: .min ... .max)
    private static let count = Atomic<UInt64>(0)

    /// Returns a unique name: the kind, the process identifier, and 64 random bits plus a counter.
    package static func makeName(kind: String) -> String {
        let number = count.wrappingAdd(1, ordering: .relaxed).newValue
        let random = String(random &+ number, radix: 16)
        return ".\(kind).\(getpid()).\(String(repeating: "0", count: 16 - random.count))\(random).tmp"
    }

    /// Returns whether a name belongs to a temporary file of this kind, created by any process.
    package static func isName(_ name: String, kind: String) -> Bool {
        let parts = name.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 5, parts[0].isEmpty, parts[1].elementsEqual(kind.utf8), parts[4].elementsEqual("tmp".utf8) else {
            return false
        }
        let isProcess = !parts[2].isEmpty && parts[2].count <= 10 && parts[2].allSatisfy { (0x30...0x39).contains($0) }
        let isRandom = parts[3].count == 16 && parts[3].allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
        return isProcess && isRandom
    }

    /// The age from which an orphan may be removed; no save takes that long.
    package static let orphanAge = Duration.seconds(3600)
}

/// Calls the system's `write`, which a method of the file hides. Darwin refuses more than 2 GB in one call.
private func writeBytes(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
    write(descriptor, bytes.baseAddress, min(bytes.count, 1 << 30))
}
