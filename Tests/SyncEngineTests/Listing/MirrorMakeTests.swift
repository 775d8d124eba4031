import Foundation
import LoopbackOrigin
import StoreCore
import StorePlatform
import Testing
import Trials
@testable import SyncEngine

#if os(macOS) || os(Linux)

/// `mirror make`, and the options of `mirror` for filters, rates, backups, checks and tokens.
struct MirrorMakeTests {
    private let published: DirectoryBench
    private let copy: DirectoryBench
    private let origin: LoopbackOrigin

    init() throws {
        published = try DirectoryBench()
        copy = try DirectoryBench()
        for (path, text) in ["a.txt": "one", "d/b é.txt": "two", "d/c.tmp": "three", ".hidden": "four"] { try published.write(text, path) }
        // A server of files, as any web server is one.
        origin = try LoopbackOrigin { [root = published.url] request in
            let path = String(request.path.dropFirst()).removingPercentEncoding ?? ""
            guard let data = try? Data(contentsOf: root.appending(path: path)) else { return .notFound(for: request) }
            return .data(data).tagged().ranged(by: request)
        }
    }

    private func path(_ url: URL) -> String { url.path(percentEncoded: false) }

    private func make(_ options: String...) async throws {
        let list = path(published.url.appending(path: "list.ndjson"))
        let (code, output) = try await runMirror(["make", path(published.url), list] + options)
        #expect(code == 0, "\(output)")
    }

    private func mirror(_ options: String..., query: String = "", environment: String = "") async throws -> (code: Int32, output: String) {
        try await copy.mirror(origin.url.appending(path: "list.ndjson").absoluteString + query, options, after: environment)
    }

    @Test func `mirror make writes a list that mirror reads, with moves and without its own list`() async throws {
        try await make()
        #expect(try await mirror().code == 0)
        let expected = ["a.txt": "one", "d/b é.txt": "two", "d/c.tmp": "three", ".hidden": "four"]
        #expect(try copy.files == expected)
        try FileManager.default.moveItem(at: published.url.appending(path: "d"), to: published.url.appending(path: "e"))
        try FileManager.default.createSymbolicLink(
            at: published.url.appending(path: "link"), withDestinationURL: URL(filePath: "/etc/passwd"))
        try await make()
        let plan = try await mirror("--dry-run")
        #expect(plan.output.contains("move    d/c.tmp → e/c.tmp"))
        origin.forget()
        let (code, output) = try await mirror()
        #expect(code == 0 && output.contains("2 moved"), "\(output)")
        #expect(origin.requests.map(\.path) == ["/list.ndjson"])
        #expect(try copy.files["e/b é.txt"] == "two")
        let list = try String(contentsOf: published.url.appending(path: "list.ndjson"), encoding: .utf8)
        #expect(list.hasSuffix("{\"count\":4}\n") && !list.contains("link") && !list.contains("list.ndjson"))
        #expect(try await runMirror(["make", path(published.url) + "/nothing"]).code == 64)
        #expect(try await runMirror(["--help"], after: "MIRROR_TOKEN=").code == 0, "an empty variable is no token")
    }

    #if os(Linux)
    @Test func `S27: mirror make rounds the time of a file down to its second`() async throws {
        let file = path(published.url.appending(path: "a.txt"))
        #expect(try ChildProcess("/usr/bin/touch", ["-d", "@1700000000.999999999", file]).wait())
        try await make("--times")
        let list = try String(contentsOf: published.url.appending(path: "list.ndjson"), encoding: .utf8)
        #expect(list.contains("\"mtime\":1700000000,"), "\(list)")
    }
    #endif

    @Test func `S21: both sides leave files out by patterns`() async throws {
        try await make("--exclude", "*.tmp")
        let (code, output) = try await mirror("--exclude", ".hidden")
        #expect(code == 0 && output.contains("1 excluded"), "\(output)")
        #expect(try copy.files == ["a.txt": "one", "d/b é.txt": "two"])
        let all = try await mirror("--exclude", "*")
        #expect(all.code == 2 && all.output.contains("--exclude"), "\(all.output)")
    }

    @Test func `S22: a rate streams every file, and a rate of zero is refused`() async throws {
        try await make()
        #expect(try await mirror("--limit-rate", "0").code == 64)
        #expect(try await mirror("--limit-rate", "5x").code == 64)
        #expect(try await mirror("--limit-rate", "2M").code == 0)
        #expect(try copy.files.count == 4)
    }

