internal import Dispatch
public import Foundation
import StoreCore

#if os(macOS) || os(Linux)

/// Another process, of which the output is read line by line.
///
/// Started by ``spawn(_:_:input:output:)`` and not by Foundation's `Process`: that copies each entry of the list of open files as if it
/// had its full length (Swift 6.3.1, Linux), and reads beyond the list's end now and then where tests hold more than 1 300 files open.
public final class ChildProcess {
    private let id: pid_t
    private let output = Pipe()
    private let input = Pipe()
    private var pending = Data()
    /// What `waitpid` has said of its end; `nil` while it runs.
    private let status = WatchedState<Int32?>(nil)
    private let ended = DispatchGroup()

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - program: A path, or the name of a program of this package.
    ///   - arguments: Its arguments.
    public init(_ program: String, _ arguments: [String]) throws {
        let path = program.hasPrefix("/") ? program : try Self.path(of: program)
        id = try spawn(
            path, arguments, input: input.fileHandleForReading.fileDescriptor, output: output.fileHandleForWriting.fileDescriptor)
        // These ends are the child's: while they are open here, its output has no end.
        try input.fileHandleForReading.close()
        try output.fileHandleForWriting.close()
        ended.enter()
        Thread { [id, status, ended] in
            // What no call has said is no good end.
            var word: Int32 = -1
            while waitpid(id, &word, 0) < 0, errno == EINTR {}
            status.update { [word] in $0 = word }
            ended.leave()
        }.start()
    }

    deinit {
        kill()
        ended.wait()
    }

    /// Ends the process at once; what it has said can still be read.
    public func kill() { send(SIGKILL) }

    /// Sends a signal to the process, if it runs.
    public func send(_ signal: Int32) {
        if isRunning { Foundation.kill(id, signal) }
    }

    /// Whether the process has not ended yet.
    public var isRunning: Bool { status.current == nil }

    /// Waits for the end of the process; true where it ended by itself and well.
    @discardableResult
    public func wait() -> Bool {
        ended.wait()
        return status.current == 0
    }

    /// Waits until it has ended, without keeping a thread; gives its exit code, or the signal that ended it.
    public func ending() async throws -> Int32 {
        // As `wait(2)` puts it: the signal in the low seven bits, the code in the byte above.
        try await status.wait { word in word.map { $0 & 0x7F == 0 ? $0 >> 8 & 0xFF : $0 & 0x7F } }
    }

    /// The next line of output; `nil` where it has ended. A line without its end is none.
    public func readLine() -> String? {
        while true {
            if let end = pending.firstIndex(of: 10) {
                defer { pending = Data(pending[(end + 1)...]) }
                return String(decoding: pending[..<end], as: UTF8.self)
            }
            let more = output.fileHandleForReading.availableData
            if more.isEmpty { return nil }
            pending += more
        }
    }

    /// All that is left of its output, up to its end.
    public var rest: String { String(decoding: restAsBytes, as: UTF8.self) }

    /// The same as it was written.
    public var restAsBytes: Data { pending + output.fileHandleForReading.readDataToEndOfFile() }

    /// Runs a program that reads a file, and waits for its end.
    ///
    /// - Parameters:
    ///   - program: The program's path.
    ///   - arguments: Its arguments.
    ///   - input: The file's path.
    ///   - showsErrors: Whether its error output is that of the tests.
    /// - Returns: What it has written; `nil` where it did not end well.
    public static func output(
        of program: String, _ arguments: [String], reading input: String = "/dev/null", showsErrors: Bool = true
    ) throws -> Data? {
        // The shell opens the file and becomes the program.
        let script = #"input=$0; exec "$@" <"$input""# + (showsErrors ? "" : " 2>/dev/null")
        let process = try ChildProcess("/bin/sh", ["-c", script, input, program] + arguments)
        let output = process.restAsBytes
        return process.wait() ? output : nil
    }

    /// Where the build has put a program of this package: beside the tests.
    ///
    /// - Parameter name: The name of its target; its product may be spelled in small letters.
    public static func path(of name: String) throws -> String {
        var places = Bundle.allBundles.map(\.bundleURL) + [URL(filePath: CommandLine.arguments[0])]
        // Where there is no such link, the others will do.
        if let own = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe") { places.append(URL(filePath: own)) }
        for var place in places {
            for _ in 0..<5 {
                for spelling in [name, name.lowercased()] {
                    let path = place.appending(path: spelling, directoryHint: .notDirectory).path(percentEncoded: false)
                    var isDirectory: ObjCBool = false
                    if FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory), !isDirectory.boolValue,
                        FileManager.default.isExecutableFile(atPath: path)
                    {
                        return path
                    }
                }
                place.deleteLastPathComponent()
            }
        }
        throw CocoaError(.fileNoSuchFile)
    }
}

/// Starts a program that has nothing of this process but its environment, its error output and what it is given.
///
/// - Parameters:
///   - path: The program.
///   - arguments: Its arguments.
///   - input: The file that it reads.
///   - output: The file that it writes.
/// - Returns: Its number.
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
        while let file = try files.next() {
            // One that is closed before the child begins is no failure.
            if let number = Int32(file.name), number > STDERR_FILENO { posix_spawn_file_actions_addclose(&actions, number) }
        }
    }
    #endif
    // The threads that tests run on let no signal through, and the child would have that from them.
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

/// Whether the process may do what only the system's owner may, such as mounting a disk.
public func isRoot() -> Bool { getuid() == 0 }

#endif
