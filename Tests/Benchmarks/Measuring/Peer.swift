internal import Foundation

/// What another program needs for the same work: told below the table where the program is installed, and never judged.
struct Peer: Sendable {
    /// The figure that it stands beside.
    var figure: String
    var name: String
    var nanoseconds: Double
}

extension Peer {
    /// Runs a program by way of a shell, once.
    ///
    /// - Parameters:
    ///   - figure: The figure that it stands beside.
    ///   - name: What it is called in the note.
    ///   - programs: What must be installed for it.
    ///   - script: What is run; it finds the arguments as `$1`, `$2` and so on.
    ///   - arguments: The arguments.
    /// - Returns: `nil` where a program is not installed or fails.
    static func time(
        _ figure: String, _ name: String, needs programs: [String], _ script: String, _ arguments: [String] = []
    ) async throws -> Peer? {
        guard try await run("for p in \"$@\"; do command -v \"$p\" || exit 1; done", programs) else { return nil }
        let watch = Stopwatch()
        guard try await run(script, arguments) else { return nil }
        return Peer(figure: figure, name: name, nanoseconds: watch.nanoseconds)
    }

    private static func run(_ script: String, _ arguments: [String]) async throws -> Bool {
        let process = Process()
        process.executableURL = URL(filePath: "/bin/sh")
        process.arguments = ["-c", script, "sh"] + arguments
        process.environment = ProcessInfo.processInfo.environment.merging(["LC_ALL": "C"]) { $1 }
        (process.standardOutput, process.standardError) = (FileHandle.nullDevice, FileHandle.nullDevice)
        let status = AsyncStream<Int32> { continuation in
            process.terminationHandler = { process in
                continuation.yield(process.terminationStatus)
                continuation.finish()
            }
        }
        try process.run()
        for await status in status { return status == 0 }
        return false
    }
}
