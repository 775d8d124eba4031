internal import Foundation
import StoreCore

#if os(macOS) || os(Linux)

/// Another process, of which the output is read line by line.
public final class ChildProcess {
    private let process = Process()
    private let output = Pipe()
    private let input = Pipe()
    private var pending = Data()
    private let status = WatchedState<Int32?>(nil)

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - program: A path, or the name of a program of this package.
    ///   - arguments: Its arguments.
    public init(_ program: String, _ arguments: [String]) throws {
        process.executableURL = URL(filePath: program.hasPrefix("/") ? program : try Self.path(of: program))
        process.arguments = arguments
        process.standardOutput = output
        process.standardInput = input
        process.terminationHandler = { [status] process in status.update { $0 = process.terminationStatus } }
        try process.run()
    }

    deinit {
        kill()
        process.waitUntilExit()
    }

    /// Ends the process at once; what it has said can still be read.
    public func kill() { send(SIGKILL) }

    /// Sends a signal to the process, if it runs.
    public func send(_ signal: Int32) {
        if process.isRunning { Foundation.kill(process.processIdentifier, signal) }
    }

    /// Whether the process has not ended yet.
    public var isRunning: Bool { process.isRunning }

    /// Waits for the end of the process; true where it ended by itself and well.
    @discardableResult
    public func wait() -> Bool {
        process.waitUntilExit()
        return process.terminationReason == .exit && process.terminationStatus == 0
    }

    /// Waits until it has ended, without keeping a thread; gives its exit code, or the signal that ended it.
    public func ending() async throws -> Int32 { try await status.wait { $0 } }

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

    /// All that is left of its output; for a process that has ended.
    public var rest: String { String(decoding: pending + output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self) }

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

/// Whether the process may do what only the system's owner may, such as mounting a disk.
public func isRoot() -> Bool { getuid() == 0 }

#endif
