import Foundation
import LoopbackOrigin
import StoreCore
import Testing
import Trials

@testable import TextStore

/// T4, T5, T11: invalid responses, unusual names, and disks that refuse writes.
struct RefusalTests {
    let bench: Bench

    init() throws { bench = try Bench() }

    struct Bad: Sendable, CustomStringConvertible {
        var description: String
        var response: LoopbackOrigin.Response
        var code: TextStoreError.Code
        var entry = #""2.0.0""#
    }

    static let bad: [Bad] = [
        Bad(description: "HTML with 200", response: .html("<html>Sign in</html>"), code: .unexpectedMediaType),
        Bad(description: "HTML called plain text", response: .text(" \n<!DOCTYPE html><p>Sign in"), code: .unexpectedMediaType),
        Bad(description: "no type", response: .init(body: Data("x".utf8)), code: .unexpectedMediaType),
        Bad(description: "an image", response: .data(Data("x".utf8), type: "image/png"), code: .unexpectedMediaType),
        Bad(description: "404", response: .text("not here", status: 404), code: .unexpectedStatus),
        Bad(description: "203", response: .text("changed on the way", status: 203), code: .unexpectedStatus),
        Bad(description: "206", response: .text("a part", status: 206), code: .unexpectedStatus),
        Bad(description: "304 to no condition", response: .status(304), code: .unexpectedStatus),
        Bad(
            description: "401 with a challenge", response: .text("no", status: 401).setting("WWW-Authenticate", to: "Basic realm=\"x\""),
            code: .unexpectedStatus),
        Bad(description: "another scheme", response: .redirect(to: "https://127.0.0.1:1/"), code: .unexpectedStatus),
        Bad(description: "itself", response: .redirect(to: "/eula.txt"), code: .unexpectedStatus),
        Bad(description: "empty", response: .text(""), code: .malformedText),
        Bad(description: "a mark alone", response: .text("\u{FEFF}"), code: .malformedText),
        Bad(description: "UTF-16", response: .data(Data([0xFF, 0xFE, 0x41, 0x00]), type: "text/plain"), code: .malformedText),
        Bad(description: "declared UTF-16", response: .data(Data("x".utf8), type: "text/plain; charset=utf-16"), code: .malformedText),
        Bad(description: "not UTF-8", response: .data(Data([0x61, 0xC3, 0x28]), type: "text/plain"), code: .malformedText),
        Bad(description: "NUL", response: .text("a\0b"), code: .malformedText),
        Bad(description: "too large", response: .text(String(repeating: "x", count: 1_000_001)), code: .tooLarge),
        Bad(description: "a bomb", response: .gzipBomb(inflatingTo: 100_000_000, type: "text/plain"), code: .tooLarge),
        Bad(
            description: "another digest", response: .text("Remote terms 2"), code: .digestMismatch,
            entry: #"{"version":"2.0.0","sha256":"\#(sha256("Remote terms 3"))"}"#),
        Bad(
            description: "another length", response: .text("Remote terms 2"), code: .lengthMismatch,
            entry: #"{"version":"2.0.0","length":13}"#),
        Bad(
            description: "an address of the disk", response: .text("x"), code: .malformedEntry,
            entry: #"{"version":"2.0.0","url":"file:///etc/passwd"}"#),
    ]

    @Test(arguments: bad, RealTextTransport.available)
    func `T4, T5: an invalid response is refused by its code, and the last good text stays`(
        bad: Bad, transport: RealTextTransport
    ) async throws {
        bench.serve(manifest: #"{"texts":{"eula":\#(bad.entry)}}"#)
        bench.origin.on(.get, "/eula.txt") { _ in bad.response }
        let store = try await bench.started(fetcher: transport.fetcher())
        let text = try await store.text(for: bench.source("eula"), awaiting: patient)
        #expect(text.version == SemanticVersion("1.0.0") && text.text == "Bundled terms 1" && text.staleSince != nil)
        #expect(
            text.fallbackReason?.code == bad.code && text.fallbackReason?.identifier == "eula", "\(String(describing: text.fallbackReason))"
        )
        try await bench.events.waitForRefusal { $0.code == bad.code && $0.identifier == "eula" }
        #expect(text.fallbackReason?.message.hasPrefix("cannot ") == true, "the message names the failed operation")
        #expect(!bench.place.files.contains { $0.hasSuffix(".text") })
    }

    @Test(
        arguments: [
            LoopbackOrigin.Misbehavior.truncate(afterBodyBytes: 5), .reset(afterBodyBytes: 5), .resetBeforeHead, .declareLengths([20]),
        ], RealTextTransport.available)
    func `T5: a truncated text is refused`(misbehavior: LoopbackOrigin.Misbehavior, transport: RealTextTransport) async throws {
        bench.serve(manifest: #"{"eula":"2.0.0"}"#)
        bench.origin.on(.get, "/eula.txt") { _ in .text("Remote terms 2").misbehaving(misbehavior, .closeSilently) }
        let store = try await bench.started(fetcher: transport.fetcher())
        let text = try await store.text(for: bench.source("eula"), awaiting: patient)
        #expect(text.text == "Bundled terms 1" && text.fallbackReason != nil)
        #expect(!bench.place.files.contains { $0.hasSuffix(".text") })
    }

    @Test func `T4: a digest makes a text verified; without a digest it is revalidated and unverified`() async throws {
        bench.serve(manifest: #"{"texts":{"eula":{"version":"2.0.0","sha256":"\#(sha256("\u{FEFF}Good"))","length":7},"privacy":"2.0.0"}}"#)
        bench.serve("eula", "\u{FEFF}Good")
        bench.serve("privacy", "Remote privacy 2")
        let store = try await bench.started()
        let eula = try await store.text(for: bench.source("eula"), awaiting: patient)
        #expect(eula.text == "Good" && eula.isVerified && eula.digest == sha256("Good"))
        let privacy = try await store.text(for: bench.source("privacy"), awaiting: patient)
        #expect(privacy.text == "Remote privacy 2" && !privacy.isVerified)
        #expect(bench.origin.requests(to: "/eula.txt").first?.headers["Cache-Control"] == nil)
        #expect(bench.origin.requests(to: "/privacy.txt").first?.headers["Cache-Control"] == "no-cache")
    }

    @Test(arguments: [TextStoreError.Code.digestMismatch, .lengthMismatch])
    func `T4: a stale response for a new version is refused by its digest or length`(code: TextStoreError.Code) async throws {
        bench.serve(eula: 2)
        let store = try await bench.started().refreshed()
        let new = "Remote terms 3.", fact = code == .digestMismatch ? #""sha256":"\#(sha256(new))""# : #""length":15"#
        bench.serve(manifest: #"{"texts":{"eula":{"version":"3.0.0",\#(fact)}}}"#)
        await expectError(code, of: "eula") { try await store.refresh() }
        let text = try await store.text(for: bench.source("eula"))
        #expect(text.version == SemanticVersion("2.0.0") && text.staleSince != nil)
        try await bench.events.waitForRefusal { $0.code == code && $0.identifier == "eula" }
        // An origin that keeps its validator for new bytes would confirm the old ones, which are refused.
        bench.origin.on(.get, "/eula.txt") { $0.headers["If-None-Match"] == nil ? .text(new) : .status(304) }
        #expect(try await store.refreshed().text(for: "eula").text == new)
    }

    @Test(arguments: [
        "../../x", "/etc/passwd", ".", "..", "CON", String(repeating: "a", count: 4096), "EULA", "eula", "😀\u{301}", "a\0b", " ",
        "texts/eula", "\u{301}a",
    ])
    func `T11: any name has a file of its own inside the directory`(name: String) async throws {
        bench.serve(manifest: "{}")
        bench.origin.on(.get, "/text") { _ in .text("text of \(name.utf8.count)") }
        let store = try bench.store(name)
        let source = TextSource(identifier: name, remoteFile: RemoteFile(url: bench.origin.url.appending(path: "text")))
        try await store.register(source)
        #expect(try await store.text(for: source, awaiting: patient).text == "text of \(name.utf8.count)")
        let files = bench.place.files.filter { $0.hasSuffix(".text") }
        #expect(files.count == 1 && files[0].hasPrefix("state/"))
        #expect(files[0].split(separator: "/").allSatisfy { $0.utf8.count < 100 })
        #expect(bench.place.files.allSatisfy { $0.hasPrefix("state/") || $0.hasPrefix("app-") })
    }

    @Test func `T11: texts that differ in case stay distinct after a restart, and spellings of one name are one text`() async throws {
        let names = ["EULA", "eula", "caf\u{E9} 👩‍👩‍👧"]
        func source(_ name: String, _ number: Int) -> TextSource {
            TextSource(identifier: name, remoteFile: RemoteFile(url: bench.origin.url.appending(path: "\(number)")))
        }
        for number in names.indices { bench.origin.on(.get, "/\(number)") { _ in .text("text \(number)") } }
        let store = try bench.store()
        for (number, name) in names.enumerated() {
            try await store.register(source(name, number))
            #expect(try await store.text(for: source(name, number), awaiting: patient).text == "text \(number)")
        }
        bench.origin.goDown()
        let next = try bench.store()
        for (number, name) in ["EULA", "eula", "cafe\u{301} 👩‍👩‍👧"].enumerated() {
            try await next.register(source(name, number))
            #expect(try await next.text(for: source(name, number)).text == "text \(number)")
        }
        #expect(bench.place.files.filter { $0.hasSuffix(".text") }.count == 3)
        #expect(bench.events.faults.isEmpty)
    }

    @Test(
        arguments: [
            (.gzipBomb(inflatingTo: 50_000_000, type: "application/json"), .tooLarge),
            (.json(literal: #"{"eula":"2.0.0"}"#, status: 404), .unexpectedStatus),
            (.json(literal: #"{"eula":"2.0.0"}"#, status: 500), .unexpectedStatus),
            (.json(literal: #"{"eula":"2.0.0"}"#, status: 203), .unexpectedStatus),
            (.json(literal: "not JSON"), .malformedManifest), (.json(literal: "[]"), .malformedManifest),
            (.json(literal: "<html></html>"), .malformedManifest), (.json(literal: #"{"eula":"1.2"}"#), .malformedEntry),
            (.json(literal: #"{"eula":null}"#), .malformedEntry), (.json(literal: #"{"unknown":"9.0.0"}"#), .unconfirmed),
        ] as [(LoopbackOrigin.Response, TextStoreError.Code)])
    func `T5, T6: a manifest that inflates to 50 MB, has another status than 200, or is invalid leaves the texts unchanged`(
        response: LoopbackOrigin.Response, code: TextStoreError.Code
    ) async throws {
        bench.origin.on(.get, "/versions.json") { _ in response }
        let store = try await bench.started()
        bench.serve("eula", "Foreign")
        let text = try await store.text(for: bench.source("eula"), awaiting: patient)
        #expect(line(text).hasPrefix("1.0.0 bundle: Bundled terms 1") && text.fallbackReason?.code == code)
    }

    @Test func `T11: empty names are refused with a clear error`() async throws {
        let session = #expect(throws: TextStoreError.self) { try bench.store("") }
        #expect(session?.code == .invalidName)
        let store = try bench.store()
        await expectError(.invalidName) { try await store.register(TextSource(identifier: "")) }
        let remote = try #require(URL(string: "https://example.org/x"))
        #expect(throws: TextStoreError.self) { try TextStore(session: "x", directory: remote) }
    }

    @Test func `T11: two sessions are independent`() async throws {
        bench.serve(eula: 2)
        try await bench.started("one").refresh()
        bench.origin.goDown()
        #expect(line(try await bench.started("two").text(for: bench.source("eula"))) == "1.0.0 bundle: Bundled terms 1")
        #expect(try await bench.started("one").text(for: bench.source("eula")).version == SemanticVersion("2.0.0"))
    }

    @Test func `T5: nothing is switched if nothing can be saved, and bundled texts are available`() async throws {
        // A file in place of the directory prevents saves even for the superuser.
        try Data("in the way".utf8).write(to: bench.place.file("state"))
        bench.serve(eula: 2)
        let store = try await bench.started()
        let text = try await store.text(for: bench.source("eula"), awaiting: patient)
        #expect(text.text == "Bundled terms 1" && text.fallbackReason?.code == .fileSystem)
        _ = await #expect(throws: TextStoreError.self) { try await store.accept(text) }
        #expect(try Data(contentsOf: bench.place.file("state")) == Data("in the way".utf8))
    }

    @Test func `T3: a store whose text is refused shows the newer text that another store has saved`() async throws {
        bench.serve(eula: 3)
        let faster = try await bench.started()
        let slow = try bench.store(
            fetcher: RevalidatingClosureFetcher { file, _ in
                if file.url.lastPathComponent == "versions.json" {
                    return .modified(RemoteText(bytes: Data(#"{"eula":"2.0.0"}"#.utf8), contentType: "application/json"))
                }
                try await faster.refresh()
                return .modified(RemoteText(bytes: Data("Remote terms 2".utf8), contentType: "text/plain"))
            })
        try await bench.start(slow)
        await expectError(.belowFloor) { try await slow.refresh() }
        #expect(try await line(slow.text(for: bench.source("eula"))) == "3.0.0 cache: Remote terms 3")
    }
}
