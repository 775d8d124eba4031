#if !canImport(Darwin)
package import FoundationEssentials
package import StoreCore

// The calls that differ between Linux and Apple's systems; FileCalls+Darwin.swift has the same ones.

/// The C library's handle of a listed directory.
typealias DirectoryStream = OpaquePointer

/// Flushes a file's content to the disk.
func synchronizeDescriptor(_ descriptor: Int32) -> Int32 { uninterrupted { fsync(descriptor) } }

/// Returns the largest number of descriptors that the process may have; `nil` if it is unknown.
func descriptorLimit() -> UInt64? {
    var limit = rlimit()
    #if canImport(Glibc)
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    #else
    let resource = RLIMIT_NOFILE
    #endif
    return getrlimit(resource, &limit) == 0 ? UInt64(limit.rlim_cur) : nil
}

extension FileStatus {
    static func modificationTime(of info: stat) -> timespec { info.st_mtim }
}

extension FileProtection {
    /// Does nothing, because the system has no protection classes.
    package func apply(to descriptor: Int32, path: String) throws(StoreError) {}
}

extension Directory {
    /// Does nothing, because the system has no backups.
    package func excludeFromBackup() throws {}

    /// The directory for the state of this program, in `$XDG_STATE_HOME`, with the name of the process.
    package static var ofProgramState: URL {
        // The XDG Base Directory Specification requires relative paths to be ignored.
        let given = ProcessInfo.processInfo.environment["XDG_STATE_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
        let base = given.map { URL(filePath: $0, directoryHint: .isDirectory) } ?? URL.homeDirectory.appending(path: ".local/state")
        return base.appending(path: ProcessInfo.processInfo.processName, directoryHint: .isDirectory)
    }
}

extension DirectoryHandle {
    /// Paths that may lead to the directory while it is open. The name of the process works in its child processes, too.
    var lastingPaths: [String] { ["/proc/\(getpid())/fd/\(descriptor)", "/proc/self/fd/\(descriptor)"] }

    /// Whether the system can flush a whole file system to the disk.
    package static var synchronizesFileSystems: Bool { syncFileSystem != nil }

    /// Returns whether the system can flush the directory's file system as a whole.
    package func canSynchronizeFileSystem() throws(StoreError) -> Bool { Self.synchronizesFileSystems }

    /// Flushes all writes to the directory's file system, including those of other processes, to the disk; returns `false` if the system
    /// cannot do that for this file system. Each file and directory must then be synchronized separately.
    package func synchronizeFileSystem() throws(StoreError) -> Bool {
        guard let syncFileSystem else { return false }
        guard uninterrupted({ syncFileSystem(descriptor) }) == 0 else {
            throw .fileSystem("synchronizing the file system of", path: path, errno: errno)
        }
        return true
    }
}

/// Linux's `syncfs`, which Swift does not import, because its header declares it only with GNU extensions.
///
/// Looked up by name, because the alternative is a C module. `nil` in a program without dynamic symbols.
private let syncFileSystem: (@convention(c) @Sendable (Int32) -> Int32)? = systemFunction("syncfs", in: nil)
#endif
