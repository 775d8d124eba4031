import Foundation
import LoopbackOrigin
import StoreCore
import Testing
import Trials
@testable import SyncEngine

#if os(macOS) || os(Linux)

/// Addresses of manifests and files, and the sentences of `mirror`.
struct MirrorAddressTests {
    private let bench: DirectoryBench
    private let origin: LoopbackOrigin
    private let list = WatchedState("")

    init() throws {
        bench = try DirectoryBench()
        origin = try LoopbackOrigin { [list] request in
            if request.path.hasPrefix("/lists/all") { return .init(body: Data(list.current.utf8)) }
            if request.path.contains("missing") { return .notFound(for: request) }
            return .data(Data(request.target.utf8))
        }
    }

    private func serve(_ files: [(path: String, url: String?)]) {
        list.update {
            $0 =
                files.map { file in
                    let path = file.path.replacing("\\", with: "\\\\")
                    return #"{"path":"\#(path)","version":"1""# + (file.url.map { #","url":"\#($0)""# } ?? "") + "}\n"
                }.joined() + #"{"count":\#(files.count)}"# + "\n"
        }
    }

    private func mirror(_ options: String..., query: String = "") async throws -> (code: Int32, output: String) {
        try await bench.mirror(origin.url.appending(path: "lists/all").absoluteString + query, options)
    }

    @Test func `S8: mirror requests every legal address as it is`() async throws {
        let addresses = [
            ("query", "/files/a?token=x%2Fy&z=1", "/files/a?token=x%2Fy&z=1"),
            ("relative", "../b?c", "/b?c"), ("backslash", "/a%5Cb", "/a%5Cb"), ("dots", "/x/%2e%2e/y", "/y"),
            ("capital dots", "/x/%2E/y%2E", "/x/y."), ("encoded slash", "/x%2Fy", "/x%2Fy"),
            ("encoded percent", "/%252e%252e", "/%252e%252e"), ("brackets", "/a[1]", "/a%5B1%5D"), ("empty segment", "/a//b/", "/a//b/"),
            ("escaped and raw", "/caf%C3%A9/\u{E9} x?q=%2F\u{E9}", "/caf%C3%A9/%C3%A9%20x?q=%2F%C3%A9"),
        ]
        serve(addresses.map { ($0.0, $0.1) })
        let (code, output) = try await mirror(query: "?signature=1&expires=2")
        #expect(code == 0, "\(output)")
        for (path, _, target) in addresses { #expect(try bench.files[path] == target, "\(path)") }
    }

    @Test func `S8: mirror escapes the address of the manifest byte by byte`() async throws {
        serve([("a", nil)])
        let (code, output) = try await mirror(query: "?name=caf%C3%A9/\u{E9}")
        #expect(code == 0, "\(output)")
        #expect(origin.requests.contains { $0.target == "/lists/all?name=caf%C3%A9/%C3%A9" })
    }

    @Test func `S8: mirror requests files with any name that the disk accepts`() async throws {
        let paths = [
            "back\\slash", "%2e%2e", "d/%2e", "a?b#c", "%5C", "...", "x/..y", "50%41", "what?", "part#2", "c:d", "a b/\u{301}e",
            "semi;colon", "plus+", "50A", "what", "part",
        ]
        serve(paths.map { ($0, nil) })
        let (code, output) = try await mirror()
        #expect(code == 0, "\(output)")
        for path in paths { #expect(try bench.files[path]?.removingPercentEncoding == "/lists/\(path)", "\(path)") }
    }

    @Test(arguments: ["http://", "ftp://127.0.0.1/x", "http://[::1", "mailto:x@y"])
    func `S5: mirror tries a malformed address once`(address: String) async throws {
        serve([("a", address), ("b", nil)])
        let (code, output) = try await mirror("--retries", "3")
        #expect(code == 1)
        #expect(output.contains("“\(address)” is not an http or https URL"), "\(output)")
        #expect(!output.contains("tried"), "\(output)")
        #expect(bench.exists("b"))
    }

    @Test func `S3: the sentences of mirror's gate contain the counts`() async throws {
        serve((0..<40).map { ("f\($0)", nil) })
        #expect(try await mirror().code == 0)
        serve((0..<15).map { ("f\($0)", nil) })
        let removal = try await mirror()
        #expect(removal.code == 2)
        #expect(removal.output.contains("remove 25 of 40 local items") && removal.output.contains("--max-delete"))
        #expect(!removal.output.contains("sync("))
        serve([])
        let empty = try await mirror()
        #expect(empty.output.contains("40 items") && empty.output.contains("--allow-empty"))
        serve((0..<40).map { ("f\($0)", nil) })
        let limit = try await mirror("--max-files", "39")
        #expect(limit.code == 3)
        #expect(limit.output.contains("39") && limit.output.contains("--max-files"))
    }

    @Test func `S5: with an option, mirror removes files although another file is missing at the origin`() async throws {
        serve((0..<40).map { ("f\($0)", nil) })
        #expect(try await mirror().code == 0)
        serve((0..<30).map { ("f\($0)", nil) } + [("missing", nil)])
        let waiting = try await mirror()
        #expect(waiting.code == 1)
        #expect(waiting.output.contains("10 removals pending"))
        #expect(bench.exists("f35"))
        let removing = try await mirror("--delete-despite-failures")
        #expect(removing.code == 1)
        #expect(removing.output.contains("10 removed") && !removing.output.contains("pending"))
        #expect(!bench.exists("f35") && bench.exists("f29"))
    }

    @Test func `S18: mirror says that a first run meets the user's own files`() async throws {
        for number in 0..<30 { try bench.write("mine \(number)", "f\(number)") }
        serve((0..<40).map { ("f\($0)", nil) })
        let dry = try await mirror("--dry-run")
        #expect(dry.output.contains("update  f7  (edited locally)") && dry.output.contains("stop "))
        let refused = try await mirror()
        #expect(refused.code == 2)
        #expect(refused.output.contains("30"))
        #expect(try bench.files["f7"] == "mine 7")
        let kept = try await mirror("--keep-local")
        #expect(kept.code == 0)
        #expect(kept.output.contains("30 edited locally"))
        #expect(try bench.files["f7"] == "mine 7")
    }
}

#endif
