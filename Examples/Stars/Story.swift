import Foundation
import Trials

/// The whole story as a script: runs the program as a user would, against an origin that fails on command, and checks each step.
struct Story {
    private let screen: Screen
    private let directory: URL
    private let origin: StarOrigin

    init(_ options: Options) throws {
        screen = Screen(isPlain: options.isPlain)
        directory = FileManager.default.temporaryDirectory.appending(path: "stars-\(UUID().uuidString)", directoryHint: .isDirectory)
        origin = try StarOrigin(directory: directory.appending(path: "origin"), options.behavior)
    }

    /// Tells the story.
    ///
    /// - Returns: Whether all checks hold.
    func run() async throws -> Bool {
        // Nothing else uses the directory.
        defer { try? FileManager.default.removeItem(at: directory) }
        var checks: [Bool] = []
        func check(_ text: String, _ holds: Bool) {
            checks.append(holds)
            screen.write("  \(holds ? "✓" : "✗ does not hold:") \(text)")
        }

        screen.heading("1. The origin goes down")
        var program = try await stars()
        check("the list is shown", program.shows("☆ swift-docc", nil) && program.status == 0)
        origin.goDown()
        program = try await stars("add", "swift-docc")
        check("the star is shown at once, and marked as waiting", program.shows("★ swift-docc", "◌ waits") && program.status == 1)

        screen.heading("2. The program was quit, and starts again")
        program = try await stars()
        check("the star is still there, and still marked", program.shows("★ swift-docc", "◌ waits") && program.status == 1)
        check("the origin knows nothing of it", origin.keys(for: "swift-docc").isEmpty && origin.stars(of: "swift-docc") == 0)

        screen.heading("3. The origin is back")
        try origin.comeBack()
        program = try await stars()
        check("the star is delivered", program.shows("★ swift-docc", nil) && program.status == 0)
        check("the origin has one star more", origin.stars(of: "swift-docc") == 1)

        screen.heading("4. The program is killed between request and response")
        origin.change { $0.delay = .seconds(600) }
        let victim = try start("add", "swift-syntax")
        try await origin.arrived(1, "swift-syntax", performed: 1)
        victim.kill()
        _ = try await victim.ending()
        screen.write("  ✗ killed (signal 9)")
        origin.change { $0.delay = .zero }
        program = try await stars()
        let keys = origin.keys(for: "swift-syntax")
        check("the star was sent twice, under the same key", keys.count == 2 && Set(keys).count == 1)
        check("the origin has performed it once", origin.stars(of: "swift-syntax") == 1 && program.status == 0)

        screen.heading("5. The origin refuses a star")
        program = try await stars("add", "swift-web")
        check("it is taken back, with the reason", program.shows("☆ swift-web", "✗ refused: swift-web is archived") && program.status == 2)
        program = try await stars("retry")
        check("a retry is refused again", program.shows("☆ swift-web", "✗ refused") && program.status == 2)
        program = try await stars("discard")
        check("a discarded star is gone", program.shows("☆ swift-web", nil) && program.status == 0)

        screen.heading("6. The origin changes its mind")
        program = try await stars("add", "swift-web")
        check("the star is refused", program.status == 2)
        origin.change { $0.isLenient = true }
        program = try await stars("retry")
        check("the retry is accepted", program.shows("★ swift-web", nil) && program.status == 0)
        check("the origin has one star more", origin.stars(of: "swift-web") == 1)

        screen.heading("7. The list has further pages")
        program = try await stars("more")
        check("the second page is shown", program.shows("☆ swift-format", nil) && program.status == 0)
        origin.goDown()
        program = try await stars("add", "swift-format")
        check("a star on it is shown, and marked as waiting", program.shows("★ swift-format", "◌ waits") && program.status == 1)
        program = try await stars()
        check("page and star are still there after a restart", program.shows("★ swift-format", "◌ waits") && program.status == 1)
        try origin.comeBack()
        program = try await stars()
        check("the star is delivered", program.shows("★ swift-format", nil) && program.status == 0)

        let broken = checks.count { !$0 }
        screen.write("", broken == 0 ? "✓ all \(checks.count) checks hold" : "✗ \(broken) of \(checks.count) checks do not hold", "")
        return broken == 0
    }

    /// A program that has ended.
    private struct Ended {
        var lines: [String]
        var status: Int32

        /// Whether a line begins with a star and a name, and contains a mark; without a mark, whether it has none.
        func shows(_ row: String, _ mark: String?) -> Bool {
            lines.contains { line in
                guard line.hasPrefix("  \(row) ") else { return false }
                return mark.map { line.contains($0) } ?? !(line.contains("◌") || line.contains("✗"))
            }
        }
    }

    /// Runs the program to its end, and shows its output.
    private func stars(_ arguments: String...) async throws -> Ended {
        let program = try start(arguments)
        let status = try await program.ending()
        let lines = program.rest.split(separator: "\n").map(String.init)
        for line in lines { screen.write("  \(line)") }
        return Ended(lines: lines, status: status)
    }

    private func start(_ arguments: String...) throws -> ChildProcess { try start(arguments) }

    /// Starts the program with the directory and the origin of the story.
    private func start(_ arguments: [String]) throws -> ChildProcess {
        screen.write("  $ \((["stars"] + arguments).joined(separator: " "))")
        // What a run shows in the end must not depend on the speed of the machine.
        let place = ["--origin", origin.url.absoluteString, "--directory", directory.path(percentEncoded: false)]
        return try ChildProcess("stars", arguments + place + ["--wait", "3600", "--plain"])
    }
}
