import Foundation
import LoopbackOrigin

/// `swift run tour`: the life of a repository over real HTTP, against an origin in this process.
@main
struct Tour {
    static func main() async {
        let arguments = Array(CommandLine.arguments.dropFirst())
        let stage = Stage(isPlain: arguments.contains("--plain"))
        do {
            switch arguments.filter({ $0 != "--plain" }) {
            case ["--inspect"]:
                try await inspect(on: stage)
            case []:
                exit(try await run(on: stage) ? 0 : 1)
            case let restart where restart.count == 3 && restart[0] == "--restarted":
                exit(try await AfterRestart.run(directory: restart[1], origin: restart[2], on: stage) ? 0 : 1)
            case ["--help"], ["-h"]:
                print(help)
                exit(0)
            case let unknown:
                stage.complain("unknown option \(unknown.joined(separator: " ")); see tour --help")
                exit(64)
            }
        } catch {
            stage.complain("the tour failed: \(error)")
            exit(1)
        }
    }

    private static let help = """
        usage: tour [--plain] [--inspect]

        Shows what a store does, over real HTTP against an origin in this process, in a
        few seconds. On a terminal it draws live; elsewhere, or with --plain, it prints
        one line per event. Exits 0 if every check holds, 1 if not, and 64 for
        invalid arguments.

        With --inspect, a shop works until it is interrupted, and the address of a page
        that shows its stores is printed.
        """

    /// Runs a shop with an inspector until the process is interrupted.
    private static func inspect(on stage: Stage) async throws {
        let bookshop = try Bookshop(pace: .milliseconds(180))
        // The system empties the temporary directory, because an interrupted process cannot.
        let directory = FileManager.default.temporaryDirectory.appending(path: "storehouse-tour-\(UUID().uuidString)")
        try await InspectedShop(bookshop: bookshop, directory: directory).run(on: stage)
    }

    /// Runs the whole tour.
    ///
    /// - Returns: Whether all checks hold.
    private static func run(on stage: Stage) async throws -> Bool {
        stage.endProcess(after: .seconds(900), complaining: "a step did not end within fifteen minutes")
        let bookshop = try Bookshop(pace: stage.isLive ? .milliseconds(350) : .milliseconds(60))
        let directory = FileManager.default.temporaryDirectory.appending(path: "storehouse-tour-\(UUID().uuidString)")
        defer {
            bookshop.origin.stop()
            // A failed removal leaves a temporary directory, which the system empties.
            try? FileManager.default.removeItem(at: directory)
        }
        stage.title("Storehouse · a tour", "one repository over real HTTP, from \(bookshop.origin.url)")

        let repository = BookRepository(origin: bookshop.origin.url, directory: directory)
        let chapters = Chapters(stage: stage, bookshop: bookshop, repository: repository, directory: directory)
        try await chapters.run()
        return stage.close()
    }
}
