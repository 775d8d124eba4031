internal import Dispatch
public import Foundation
import StoreCore
internal import StorePlatform

#if os(macOS) || os(Linux)

/// A child process with line-by-line access to its output.
///
/// Started by ``spawn(_:_:input:output:)`` instead of Foundation's `Process`. On Linux (Swift 6.3.1), `Process` copies each entry of the
/// list of open files with its full length. With more than 1 300 open files, it sometimes reads beyond the list's end.
public final class ChildProcess {
    /// The process identifier.
    public let id: Int32
    private let output: Pipe
    private let input: Pipe
    private var pending = Data()
    /// The status from `waitpid`; `nil` while the process runs.
    private let status = WatchedState<Int32?>(nil)
    private let ended = DispatchGroup()
    /// Guards that a process is started with the list of all pipes that it must not inherit.
    ///
    /// With a copy of another process's writer, it would keep that process's output open.
    private static let starting = Lock(())

    /// Starts a program, which is given by its path or is one of this package.
    public init(_ program: String, _ arguments: [String]) throws {
        let path = program.hasPrefix("/") ? program : try Self.path(of: program)
        (input, output, id) = try Self.starting.withLock { _ in
            let (input, output) = (Pipe(), Pipe())
            // Processes that are started in another way, such as those of exit tests, do not wait for the lock.
            for end in [input.fileHandleForReading, input.fileHandleForWriting, output.fileHandleForReading, output.fileHandleForWriting] {
                _ = fcntl(end.fileDescriptor, F_SETFD, FD_CLOEXEC)
            }
            return (
                input, output,
                try spawn(
                    path, arguments, input: input.fileHandleForReading.fileDescriptor,
                    output: output.fileHandleForWriting.fileDescriptor)
            )
        }
        // The child's ends must be closed here, because otherwise its output never ends.
        try input.fileHandleForReading.close()
        try output.fileHandleForWriting.close()
        ended.enter()
        Thread { [id, status, ended] in
            // An unknown status counts as a failure.
            var word: Int32 = -1
            while waitpid(id, &word, 0) < 0, errno == EINTR {}
            status.update { [word] in $0 = word }
            ended.leave()
        }.start()
    }

    /// Starts a program of this package with a disk of its own, which disappears with the process. Its options are, for example,
    /// `size=64k,mode=700`.
    public convenience init(onDisk options: String, at place: String, _ program: String, _ arguments: [String]) throws {
        let script = "mount -t tmpfs -o \(options) none '\(place)' && exec \"$0\" \"$@\""
        try self.init("/usr/bin/unshare", ["-m", "/bin/sh", "-c", script, ChildProcess.path(of: program)] + arguments)
    }

    deinit {
        kill()
        ended.wait()
    }

    /// Kills the process; its output can still be read.
    public func kill() { send(SIGKILL) }

    /// Sends a signal to the process if it runs.
    public func send(_ signal: Int32) { if isRunning { Foundation.kill(id, signal) } }

    /// Writes a line to the input of the process.
    public func write(_ line: String) throws { try input.fileHandleForWriting.write(contentsOf: Data((line + "\n").utf8)) }

    /// Whether the process has not ended yet.
    public var isRunning: Bool { status.current == nil }

    /// Waits for the end of the process; returns whether it exited with code 0.
    @discardableResult
    public func wait() -> Bool {
        ended.wait()
        return status.current == 0
    }

    /// Suspends until the process has ended; returns its exit code, or the signal that ended it.
    public func ending() async throws -> Int32 {
        // In the format of `wait(2)`, the low seven bits are the signal, and the next byte is the exit code.
        try await status.wait { word in word.map { $0 & 0x7F == 0 ? $0 >> 8 & 0xFF : $0 & 0x7F } }
    }

    /// Returns the next complete line of output; `nil` at the end.
    ///
    /// - Parameter separator: The byte that ends a line.
    public func readLine(endingWith separator: UInt8 = 10) -> String? {
        while true {
            if let end = pending.firstIndex(of: separator) {
                defer { pending = Data(pending[(end + 1)...]) }
                return String(decoding: pending[..<end], as: UTF8.self)
            }
            let more = output.fileHandleForReading.availableData
            if more.isEmpty { return nil }
            pending += more
        }
    }

    /// Waits for the next complete line of output; `nil` at the end. Blocks no thread, so that the process may wait for other tasks.
    ///
    /// - Parameter separator: The byte that ends a line.
    public func nextLine(endingWith separator: UInt8 = 10) async throws -> String? {
        let descriptor = output.fileHandleForReading.fileDescriptor
        try await until("the process writes a line") { [isComplete = pending.contains(separator)] in
            var input = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            return isComplete || poll(&input, 1, 0) > 0
        }
        return readLine(endingWith: separator)
    }

