import Foundation
import RemoteRouting
import StoreCore
import Testing
import Trials

@testable import stars

/// The example of changes that survive, as a user runs it: each run is a process.
@Suite(.timeLimit(.minutes(hangMinutes)))
final class StarsTests {
    private let directory = temporaryURL()

    /// The output and the exit code of a run.
    private struct Run {
        var text: String
        var status: Int32

        func shows(_ row: String) -> Bool { text.contains("\n  \(row)") }
    }

    private func start(_ arguments: [String]) throws -> ChildProcess {
        try ChildProcess("stars", arguments + ["--directory", directory.path(percentEncoded: false), "--plain"])
    }

    /// Runs the program to its end, which does not depend on the speed of the machine unless the origin is slow.
    private func stars(_ arguments: String...) async throws -> Run {
        try await ended(start(arguments + (arguments.contains("--slow") ? [] : ["--wait", "3600"])))
    }

    private func ended(_ program: ChildProcess) async throws -> Run {
        let status = try await program.ending()
        return Run(text: program.rest, status: status)
    }

    private func origin(_ behavior: StarOrigin.Behavior = .init()) throws -> StarOrigin {
        try StarOrigin(directory: directory.appending(path: "origin"), behavior)
    }

    @Test func `the story holds, and each of its lines fits a terminal`() async throws {
        let story = try await ended(ChildProcess("stars", ["--plain"]))
        #expect(story.status == 0, "\(story.text)")
        #expect(story.text.contains("✓ all "))
        #expect(story.text.split(separator: "\n").allSatisfy { $0.count <= 80 && !$0.contains("\u{1B}") })
    }

    @Test func `the story fails with an origin that ignores the key`() async throws {
        let story = try await ended(ChildProcess("stars", ["story", "--forgetful", "--plain"]))
        #expect(story.status == 1)
        #expect(story.text.contains("✗ does not hold: the origin has performed it once"))
    }

    @Test func `O1, O2: a star given offline is shown, waits across runs, and arrives once`() async throws {
        #expect(try await stars().shows("☆ swift-docc     3333\n"))
        for attempt in ["once", "2 times"] {
            let run = try await attempt == "once" ? stars("add", "swift-docc", "--offline") : stars("--offline")
            #expect(run.status == 1)
            #expect(run.shows("★ swift-docc     3334  ◌ waits to be sent, tried \(attempt)\n"))
        }
        let run = try await stars()
        #expect(run.status == 0)
        #expect(run.shows("★ swift-docc     3334\n"))
        let again = try await stars("add", "swift-docc")
        #expect(again.shows("swift-docc is starred already\n"))
        #expect(try origin().stars(of: "swift-docc") == 1)
    }

    @Test func `O2: a star given before the list was ever fetched is shown when it is`() async throws {
        #expect(try await stars("add", "swift", "--offline").shows("★ swift  ?  ◌ waits to be sent, tried once\n"))
        #expect(try await stars("--offline").shows("★ swift  ?  ◌ waits to be sent, tried 2 times\n"))
        let run = try await stars()
        #expect(run.status == 0)
        #expect(run.shows("★ swift         70001\n"))
    }

    @Test func `O18: a star on a further page is shown after a restart, and the page stays`() async throws {
        #expect(try await stars("more").shows("☆ swift-format    864\n"))
        for arguments in [["add", "swift-format"], []] {
            let run = try await ended(start(arguments + ["--offline", "--wait", "3600"]))
            #expect(run.status == 1)
            #expect(run.shows("★ swift-format    865  ◌ waits to be sent"))
        }
        let run = try await stars()
        #expect(run.status == 0)
        #expect(run.shows("★ swift-format    865\n"))
        #expect(try await stars("more", "--offline").shows("▲ the next page could not be fetched\n"))
        #expect(try await stars("more").shows("☆ swift-crypto"))
        #expect(try await stars("more").shows("the list has no further page\n"))
    }

    @Test func `O5: a refused star is taken back with its reason, and is sent again or dropped`() async throws {
        let refused = "☆ swift-web      1147  ✗ refused: swift-web is archived\n"
        #expect(try await stars("add", "swift-web").shows(refused))
        // The reason survives a restart, and needs no origin.
        let run = try await stars("--offline")
        #expect(run.shows(refused) && run.status == 2)
        #expect(try await stars("discard").shows("☆ swift-web      1147\n"))
        #expect(try await stars("add", "swift-web").status == 2)
        let accepted = try await stars("retry", "--lenient")
        #expect(accepted.shows("★ swift-web      1148\n") && accepted.status == 0)
    }

    @Test(arguments: ["retry", "discard"])
    func `a command for refused stars says that there are none`(command: String) async throws {
        let run = try await stars(command)
        #expect(run.shows("no star was refused\n") && run.status == 0)
    }

