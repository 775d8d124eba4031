internal import Foundation

/// Another program's time for the same work, reported below the table if the program is installed, and never judged.
struct Peer: Sendable {
    /// The name of the comparable figure.
    var figure: String
    var name: String
    var nanoseconds: Double
}

extension Peer {
    /// Runs a program once through a shell.
    ///
    /// - Parameters:
    ///   - figure: The name of the comparable figure.
    ///   - name: The program's name in the note.
    ///   - programs: The required programs.
    ///   - script: The shell script; its arguments are `$1`, `$2`, and so on.
    ///   - arguments: The script's arguments.
    /// - Returns: `nil` if a program is missing or fails.
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
