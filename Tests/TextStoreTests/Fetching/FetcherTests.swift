import Foundation
import LoopbackOrigin
import RemoteHTTP
import StoreCore
import StoreCoreTesting
import Testing
import Trials

@testable import TextStore

/// T15: the HTTP fetcher, over each transport.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct FetcherTests {
    let bench: Bench

    init() throws { bench = try Bench() }

    private func file(_ path: String, limit: Int = 1_000_000, headers: [String: String] = [:]) -> RemoteFile {
        RemoteFile(url: bench.origin.url.appending(path: path), headers: headers, limit: limit)
    }

    private func error(of fetch: () async throws -> FetchResult<RemoteText>) async throws -> TextStoreError {
        try #require(await #expect(throws: TextStoreError.self) { _ = try await fetch() })
    }

    private func text(_ result: FetchResult<RemoteText>) -> RemoteText? { if case .modified(let text, _, _) = result { text } else { nil } }

    // MARK: Time

    @Test(arguments: RealTextTransport.available, [0, 2])
    func `T15: a deadline covers all redirects, and ends the request on the wire`(_ transport: RealTextTransport, redirects: Int)
        async throws
    {
        bench.origin.on(.get, "/slow") { _ in .text("x").misbehaving(.neverAnswer) }
        bench.origin.on(.get, "/1") { _ in .redirect(to: "/slow") }
        bench.origin.on(.get, "/2") { _ in .redirect(to: "/1") }
        let fetcher = try transport.fetcher(deadline: .seconds(5), time: bench.time)
        async let late = error { try await fetcher.fetch(param: file(redirects == 0 ? "slow" : "2"), revalidating: nil) }
        try await bench.origin.waitUntil { $0.requests(to: "/slow").count == 1 }
        try await bench.time.advance(by: .seconds(5), sleepers: 1)
        #expect(try await late.code == .timedOut)
        try await bench.origin.waitUntil { $0.requests(to: "/slow").first?.ending == .clientLeft }
    }

    @Test(arguments: RealTextTransport.available)
    func `T15: a canceled fetch throws at once and ends the request on the wire`(_ transport: RealTextTransport) async throws {
        bench.origin.on(.get, "/slow") { _ in .text("0123456789").misbehaving(.stall(afterBodyBytes: 5)) }
        let fetcher = try transport.fetcher(time: bench.time), file = file("slow")
        let call = Task { try await fetcher.fetch(param: file, revalidating: nil) }
        try await bench.origin.waitUntil { $0.requests(to: "/slow").count == 1 }
        call.cancel()
        await #expect(throws: CancellationError.self) { _ = try await call.value }
        try await bench.origin.waitUntil { $0.requests(to: "/slow").first?.ending == .clientLeft }
    }

    @Test(arguments: RealTextTransport.available)
    func `T15: a fetch that was canceled before it begins sends nothing`(_ transport: RealTextTransport) async throws {
        bench.serve("eula", "New")
        let fetcher = try transport.fetcher(), file = file("eula.txt")
        for _ in 0..<20 {
            let call = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                return try await fetcher.fetch(param: file, revalidating: nil)
            }
            await #expect(throws: CancellationError.self) { _ = try await call.value }
        }
        _ = try await fetcher.fetch(param: file, revalidating: nil)
        #expect(bench.origin.requests.count == 1)
    }

    @Test(arguments: RealTextTransport.available)
    func `T9: an error carries the server's Retry-After, in seconds or as a date`(_ transport: RealTextTransport) async throws {
        let now = Date(timeIntervalSince1970: 784_111_777)
        let fetcher = try transport.fetcher(time: ManualTime(date: now))
        let wishes: [(String, Duration?)] = [
            ("120", .seconds(120)), ("0", .zero), ("Sun, 06 Nov 1994 08:51:07 GMT", .seconds(90)),
            ("Sun, 06 Nov 1994 08:49:36 GMT", .zero), ("Mon, 06 Nov 1893 08:49:36 GMT", .zero), ("soon", nil), ("-5", nil), ("+5", nil),
            ("1.5", nil), ("Sun, 31 Feb 1994 08:49:37 GMT", nil), ("Sun, 06 Nov 1994 08:49:37 CET", nil), ("6 Nov 1994", nil),
            ("99999999999999999999", .seconds(1 << 31)),
        ]
        for (wish, expected) in wishes {
            bench.origin.on(.get, "/busy") { _ in .text("busy", status: 503).setting("Retry-After", to: wish) }
            let error = try await error { try await fetcher.fetch(param: file("busy"), revalidating: nil) }
            #expect(error.code == .unexpectedStatus && error.retryAfter == expected, "\(wish): \(String(describing: error.retryAfter))")
        }
    }

    // MARK: Requests

    @Test(arguments: RealTextTransport.available)
    func `T9: a validator makes a request conditional, even after a redirect`(_ transport: RealTextTransport) async throws {
        bench.serve("eula", "Terms")
        bench.origin.on(.get, "/moved") { _ in .redirect(to: "/eula.txt") }
        let fetcher = try transport.fetcher()
        for path in ["eula.txt", "moved"] {
            guard case .modified(let text, _, let validator) = try await fetcher.fetch(param: file(path), revalidating: nil) else {
                Issue.record("\(path) was not fetched")
                continue
            }
            #expect(text.bytes == Data("Terms".utf8) && text.contentType?.hasPrefix("text/plain") == true)
            #expect(validator?.entityTag != nil)
            guard case .notModified = try await fetcher.fetch(param: file(path), revalidating: validator) else {
                Issue.record("\(path) was fetched again")
                continue
            }
        }
        #expect(bench.origin.requests(to: "/eula.txt").map(\.status) == [200, 304, 200, 304])
        #expect(bench.origin.requests(to: "/eula.txt").allSatisfy { $0.headers["Cache-Control"] == "no-cache" })
    }

    @Test(arguments: RealTextTransport.available)
    func `T15: a file's header fields go to its first address only, and an address's credentials go nowhere`(
        _ transport: RealTextTransport
    ) async throws {
        let port = bench.origin.port
        bench.origin.on(.get, "/moved") { _ in .redirect(to: "http://name:word@127.0.0.1:\(port)/there") }
        bench.origin.on(.get, "/there") { request in
            request.headers["Authorization"] == nil
                ? .text("here", status: 401).setting("WWW-Authenticate", to: "Basic realm=\"x\"") : .text("secret")
        }
        let url = try #require(URL(string: "http://name:word@127.0.0.1:\(port)/moved"))
        let moved = RemoteFile(url: url, headers: ["X-Key": "secret", "cache-control": "max-age=5"])
        let error = try await error { try await transport.fetcher().fetch(param: moved, revalidating: nil) }
        #expect(error.code == .unexpectedStatus)
        #expect(bench.origin.requests(to: "/moved").map { $0.headers["X-Key"] } == ["secret"])
        #expect(bench.origin.requests(to: "/moved").map { $0.headers["Cache-Control"] } == ["no-cache"])
        #expect(bench.origin.requests(to: "/there").map { $0.headers["X-Key"] } == [nil])
        #expect(bench.origin.requests.allSatisfy { $0.headers["Authorization"] == nil })
    }

    @Test(arguments: RealTextTransport.available)
    func `T15: the fetcher follows five redirects, and the sixth is the response`(_ transport: RealTextTransport) async throws {
        for number in 1...6 { bench.origin.on(.get, "/\(number)") { _ in .redirect(to: "/\(number - 1)", status: 307) } }
        bench.origin.on(.get, "/0") { _ in .text("here") }
        let fetcher = try transport.fetcher()
        #expect(text(try await fetcher.fetch(param: file("5"), revalidating: nil))?.bytes == Data("here".utf8))
        #expect(try await error { try await fetcher.fetch(param: file("6"), revalidating: nil) }.code == .unexpectedStatus)
        #expect(bench.origin.requests(to: "/0").count == 1)
    }

    @Test(
        arguments: [
            ("http://a.example/x", "HTTP://b.example/y", "http://b.example/y"), ("http://a.example/x", "/y?z#f", "http://a.example/y?z"),
            ("http://a.example/x/", "y", "http://a.example/x/y"), ("http://a.example/x", "//b.example", "http://b.example/"),
            ("https://a.example/x", "https://n:w@b.example/y", "https://b.example/y"), ("https://a.example/x", "http://a.example/x", nil),
            ("http://a.example/x", "https://a.example/x", nil), ("http://a.example/x", "file:///etc/passwd", nil),
            ("http://a.example/x", "http:///etc/passwd", nil), ("http://a.example/x", "//", nil), ("http://a.example/x", "data:,x", nil),
            ("http://a.example/x", nil, nil), ("http://a.example/x", "/caf%C3%A9/é", "http://a.example/caf%C3%A9/%C3%A9"),
            ("http://a.example/x", " /y z ", "http://a.example/y%20z"), ("http://a.example/x", "/y\\z", nil),
            ("http://a.example/x", "http://b.example:65536/", nil),
        ] as [(String, String?, String?)])
    func `T15: a redirect stays within its scheme`(from: String, location: String?, to target: String?) throws {
        let request = try TextRequest(RemoteFile(url: try #require(URL(string: from)), headers: ["X-Key": "secret"]), nil)
        #expect(request.message.fields["X-Key"] == "secret")
        var fields = HTTPFields()
        if let location { try fields.append("Location", location.trimmingCharacters(in: .whitespaces)) }
        func next(_ status: Int) -> HTTPRequest? {
            request.redirected(by: HTTPResponse(status: status, fields: fields, url: request.message.url))?.message
        }
        for status in [301, 302, 303, 307, 308] {
            let next = next(status)
            #expect(next?.url.absoluteString == target)
            #expect(next?.fields["X-Key"] == nil)
        }
        for status in [200, 201, 300, 304, 305, 306, 404] { #expect(next(status) == nil) }
    }

    @Test(arguments: RealTextTransport.available)
    func `T15: a request-splitting field and an address that is not HTTP send nothing`(_ transport: RealTextTransport) async throws {
        let fetcher = try transport.fetcher()
        for headers in [["X-Key": "a\r\nX-Other: b"], ["X-Key": "a\0"], ["X-Key: a\r\nX-Other": "b"], ["": "a"], ["Schlüssel": "a"]] {
            let error = try await error { try await fetcher.fetch(param: file("x", headers: headers), revalidating: nil) }
            #expect(error.code == .invalidName && error.failureKind == .permanent)
        }
        let addresses = [
            "file:///etc/hostname", "ftp://127.0.0.1:\(bench.origin.port)/x", "http:///x", "data:,x", "x", "//127.0.0.1/x", "http://",
        ]
        for address in addresses {
            let file = RemoteFile(url: try #require(URL(string: address)))
            let error = try await error { try await fetcher.fetch(param: file, revalidating: nil) }
            #expect(error.code == .unreachable && error.failureKind == .permanent && !error.allowsStale, "no repetition helps")
        }
        let tag = Validator(entityTag: "\"a\r\nX-Other: b\"")
        bench.serve("eula", "Terms")
        #expect(text(try await fetcher.fetch(param: file("eula.txt"), revalidating: tag)) != nil)
        bench.origin.on(.get, "/304") { _ in .status(304) }
        for file in [file("304"), file("304", headers: ["If-None-Match": "\"1\""])] {
            #expect(try await error { try await fetcher.fetch(param: file, revalidating: tag) }.code == .unexpectedStatus)
        }
        #expect(bench.origin.requests.map { $0.headers["If-None-Match"] } == [nil, nil, "\"1\""])
        #expect(bench.origin.requests.allSatisfy { $0.headers["X-Other"] == nil })
    }

    @Test(arguments: RealTextTransport.available)
    func `H9, T15: a store over the fetcher serves stale files only while the origin fails`(_ transport: RealTextTransport) async throws {
        let fetcher = try transport.fetcher()
        let files = Store(
            cacher: MemoryCacher(expiry: .after(.seconds(1))), fetcher: fetcher, policy: StorePolicy(staleIfError: .seconds(60)),
            time: bench.time)
        let statuses = [201, 204, 400, 401, 403, 404, 410, 429, 451, 500, 501, 502, 503, 504]
        for status in statuses { bench.origin.on(.get, "/\(status)", inTurn: .text("kept"), .status(status)) }
        bench.origin.on(.get, "/reset", inTurn: .text("kept"), .text("new").misbehaving(.resetBeforeHead))
        let names = statuses.map { "\($0)" } + ["reset"]
        for name in names { _ = try await files[file(name)].requireData() }
        bench.time.advance(by: .seconds(5))
        var served: [String] = []
        for name in names {
            do {
                #expect(try await files[file(name)].requireData().bytes == Data("kept".utf8))
                served.append(name)
            } catch let error as TextStoreError {
                #expect(error.code == .unexpectedStatus && error.status == Int(name) && !error.allowsStale)
            }
        }
        #expect(served == ["500", "502", "503", "504", "reset"])
    }

    @Test func `T15: a start from the bundle creates no transport, and the first request does`() async throws {
        let made = WatchedState(0)
        let fetcher = HTTPTextFetcher(deadline: hangLimit) {
            made.update { $0 += 1 }
            return SystemTransport.shared
        }
        bench.serve(eula: 2)
        let bundled = TextSource(identifier: "eula", bundleFile: BundleFile(fileName: "eula", fileExtension: "txt"))
        let store = try bench.store(fetcher: fetcher)
        try await store.register(bundled)
        #expect(try await store.text(for: bundled).text == "Bundled terms 1")
        #expect(made.current == 0)
        try await store.register(bench.source("privacy"))
        bench.serve("privacy", "Remote privacy")
        try await store.refresh()
        #expect(made.current > 0)
    }

    @Test func `W1: a missing libcurl falls back to URLSession, and the name states the reason`() throws {
        let fetcher = HTTPTextFetcher { SystemTransport.make(libcurl: "/nowhere/libcurl.so.4") }
        #expect("\(fetcher)".hasPrefix("URLSession"))
        #if os(Linux)
        #expect("\(fetcher)" == "URLSession (/nowhere/libcurl.so.4 cannot be loaded)")
        #expect(RealTextTransport.available.contains(.curl) == "\(HTTPTextFetcher())".hasPrefix("libcurl "))
        #endif
    }

    // MARK: Responses

    @Test(arguments: RealTextTransport.available)
    func `T5: the limit counts decoded bytes, even if their coding is longer`(_ transport: RealTextTransport) async throws {
        let text = String(repeating: "0123456789", count: 100)
        bench.origin.on(.get, "/packed") { _ in .text(text).gzipped() }
        bench.origin.on(.get, "/short") { _ in .text("x").gzipped() }
        bench.origin.on(.get, "/plain") { _ in .text(text) }
        bench.origin.on(.get, "/chunked") { _ in .text(text).framed(.chunked(bytes: 100)) }
        bench.origin.on(.get, "/bomb") { _ in .gzipBomb(inflatingTo: 100_000_000, type: "text/plain") }
        bench.origin.on(.get, "/endless") { _ in
            .repeating(Data(count: 65_536), times: 1 << 11, type: "text/plain").framed(.chunked(bytes: 65_536))
        }
        let fetcher = try transport.fetcher()
        for path in ["packed", "plain", "chunked"] {
            #expect(self.text(try await fetcher.fetch(param: file(path, limit: 1000), revalidating: nil))?.bytes == Data(text.utf8))
            #expect(try await error { try await fetcher.fetch(param: file(path, limit: 999), revalidating: nil) }.code == .tooLarge)
        }
        #expect(self.text(try await fetcher.fetch(param: file("short", limit: 1), revalidating: nil))?.bytes == Data("x".utf8))
        for path in ["bomb", "endless"] {
            #expect(try await error { try await fetcher.fetch(param: file(path, limit: 1000), revalidating: nil) }.code == .tooLarge)
        }
        try await expectEnd(of: "/endless", over: transport)
    }

    /// Waits for the end of a long response, which the fetcher must have left.
    private func expectEnd(of path: String, over transport: RealTextTransport) async throws {
        try await bench.origin.waitUntil { $0.requests(to: path).first?.ending != nil }
        // FoundationNetworking reads on while its delegate is behind, so a slow machine may read all bytes before the cancellation.
        if transport == .curl { #expect(bench.origin.requests(to: path).first?.ending == .clientLeft) }
    }

    @Test(arguments: RealTextTransport.available)
    func `T5: an error with an endless body keeps its status`(_ transport: RealTextTransport) async throws {
        bench.origin.on(.get, "/gone") { _ in
            LoopbackOrigin.Response.repeating(Data(count: 65_536), times: 1 << 11, type: "text/plain").with(status: 410)
                .framed(.chunked(bytes: 65_536))
        }
        bench.origin.on(.get, "/cut") { _ in .text("0123456789", status: 410).misbehaving(.truncate(afterBodyBytes: 5)) }
        let fetcher = try transport.fetcher()
        for path in ["gone", "cut"] {
            let error = try await error { try await fetcher.fetch(param: file(path), revalidating: nil) }
            #expect(error.code == .unexpectedStatus && error.message.contains("410"))
        }
        try await expectEnd(of: "/gone", over: transport)
    }

    @Test(arguments: RealTextTransport.available)
    func `T5: response fields are readable by lowercase name, and malformed ones are dropped`(
        _ transport: RealTextTransport
    ) async throws {
        bench.origin.on(.get, "/x") { _ in .text("x").setting("X-Signature", to: "good").adding("ETag", "\"1\"") }
        let text = try #require(text(try await transport.fetcher().fetch(param: file("x"), revalidating: nil)))
        #expect(text.headers["x-signature"] == "good" && text.headers["etag"] == "\"1\"")
    }
}