    @Test func `S24, S25: mirror keeps backups, and finds and repairs damaged files`() async throws {
        try await make()
        #expect(try await mirror().code == 0)
        try published.write("one more", "a.txt")
        try await make()
        let backup = try DirectoryBench()
        #expect(try await mirror("--backup-dir", path(backup.url)).code == 0)
        #expect(try backup.files == ["a.txt": "one"])
        let fine = try await mirror("--verify")
        #expect(fine.code == 0 && fine.output.contains("every installed file has its content"), "\(fine.output)")
        let file = copy.url.appending(path: "a.txt")
        if !isRoot() {
            try FileManager.default.setAttributes([.posixPermissions: 0], ofItemAtPath: path(file))
            let unread = try await mirror("--verify")
            #expect(unread.code == 1 && unread.output.contains("every installed file that can be read"), "\(unread.output)")
            try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path(file))
        }
        let shell = #"touch -r "$0" "$0.time"; printf X | dd of="$0" conv=notrunc 2>/dev/null; touch -r "$0.time" "$0"; rm "$0.time""#
        for text in ["one more", "three", nil] {
            // The list may give the content of another file to the damaged one, or no longer have it.
            if text != "one more" {
                try FileManager.default.removeItem(at: published.url.appending(path: text == nil ? "a.txt" : "d/c.tmp"))
                if let text { try published.write(text, "a.txt") }
                try await make()
            }
            #expect(try ChildProcess("/bin/sh", ["-c", shell, path(file)]).wait())
            let damaged = try await mirror("--verify")
            #expect(damaged.code == 1 && damaged.output.contains("damaged a.txt"), "\(damaged.output)")
            #expect(try copy.files["a.txt"]?.hasPrefix("X") == true)
            #expect(try await mirror("--repair").code == 0)
            #expect(try copy.files["a.txt"] == text)
        }
        try FileManager.default.removeItem(at: copy.url.appending(path: "d/b é.txt"))
        try copy.write("written since", ".hidden")
        let changed = try await mirror("--verify")
        #expect(changed.code == 1 && changed.output.contains("missing d/b é.txt"), "\(changed.output)")
        #expect(changed.output.contains("edited  .hidden") && changed.output.contains("1 missing, 1 edited;"), "\(changed.output)")
        let kept = try await mirror("--verify", "--keep-local")
        #expect(kept.code == 1 && kept.output.contains("edited  .hidden"), "\(kept.output)")
        // A file that a run would move to its place is missing, too.
        try published.write("old", "old")
        try await make()
        #expect(try await mirror().code == 0)
        try FileManager.default.moveItem(at: published.url.appending(path: "old"), to: published.url.appending(path: "new"))
        try await make()
        let moved = try await mirror("--verify")
        #expect(moved.code == 1 && moved.output.contains("missing new"), "\(moved.output)")
    }

    @Test func `mirror make does not read an excluded directory, and names the files that no list can contain`() async throws {
        try published.write("five", ".Storehouse/own")
        for name in ["line\nend", "bell\u{7}/file", "bell\u{7}.tmp"] { try published.write("no client would accept it", name) }
        let closed = published.url.appending(path: "closed")
        try published.write("six", "closed/file")
        try FileManager.default.setAttributes([.posixPermissions: 0], ofItemAtPath: path(closed))
        defer { try? FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: path(closed)) }
        #if os(Linux)
        #expect(try ChildProcess("/bin/sh", ["-c", #"printf x > "$0/$(printf 'bad\377')""#, path(published.url)]).wait())
        #endif
        let made = try await runMirror(["make", path(published.url), "--exclude", "/closed/", "--exclude", "*.tmp"])
        #expect(made.code == 0 && made.output.contains("{\"count\":3}"), "\(made.output)")
        #expect(made.output.contains(#"left out line\u{A}end: no list"#) && made.output.contains(#"left out bell\u{7}:"#), "\(made.output)")
        #expect(!made.output.contains(".tmp"), "an excluded file needs no mention: \(made.output)")
        #if os(Linux)
        #expect(made.output.contains("its name is not UTF-8"), "\(made.output)")
        #endif
    }

    @Test(arguments: [false, true])
    func `S27: mirror make writes metadata by option, and mirror applies it by option`(isRead: Bool) async throws {
        func at(_ bench: DirectoryBench, _ name: String) -> String { path(bench.url.appending(path: name, directoryHint: .notDirectory)) }
        func text(_ name: String) -> String? { try? FileManager.default.destinationOfSymbolicLink(atPath: at(copy, name)) }
        let attributes: [FileAttributeKey: Any] = [.posixPermissions: 0o4750, .modificationDate: Date(timeIntervalSince1970: 1e9 + 0.5)]
        try FileManager.default.setAttributes(attributes, ofItemAtPath: at(published, "a.txt"))
        try FileManager.default.createDirectory(atPath: at(published, "e/f"), withIntermediateDirectories: true)
        for (name, text) in [("d/l", "../a.txt"), ("passwd", "/etc/passwd")] {
            try FileManager.default.createSymbolicLink(atPath: at(published, name), withDestinationPath: text)
        }
        let list = path(published.url.appending(path: "list.ndjson"))
        let made = try await runMirror(["make", path(published.url), list, "--metadata"])
        #expect(made.code == 0 && made.output.contains("left out passwd"), "\(made.output)")
        #expect(made.output.contains("4 files"))
        let lines = try String(contentsOfFile: list, encoding: .utf8).split(separator: "\n")
        #expect(lines.count == 7 && lines.last == #"{"count":6}"# && lines.contains(#"{"path":"e/f","type":"directory"}"#))
        #expect(lines.contains(#"{"link":"../a.txt","path":"d/l"}"#))
        let options = isRead ? ["--times", "--modes", "--empty-dirs", "--links"] : []
        let address = origin.url.appending(path: "list.ndjson").absoluteString
        let dry = try await copy.mirror(address, ["--dry-run"] + options)
        #expect(dry.output.contains("set     d/l  (link → ../a.txt)") == isRead, "\(dry.output)")
        let (code, output) = try await copy.mirror(address, options)
        #expect(code == 0 && output.contains("4 added") && output.contains("2 with new metadata") == isRead, "\(output)")
        let status = try #require(try FileStatus.of(path: at(copy, "a.txt")))
        #expect((status.permissions == 0o750) == isRead && (status.modified == 1_000_000_000_000_000_000) == isRead)
        #expect(text("d/l") == (isRead ? "../a.txt" : nil))
        #expect(try (FileStatus.of(path: at(copy, "e/f"))?.kind == .directory) == isRead)
    }

    @Test(arguments: ["file", "environment", "header"])
    func `a token reaches the host of the list only, and no output`(way: String) async throws {
        let other = try LoopbackOrigin { _ in .data(Data("elsewhere".utf8)) }
        let line = #"{"path":"x","url":"\#(other.url.appending(path: "x").absoluteString)","version":"1"}"#
        try published.write(
            line + "\n{\"path\":\"missing\",\"version\":\"1\"}\n{\"path\":\"a.txt\",\"version\":\"1\"}\n{\"count\":3}\n", "list.ndjson")
        let secrets = try DirectoryBench()
        try secrets.write(way == "header" ? "authorization: Bearer s3cret\nX-Own: 1\n" : "s3cret\n", "secret")
        let secret = path(secrets.url.appending(path: "secret"))
        let result =
            switch way {
            case "file": try await mirror("--token-file", secret, query: "?signature=hidd3n")
            // The file precedes the variable.
            case "header": try await mirror("--header-file", secret, query: "?signature=hidd3n", environment: "MIRROR_TOKEN=other")
            default: try await mirror(query: "?signature=hidd3n", environment: "MIRROR_TOKEN=s3cret")
            }
        #expect(result.code == 1 && result.output.contains("missing"), "\(result.output)")
        #expect(!result.output.contains("s3cret") && !result.output.contains("hidd3n"), "\(result.output)")
        #expect(try copy.files == ["a.txt": "one", "x": "elsewhere"])
        #expect(origin.requests.allSatisfy { $0.headers["Authorization"] == "Bearer s3cret" })
        #expect(other.requests.count == 1 && other.requests.allSatisfy { $0.headers["Authorization"] == nil && $0.headers["X-Own"] == nil })
    }
}

#endif
