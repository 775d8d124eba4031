// Imports no Foundation: beside it C structs lose their members.
#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

func isRoot() -> Bool { getuid() == 0 }

struct CallFailed: Error {
    var errno: Int32
}

/// Another process, of which the output is read line by line.
final class ChildProcess {
    private let pid: pid_t
    private let output: Int32
    private var hasEnded = false
    private var pending: [UInt8] = []

    init(_ program: String, _ arguments: [String]) throws {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw CallFailed(errno: errno) }
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
        killNow()
        close(output)
    }

    /// The next line of output; `nil` where it has ended.
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

    /// Kills the process and waits for its end; what it has said can still be read.
    func killNow() {
        guard !hasEnded, pid > 0 else { return }
        hasEnded = true
        kill(pid, SIGKILL)
        while waitpid(pid, nil, 0) < 0, errno == EINTR {}
    }
}
