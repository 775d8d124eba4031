// Imports no Foundation: beside it C structs lose their members.
#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Sets when a file was last changed, in nanoseconds since 1970.
func setModified(_ path: String, nanoseconds: Int64) throws {
    let time = timespec(tv_sec: time_t(nanoseconds / 1_000_000_000), tv_nsec: Int(nanoseconds % 1_000_000_000))
    guard utimensat(AT_FDCWD, path, [time, time], AT_SYMLINK_NOFOLLOW) == 0 else { throw CallFailed(errno: errno) }
}

/// Sets when a file was last changed, in seconds since 1970, which need not fit into nanoseconds.
func setModified(_ path: String, seconds: Int) throws {
    let time = timespec(tv_sec: time_t(seconds), tv_nsec: 999_999_999)
    guard utimensat(AT_FDCWD, path, [time, time], AT_SYMLINK_NOFOLLOW) == 0 else { throw CallFailed(errno: errno) }
}

struct CallFailed: Error {
    var errno: Int32
}

func makePipe(_ path: String) throws {
    guard mkfifo(path, 0o600) == 0 else { throw CallFailed(errno: errno) }
}

func isRoot() -> Bool { getuid() == 0 }

/// Shortens or lengthens a file in place, as a bad disk might.
func truncateFile(_ path: String, to size: Int) throws {
    guard truncate(path, off_t(size)) == 0 else { throw CallFailed(errno: errno) }
}

/// Another process, of which the output is read line by line.
final class ChildProcess {
    private let pid: pid_t
    private let output: Int32
    /// How it ended; `nil` while it runs or nobody has asked.
    private var ending: Int32?
    private var pending: [UInt8] = []

    /// Starts a program with its output in a pipe.
    init(_ program: String, _ arguments: [String]) throws {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw CallFailed(errno: errno) }
        // No other child may keep the pipe open.
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        #if canImport(Darwin)
        var actions: posix_spawn_file_actions_t?
        #else
        var actions = posix_spawn_file_actions_t()
        #endif
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
        var words: [UnsafeMutablePointer<CChar>?] = ([program] + arguments).map { strdup($0) }
        words.append(nil)
        defer { for word in words { free(word) } }
        var child: pid_t = 0
        let result = posix_spawn(&child, program, &actions, nil, words, environ)
        close(ends[1])
        pid = child
        output = ends[0]
        guard result == 0 else { throw CallFailed(errno: result) }
    }

    deinit {
        if pid > 0, isRunning {
            kill(pid, SIGKILL)
            waitpid(pid, nil, 0)
        }
        close(output)
    }

    /// The next line of output; `nil` where it has ended. A line without its end is none.
    func readLine() -> String? {
        while true {
            if let end = pending.firstIndex(of: 10) {
                defer { pending.removeSubrange(...end) }
                return String(decoding: pending[..<end], as: UTF8.self)
            }
            var chunk = [UInt8](repeating: 0, count: 4096)
            let count = read(output, &chunk, chunk.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return nil }
            pending += chunk[..<count]
        }
    }

    /// Kills the process at once; what it has said can still be read.
    func killNow() {
        if ending == nil { kill(pid, SIGKILL) }
    }

    /// Whether the process has not ended yet; does not wait.
    var isRunning: Bool {
        var status: Int32 = 0
        if ending == nil, waitpid(pid, &status, WNOHANG) == pid { ending = status }
        return ending == nil
    }

    /// Waits for the end of the process; true where it ended by itself and well.
    func wait() -> Bool {
        var status: Int32 = 0
        if ending == nil {
            while waitpid(pid, &status, 0) < 0, errno == EINTR {}
            ending = status
        }
        return ending == 0
    }
}