    /// The remaining output until its end.
    public var rest: String { String(decoding: restAsBytes, as: UTF8.self) }

    /// The remaining output as bytes.
    public var restAsBytes: Data { pending + output.fileHandleForReading.readDataToEndOfFile() }

    /// The interpreters of Python that can be run.
    public static let pythons = ["/usr/bin/python3", "/usr/local/bin/python3", "/opt/homebrew/bin/python3"].filter {
        FileManager.default.isExecutableFile(atPath: $0)
    }

    /// Runs a program, and waits for its end; returns its output, or `nil` if it failed.
    public static func output(of program: String, _ arguments: [String], input: Data = Data(), showsErrors: Bool = true) throws -> Data? {
        // A file takes any number of bytes before the program reads the first; a pipe does not.
        let file = temporaryURL()
        try input.write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        // The shell opens the file and then replaces itself with the program.
        let script = #"input=$0; exec "$@" <"$input""# + (showsErrors ? "" : " 2>/dev/null")
        let process = try ChildProcess("/bin/sh", ["-c", script, file.path(percentEncoded: false), program] + arguments)
        let output = process.restAsBytes
        return process.wait() ? output : nil
    }

    /// Returns the path of a program of this package, which the build puts beside the tests.
    public static func path(of name: String) throws -> String {
        var places = Bundle.allBundles.map(\.bundleURL) + [URL(filePath: CommandLine.arguments[0])]
        // Without such a link, the other places suffice.
        if let own = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe") { places.append(URL(filePath: own)) }
        for var place in places {
            for _ in 0..<5 {
                let path = place.appending(path: name, directoryHint: .notDirectory).path(percentEncoded: false)
                var isDirectory: ObjCBool = false
                if FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory), !isDirectory.boolValue,
                    FileManager.default.isExecutableFile(atPath: path)
                {
                    return path
                }
                place.deleteLastPathComponent()
            }
        }
        throw CocoaError(.fileNoSuchFile)
    }
}

/// Starts a program that inherits only the environment, the error output, and the given files; returns its process identifier.
private func spawn(_ path: String, _ arguments: [String], input: Int32, output: Int32) throws -> pid_t {
    #if canImport(Darwin)
    var actions: posix_spawn_file_actions_t?
    var attributes: posix_spawnattr_t?
    let closing = POSIX_SPAWN_CLOEXEC_DEFAULT
    #else
    var actions = posix_spawn_file_actions_t()
    var attributes = posix_spawnattr_t()
    let closing: Int32 = 0
    #endif
    posix_spawn_file_actions_init(&actions)
    posix_spawnattr_init(&attributes)
    defer {
        posix_spawn_file_actions_destroy(&actions)
        posix_spawnattr_destroy(&attributes)
    }
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO)
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
    #if canImport(Darwin)
    posix_spawn_file_actions_addinherit_np(&actions, STDERR_FILENO)
    #else
    if var files = try Directory(path: "/proc/self/fd").list() {
        var last = STDERR_FILENO
        while let file = try files.next() { last = max(last, Int32(file.name) ?? 0) }
        // Other threads open files meanwhile. Closing a descriptor below the limit that is not open in the child is no failure.
        let end = min(last + 256, Int32(clamping: sysconf(Int32(_SC_OPEN_MAX))))
        for number in STDERR_FILENO + 1..<max(end, last + 1) { posix_spawn_file_actions_addclose(&actions, number) }
    }
    #endif
    // Test threads block all signals, and the child would inherit that mask.
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | closing))

    let variables = ProcessInfo.processInfo.environment.map { "\($0.key)=\($0.value)" }
    var words = ([path] + arguments).map { strdup($0) } + [nil]
    var environment = variables.map { strdup($0) } + [nil]
    defer { for word in words + environment { free(word) } }
    var id: pid_t = 0
    let failure = posix_spawn(&id, path, &actions, &attributes, &words, &environment)
    guard failure == 0 else { throw POSIXError(POSIXErrorCode(rawValue: failure) ?? .EINVAL) }
    return id
}

/// Returns whether the process has superuser rights, for example to mount a disk.
public func isRoot() -> Bool { getuid() == 0 }

/// Returns whether this process may mount a disk that is private to it.
public func canMountSmallDisks() -> Bool {
    let script = "mount -t tmpfs none /mnt && echo yes"
    guard isRoot(), let child = try? ChildProcess("/usr/bin/unshare", ["-m", "/bin/sh", "-c", script]) else { return false }
    return child.readLine() == "yes"
}

#endif
