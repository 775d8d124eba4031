import Foundation
import StoreCore

#if os(macOS) || os(Linux)

/// A program of this package as another process, of which the output is read line by line.
final class ChildProcess {
    private let process = Process()
    private let output = Pipe()
    private let input = Pipe()
    private var pending = Data()
    private let status = WatchedState<Int32?>(nil)

    /// Starts a program.
    convenience init(_ name: String, _ arguments: [String]) throws {
        try self.init(at: Self.program(name), arguments)
    }

    /// Starts a program by way of a shell, which finds it as `$0` and its arguments as `$@`.
    convenience init(shell script: String, _ name: String, _ arguments: [String]) throws {
        let path = try Self.program(name).path(percentEncoded: false)
        try self.init(at: URL(filePath: "/bin/sh"), ["-c", script, path] + arguments)
    }

    private init(at program: URL, _ arguments: [String]) throws {
        process.executableURL = program
        process.arguments = arguments
        process.standardOutput = output
        process.standardInput = input
        process.terminationHandler = { [status] process in status.update { $0 = process.terminationStatus } }
        try process.run()
    }

    deinit { kill() }

    func kill() { send(SIGKILL) }

    func send(_ signal: Int32) {
        if process.isRunning { Foundation.kill(process.processIdentifier, signal) }
    }

    func wait() { process.waitUntilExit() }

    /// Waits until it has ended, without keeping a thread; gives its exit code, or the signal that ended it.
    func ending() async throws -> Int32 { try await status.wait { $0 } }

    /// All that is left of its output; for a process that has ended.
    var rest: String { String(decoding: pending + output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self) }

    /// The next whole line; `nil` at the end.
    func readLine() -> String? {
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

    /// Beside the tests, where the build has put it.
    private static func program(_ name: String) throws -> URL {
        var places = Bundle.allBundles.map(\.bundleURL) + [URL(filePath: CommandLine.arguments[0])]
        if let own = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe") { places.append(URL(filePath: own)) }
        for var place in places {
            for _ in 0..<5 {
                // A product may be spelled otherwise than its target.
                for spelling in [name, name.lowercased()] {
                    let candidate = place.appending(path: spelling, directoryHint: .notDirectory)
                    let path = candidate.path(percentEncoded: false)
                    var isDirectory: ObjCBool = false
                    if FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory), !isDirectory.boolValue,
                        FileManager.default.isExecutableFile(atPath: path)
                    {
                        return candidate
                    }
                }
                place.deleteLastPathComponent()
            }
        }
        throw CocoaError(.fileNoSuchFile)
    }
}

#endif
