import Console
import Foundation
import Testing
import Trials

@testable import orgs

/// What is made of where the output goes.
struct ConsoleTests {
    @Test(arguments: [
        // Asked for plain lines, a terminal, its environment; whether lines are written over, whether they are painted.
        (false, true, ["TERM": "xterm"], true, true), (true, true, ["TERM": "xterm"], false, false), (false, false, [:], false, false),
        (false, true, ["TERM": "dumb"], false, false), (false, true, ["NO_COLOR": "1"], true, false),
        (false, true, ["NO_COLOR": ""], true, true),
    ])
    func `colors and a progress line require a terminal that allows them`(
        isPlain: Bool, isTerminal: Bool, environment: [String: String], isLive: Bool, hasColours: Bool
    ) {
        let console = Console(isPlain: isPlain, isTerminal: isTerminal, environment: environment)
        #expect(console.isLive == isLive)
        #expect(console.hasColours == hasColours)
        #expect(console.paint(.red, "x") == (hasColours ? "\u{1B}[31mx\u{1B}[0m" : "x"))
    }

    @Test(arguments: [("40", 40), ("0", 80), ("-3", 80), ("wide", 80)])
    func `a progress line fits the terminal`(columns: String, width: Int) {
        let console = Console(isPlain: false, isTerminal: false, environment: ["COLUMNS": columns])
        #expect(console.width == width)
        #expect(console.fitted(String(repeating: "x", count: 200)).count == width - 1)
        #expect(console.fitted("short") == "short")
    }

    @Test func `long lines of a terminal break between words`() {
        let console = Console(isPlain: false, isTerminal: true, environment: ["COLUMNS": "20", "TERM": "xterm"])
        #expect(console.wrapped("  one two three four five\nsix") == "  one two three four\n    five\nsix")
        #expect(console.wrapped("one two three four five", indentation: 8) == "one two three four\n        five")
        #expect(console.wrapped(console.paint(.red, "exactly twenty chars") + "\n") == "\u{1B}[31mexactly twenty chars\u{1B}[0m\n")
        #expect(console.wrapped("https://example.com/a-long-word") == "https://example.com/a-long-word")
        let pipe = Console(isPlain: false, isTerminal: false, environment: [:])
        let line = String(repeating: "word ", count: 40)
        #expect(pipe.wrapped(line) == line)
    }

    @Test(arguments: [5, 20, 36, 80])
    func `a table fits its width`(width: Int) {
        let table = Table(
            columns: ["name", "★", "description"], rows: [["swift", "70000", "The Swift programming language"], ["a", "1", ""]])
        #expect(table.lines(width: width).allSatisfy { $0.count <= width })
        #expect(table.lines(width: width).contains { $0.hasSuffix("…") } == (width < 46))
    }

    @Test func `a table shows the controls of an origin's text as escapes`() {
        let table = Table(columns: ["name"], rows: [["\u{1B}[2Jswift\nng"]])
        #expect(table.lines(width: 80) == ["name", #"\u{1B}[2Jswift\u{A}ng"#])
    }

    @Test func `an output file is replaced, and a link or a pipe is written to`() throws {
        let directory = try TemporaryDirectory()
        let (file, link, pipe) = (
            directory.url.appending(path: "file"), directory.url.appending(path: "link"), directory.url.appending(path: "pipe")
        )
        for text in ["old", "new"] { try Data(text.utf8).write(toOutput: file) }
        #expect(try String(contentsOf: file, encoding: .utf8) == "new")

        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: file)
        try Data("by link".utf8).write(toOutput: link)
        #expect(try !FileManager.default.destinationOfSymbolicLink(atPath: link.path()).isEmpty)
        #expect(try String(contentsOf: file, encoding: .utf8) == "by link")

        #expect(mkfifo(pipe.path(), 0o600) == 0)
        // Opened in both directions, so that neither end waits for the other.
        let end = try FileHandle(forUpdating: pipe)
        try Data("by pipe".utf8).write(toOutput: pipe)
        #expect(try end.read(upToCount: 7) == Data("by pipe".utf8))
    }
}
