// Does not import Foundation, which hides the members of C structs.
internal import StorePlatform

/// Sets the modification date of a file, in nanoseconds since 1970.
package func setModified(_ path: String, nanoseconds: Int64) throws {
    let time = timespec(tv_sec: time_t(nanoseconds / 1_000_000_000), tv_nsec: Int(nanoseconds % 1_000_000_000))
    guard utimensat(AT_FDCWD, path, [time, time], AT_SYMLINK_NOFOLLOW) == 0 else { throw CallFailed(errno: errno) }
}

/// Sets the modification date of a file, in seconds since 1970; the value may exceed the range of nanoseconds.
package func setModified(_ path: String, seconds: Int) throws {
    let time = timespec(tv_sec: time_t(seconds), tv_nsec: 999_999_999)
    guard utimensat(AT_FDCWD, path, [time, time], AT_SYMLINK_NOFOLLOW) == 0 else { throw CallFailed(errno: errno) }
}

package struct CallFailed: Error { var errno: Int32 }

package func makePipe(_ path: String) throws { guard mkfifo(path, 0o600) == 0 else { throw CallFailed(errno: errno) } }

/// Truncates or extends a file in place, as a faulty disk might.
package func truncateFile(_ path: String, to size: Int) throws {
    guard truncate(path, off_t(size)) == 0 else { throw CallFailed(errno: errno) }
}
