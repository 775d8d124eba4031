import Foundation
import LoopbackOrigin
import StoreCore
import Testing
import Trials

@testable import TextStore
@testable import terms

#if os(macOS) || os(Linux)

/// The gate of `terms` as a process, for texts that `terms publish` has prepared.
@Suite(.serialized, .timeLimit(.minutes(hangMinutes)))
struct GateCommandTests {
    private let origin: LoopbackOrigin
    private let place: TemporaryDirectory

    init() throws {
        origin = try LoopbackOrigin()
        place = try TemporaryDirectory()
    }

    private func path(_ name: String) -> String { place.file(name).path(percentEncoded: false) }

    /// Runs a script of the shell with the program as its first argument; the output contains the errors.
    private func run(_ script: String, _ arguments: [String]) async throws -> (code: Int32, output: String) {
        let process = try ChildProcess("/bin/sh", ["-c", script, try ChildProcess.path(of: "terms")] + arguments)
        var output = ""
        while let line = try await process.nextLine() { output += line + "\n" }
        return (try await process.ending(), output)
    }

    /// Runs the gate with lines of its standard input. Each of its lines has at most 80 columns; the output has them joined.
    private func gate(
        _ arguments: String..., answers: String = "", state: String = "state"
    ) async throws -> (code: Int32, output: String) {
        let script = #"answers=$1; shift; printf "$answers" | COLUMNS=80 "$0" "$@" 2>&1"#
        let ended = try await run(script, [answers, "--url", origin.url.absoluteString, "--state", path(state)] + arguments)
        if arguments.contains("--export") { return ended }
        // A path is not wrapped.
        let lines = ended.output.split(separator: "\n").filter { $0.split(separator: " ").count > 1 }
        let longest = lines.max { $0.count < $1.count } ?? ""
        #expect(longest.count <= 80, "\(longest)")
        return (ended.code, ended.output.split { $0 == " " || $0 == "\n" }.joined(separator: " "))
    }

