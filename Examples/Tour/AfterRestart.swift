import Foundation
import StoreCore

/// The restart: a new process of the same program, with the same directory and empty memory.
enum AfterRestart {
    /// Runs the new process and waits for its end.
    ///
    /// - Returns: The exit status of the process.
    static func launch(directory: URL, origin: URL, isPlain: Bool) async throws -> Int32 {
        let process = Process()
        process.executableURL = Bundle.main.executableURL
        process.arguments = ["--restarted", directory.path(percentEncoded: false), origin.absoluteString] + (isPlain ? ["--plain"] : [])
        return try await withCheckedThrowingContinuation { continuation in
            process.terminationHandler = { continuation.resume(returning: $0.terminationStatus) }
            do { try process.run() } catch { continuation.resume(throwing: error) }
        }
    }

    /// Runs the tour's part in the new process.
    ///
    /// - Returns: Whether the first state was the complete saved shelf.
    static func run(directory: String, origin: String, on stage: Stage) async throws -> Bool {
        guard let origin = URL(string: origin) else { return false }
        stage.note("process \(ProcessInfo.processInfo.processIdentifier), with empty memory")
        let repository = BookRepository(origin: origin, directory: URL(filePath: directory, directoryHint: .isDirectory))
        var observer = ShownObserver(repository.shelf.flowable.publish(), on: stage, describe: Chapters.describe)
        let first = try await observer.follow { _ in true }
        return first.isCompleted && first.content?.count == 10
    }
}