    @Test func `O13: runs at the same time deliver each star once`() async throws {
        let origin = try origin()
        let names = ["swift", "swift-docc", "swift-syntax"]
        var programs: [ChildProcess] = []
        for round in 1...3 {
            for name in names { programs.append(try start((round == 1 ? ["add", name] : []) + ["--origin", origin.url.absoluteString])) }
        }
        for program in programs { _ = try await program.ending() }
        // A run ends after five seconds, even if the machine is slow.
        try await until("all stars are delivered") { try await stars("--origin", origin.url.absoluteString).status == 0 }
        for name in names {
            #expect(origin.stars(of: name) == 1)
            #expect(Set(origin.keys(for: name)).count == 1)
        }
    }

    @Test func `O4: a program that is killed at any moment delivers its star once`() async throws {
        let origin = try origin()
        for round in positions(1..<13, every: 5) {
            let program = try start(["add", "swift-docc", "--origin", origin.url.absoluteString])
            try await Task.sleep(for: .milliseconds(round * 15))
            program.kill()
            _ = try await program.ending()
        }
        try await until("the star is delivered") {
            try await stars("add", "swift-docc", "--origin", origin.url.absoluteString).status == 0
        }
        #expect(origin.stars(of: "swift-docc") == 1)
        #expect(Set(origin.keys(for: "swift-docc")).count == 1)
    }

    @Test func `O5: an origin that does not respond in time loses no star`() async throws {
        let slow = try await stars("add", "swift", "--slow", "3600", "--wait", "1")
        #expect(slow.status == 1)
        // On a busy machine, the program may give up before it begins to send.
        #expect(slow.text.contains("◌ is being sent") || slow.text.contains("◌ waits to be sent"))
        #expect(slow.text.contains("1 star waits; the next run sends it"))
        #expect(try await stars().status == 0)
        #expect(try origin().stars(of: "swift") == 1)
    }

    @Test(arguments: ["outbox/log", "outbox", "repositories"])
    func `O14: garbage in the directory is refused or skipped, never a crash`(place: String) async throws {
        #expect(try await stars().status == 0)
        let path = directory.appending(path: place)
        if place == "repositories" {
            let files = try FileManager.default.contentsOfDirectory(at: path, includingPropertiesForKeys: nil)
            #expect(files.contains { $0.pathExtension == "record" })
            for file in files where file.pathExtension == "record" {
                try Data("garbage".utf8).write(to: file)
            }
        } else {
            try? FileManager.default.removeItem(at: path)
            try Data(repeating: 0x41, count: 1_000).write(to: path)
        }
        let run = try await stars("add", "swift")
        #expect(run.status == (place == "repositories" ? 0 : 3))
        // What is refused is not changed.
        if place == "outbox/log" { #expect(try Data(contentsOf: path) == Data(repeating: 0x41, count: 1_000)) }
    }

    @Test(arguments: [
        (["add"], "add needs one repository"), (["fly"], "unknown command fly"), (["--slow", "never"], "--slow never: must be a number"),
        (["--wait", "0"], "--wait 0: must be a number"), (["story", "--wait", "9"], "--wait has no effect on the story"),
        (["--origin", "ftp://a"], "must be an address"), (["--origin"], "--origin needs a value"), (["--hel"], "unknown option --hel"),
        (["--origin", "http://a?b=c"], "must be an address"), (["--directory", ""], "--directory needs a value"),
        (["--origin", "http://a", "--offline"], "--offline concerns the origin of this program; leave out --origin"),
        (["--lenient", "--origin", "http://a"], "--lenient concerns the origin of this program"),
        (["story", "--offline"], "--offline has no effect on the story"), (["story", "--directory", "/a"], "--directory has no effect"),
    ])
    func `wrong arguments are explained`(arguments: [String], reason: String) throws {
        #expect { try Options(arguments) } throws: { "\($0)".contains(reason) }
    }

    @Test func `the help fits a terminal`() {
        let lines = Options.usage.split(separator: "\n")
        // The default directory depends on the user.
        #expect(lines.allSatisfy { $0.count <= 80 || $0.contains("/") })
    }

    @Test func `a directory that cannot be made is explained`() throws {
        try Data().write(to: directory)
        #expect { try origin() } throws: { error in
            // The system words the reason.
            let parts = "\(error)".components(separatedBy: "Not a directory")
            return parts.first?.hasPrefix("cannot make \(directory.appending(path: "origin").path(percentEncoded: false)): ") == true
                && parts.last == "; choose another directory with --directory"
        }
    }

    @Test func `an address may have a base path`() throws {
        let options = try Options(["--origin", "http://127.0.0.1:8080/v2"])
        #expect(options.origin.map { StarsAPI.host($0).configuration.basePath } == "/v2")
    }

    @Test func `texts of the origin cannot change the terminal`() {
        let rows = [StarRow(name: "a\u{1B}[31m", stars: 1, isStarred: false, mark: .refused("b\nc"))]
        #expect(StarRow.lines(rows) == ["  ☆ a\\u{1B}[31m  1  ✗ refused: b\\u{A}c"])
    }

    @Test func `a row without a repository is shown below the others`() {
        #expect(
            StarRow.lines([
                StarRow(name: "swift", stars: 70_000, isStarred: true, mark: .sending),
                StarRow(name: "a", stars: nil, isStarred: false, mark: .refused("gone")),
            ]) == ["  ★ swift  70000  ◌ is being sent", "  ☆ a          ?  ✗ refused: gone"])
    }
}