    /// Writes texts, runs the publisher's tool, and serves the directory.
    private func publish(_ texts: [String: String], _ options: String...) async throws {
        for (name, text) in texts {
            let file = place.file("texts/\(name)")
            try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(text.utf8).write(to: file)
        }
        let ended = try await run(#"exec "$0" publish "$@" 2>&1"#, [path("texts")] + options)
        try #require(ended.code == 0, "\(ended.output)")
        for name in place.files where name.hasPrefix("texts/") { try serve(String(name.dropFirst(6))) }
    }

    private func serve(_ name: String, adding rest: String = "") throws {
        let text = try String(contentsOf: place.file("texts/\(name)"), encoding: .utf8) + rest
        origin.on(.get, "/\(name)") { _ in name.hasSuffix(".json") ? .json(literal: text) : .text(text) }
    }

    @Test func `T13, T18, T19: the gate asks through a pipe, shows the changes, and its exit codes tell open from closed`() async throws {
        try await publish([
            "eula/en@1.0.0.txt": "Three books.\n", "eula/de@1.0.0.txt": "Drei Bücher.\u{1B}[2J\r\n", "faq@1.0.0.txt": "Ask.\n",
        ])
        let silent = try await gate("--language", "de-AT")
        #expect(silent.code == 2 && silent.output.contains("there was no answer") && silent.output.contains("because of eula, faq"))
        #expect(silent.output.contains("Drei Bücher.") && !silent.output.contains("\u{1B}"))
        let half = try await gate("--language", "de", answers: #"y\nn\n"#)
        #expect(half.code == 2 && half.output.contains("eula 1.0.0 (de) is accepted") && half.output.contains("faq 1.0.0 was declined"))
        #expect(try await gate("--decline").code == 2)
        let english = try await gate("--language", "en", "--text", "eula")
        #expect(english.code == 0 && english.output.contains("eula 1.0.0 (en) needs no acceptance"))
        #expect(try await gate("--decline", "--account", "ada").code == 2)
        try await publish(["eula/en@2.0.0.txt": "Five books.\n", "eula/de@2.0.0.txt": "Fünf Bücher.\n"])
        let changed = try await gate("--language", "de", "--accept")
        #expect(changed.code == 0 && changed.output.contains("- Drei Bücher.") && changed.output.contains("+ Fünf Bücher."))
        origin.goDown()
        let offline = try await gate("--language", "de")
        #expect(offline.code == 0 && offline.output.contains("those of an earlier start"))
        #expect(offline.output.contains("eula 2.0.0 (de) may not be the newest text"))
        let lines = try await gate("--export", "-").output.split(separator: "\n")
        #expect(lines.count == 3 && lines.allSatisfy { $0.hasPrefix(#"{"kind":"accepted""#) })
        #expect(try await gate("--export", path("table.csv")).code == 0)
        #expect(try String(contentsOf: place.file("table.csv"), encoding: .utf8).hasPrefix("kind,identifier,version,"))
        #expect(try await gate("--withdraw", "--text", "faq").code == 0)
        #expect(try await gate("--decline").output.contains("because of faq;"))
        #expect(try await gate("--text", "none").output.contains("pass --text with one of: eula, faq"))
        #expect(try await gate("--accept", state: "other").code == 1)
        #expect(try await gate("--accept", "--decline").code == 64)
        #expect(try await gate("--help").code == 0)
    }

    @Test func `T13: the gate saves an acceptance even if its output is closed`() async throws {
        try await publish(["eula/en@1.0.0.txt": "Three books.\n"])
        let script = #"exec 3>&1; { "$0" "$@"; echo "$?" >&3; } | :"#
        let closed = try await run(script, ["--url", origin.url.absoluteString, "--state", path("state"), "--accept"])
        #expect(closed.output == "0\n")
        #expect(try await gate("--decline").code == 0)
    }

    @Test func `T12, T15: the gate takes the bundle offline, and with a key only what the publisher has signed`() async throws {
        let (secret, open) = (path("key.pem"), path("public.pem"))
        for arguments in [
            ["ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", secret], ["pkey", "-in", secret, "-pubout", "-out", open],
        ] {
            let made = try await run(#"exec openssl "$@" 2>&1"#, arguments)
            try #require(made.code == 0, "OpenSSL's command line is needed: \(made.output)")
        }
        try await publish(["eula/de@1.0.0.txt": "Drei Bücher.\n", "faq@1.0.0.txt": "Ask.\n"])
        let bundled = try await gate("--bundle", path("texts"), "--offline", "--accept", state: "bundled")
        #expect(bundled.code == 0 && bundled.output.contains("eula 1.0.0 (de), which came with the app"))
        #expect(try await gate("--key", open, "--accept").output.contains("the manifest has no signature"))
        #expect(try await gate("--key", secret, "--accept").output.contains("the gate needs the public key"))
        try await publish([:], "--key", secret)
        #expect(try await gate("--key", open, "--accept").code == 0)
        try serve("versions.json", adding: " ")
        let forged = try await gate("--key", open)
        #expect(forged.code == 0 && forged.output.contains("does not fit the key") && forged.output.contains("may not be the newest"))
        #expect(try await gate("--key", open, "--accept", state: "other").code == 1)
    }

    @Test(
        arguments: [
            ["--url"], ["--url", "texts"], ["--url", "ftp://example.com"], ["--accept", "--withdraw"], ["--key", "public.pem"],
            ["--bundle", "texts"], ["--url", "https://example.com", "--fresh"], ["--export"], ["--export", "--accept"], ["accept"],
            ["--text", "eula"], ["--app", "new"], ["--language", "de_AT"], ["--language", ","], ["--state", ""],
        ])
    func `T13: wrong usage of the gate is refused before it opens`(arguments: [String]) {
        #expect(throws: Mistake.self) { try GateCommand(arguments) }
    }

    @Test(arguments: ["{}", #"{"texts":{}}"#, "[]"])
    func `T13: a manifest without texts opens no gate`(manifest: String) {
        #expect(throws: Mistake.self) { try Catalog.names(in: Data(manifest.utf8)) }
    }

    @Test func `T18: the languages of a text are files in its folder`() {
        let catalog = Catalog(of: ["eula", "eula/de", "eula/de-AT", "faq", "notes/DE", "/de"])
        #expect(catalog.texts == ["eula": ["de", "de-AT"], "faq": [], "notes/DE": [], "/de": []])
    }

    /// Runs the commands of the article as a reader copies them, apart from the build and the server.
    @Test(.enabled(if: !ChildProcess.pythons.isEmpty, "Python's server is missing"))
    func `T22: the commands of the article publish, switch, accept, and export a text in two languages`() async throws {
        let article = URL(filePath: #filePath).deletingLastPathComponent().appending(
            path: "../../../Sources/TextStore/TextStore.docc/Publishing.md")
        var commands: [Substring] = [], isCommand = false
        for line in try String(contentsOf: article, encoding: .utf8).split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix("```") { isCommand = line == "```sh" } else if isCommand { commands.append(line) }
        }
        try #require(commands.contains { $0.hasPrefix("python3 -m http.server 8000 ") })
        try FileManager.default.createDirectory(at: place.file("texts"), withIntermediateDirectories: true)
        let script = #"exec "$0" -u -m http.server 0 --bind 127.0.0.1 --directory "$1" 2>/dev/null"#
        let server = try ChildProcess("/bin/sh", ["-c", script, try #require(ChildProcess.pythons.first), path("texts")])
        let greeting = try #require(try await server.nextLine())
        let port = try #require(greeting.split(separator: " ").compactMap { Int($0) }.first, "\(greeting)")
        // The server tells changes by seconds, which pass while a reader builds.
        let preparation = """
            set -e; program=$0; cd "$1"; count=0
            swift() {
                shift 2
                if [ "$1" != publish ]; then "$program" --state state "$@"; return; fi
                "$program" "$@"
                count=$((count + 1)); touch -t "20260101000$count" texts/versions.json
            }
            exec 2>&1 </dev/null

            """
        let body = commands.filter { !$0.hasPrefix("python3 ") }.joined(separator: "\n")
            .replacing("http://127.0.0.1:8000", with: "http://127.0.0.1:\(port)")
        let ended = try await run(preparation + body, [place.url.path(percentEncoded: false)])
        #expect(ended.code == 0, "\(ended.output)")
        for part in [
            "eula/de: 1.0.0 is new", "eula 1.0.0 (de) is accepted", "eula 1.0.0 (en) needs no acceptance", "eula/de: 1.0.0 → 2.0.0",
            "- Sie dürfen drei Bücher ausleihen.", "+ Sie dürfen fünf Bücher ausleihen.", "eula 2.0.0 (de) is accepted", "x-signature: ",
        ] {
            #expect(ended.output.contains(part), "“\(part)” is missing in:\n\(ended.output)")
        }
        let table = try String(contentsOf: place.file("acceptances.csv"), encoding: .utf8)
        #expect(table.split(separator: "\r\n").filter { $0.hasPrefix("accepted,eula,") }.count == 2, "\(table)")
        server.kill()
    }
}

#endif
