#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#if canImport(SwiftOverlayShims)
internal import SwiftOverlayShims
#endif
#elseif canImport(Musl)
internal import Musl
#endif

// Handwritten file access: the bare system calls. Without Foundation, because C structs lose their members beside its import.

/// A system call that failed; it invalidates the measurement.
struct CallFailed: Error {
    var call: String
    var code: Int32

    init(_ call: String) {
        self.call = call
        code = errno
    }
}

/// Writes a file atomically: temporary file, rename, and optionally `fsync` of file and directory.
func saveByHand(_ bytes: [UInt8], _ directory: String, _ name: String, synchronizes: Bool) throws {
    let temporary = directory + "/.tmp-" + name
    let file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode_t(0o600))
    guard file >= 0 else { throw CallFailed("open") }
    guard write(file, bytes, bytes.count) == bytes.count else { throw CallFailed("write") }
    if synchronizes { guard fsync(file) == 0 else { throw CallFailed("fsync") } }
    guard close(file) == 0 else { throw CallFailed("close") }
    guard rename(temporary, directory + "/" + name) == 0 else { throw CallFailed("rename") }
    guard synchronizes else { return }
    let parent = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard parent >= 0, fsync(parent) == 0, close(parent) == 0 else { throw CallFailed("fsync of the directory") }
}

/// Reads a whole file.
func loadByHand(_ path: String) throws -> [UInt8] {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { throw CallFailed("open") }
    defer { close(file) }
    var info = stat()
    guard fstat(file, &info) == 0 else { throw CallFailed("fstat") }
    let size = Int(info.st_size)
    return try [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
        count = read(file, buffer.baseAddress, size)
        guard count == size else { throw CallFailed("read") }
    }
}

/// Lists a directory with the size of each entry; returns their number and total size.
func listByHand(_ path: String) throws -> (count: Int, bytes: Int) {
    guard let stream = opendir(path) else { throw CallFailed("opendir") }
    defer { closedir(stream) }
    var (count, bytes) = (0, 0)
    guard let offset = MemoryLayout<dirent>.offset(of: \.d_name) else { return (0, 0) }
    while let entry = readdir(stream) {
        let name = UnsafeRawPointer(entry).advanced(by: offset).assumingMemoryBound(to: CChar.self)
        var info = stat()
        guard fstatat(dirfd(stream), name, &info, AT_SYMLINK_NOFOLLOW) == 0 else { throw CallFailed("fstatat") }
        count += 1
        bytes += Int(info.st_size)
    }
    return (count, bytes)
}

/// Writes a file under its final name, so that concurrent readers may see half of it.
func writeByHand(_ bytes: UnsafeRawBufferPointer, _ path: String) throws {
    let file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode_t(0o666))
    guard file >= 0 else { throw CallFailed("open") }
    defer { close(file) }
    guard write(file, bytes.baseAddress, bytes.count) == bytes.count else { throw CallFailed("write") }
}
