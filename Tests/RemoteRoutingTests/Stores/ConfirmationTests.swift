import Foundation
import StoreCore
import RemoteRoutingTesting
import StoreCoreTesting
import Testing
import Trials

@testable import RemoteRouting

/// The fields of a 304, which are merged into the stored ones (RFC 9111 §4.3.4).
@Suite(.timeLimit(.minutes(hangMinutes)))
struct ConfirmationTests {
    /// Sun, 06 Nov 1994 08:49:37 GMT
    private static let now = Date(timeIntervalSince1970: 784_111_777)
    private static func date(_ offset: Double) -> String { HTTPDate.format(now.addingTimeInterval(offset)) }

    struct Case: Sendable, CustomTestStringConvertible {
        var name: String
        var stored: [(String, String)]
        var confirmed: [(String, String)]
        var expected: Freshness
        var tag = "\"v1\""

        var testDescription: String { name }
    }

    static let cases: [Case] = [
        Case(
            name: "max-age stays above a new Expires", stored: [("Cache-Control", "max-age=10")], confirmed: [("Expires", date(100))],
            expected: .fresh(for: .seconds(10))),
        Case(
            name: "a new max-age replaces the stored one", stored: [("Cache-Control", "max-age=10, must-revalidate")],
            confirmed: [("Cache-Control", "max-age=20")], expected: .fresh(for: .seconds(20))),
        Case(
            name: "Age counts against the stored max-age", stored: [("Cache-Control", "max-age=100")], confirmed: [("Age", "95")],
            expected: .fresh(for: .seconds(5))),
        Case(
            name: "the stored Age is not that of the confirmation", stored: [("Cache-Control", "max-age=100"), ("Age", "60")],
            confirmed: [], expected: .fresh(for: .seconds(100))),
        Case(
            name: "must-revalidate and stale windows stay", stored: [("Cache-Control", "max-age=10, must-revalidate, stale-if-error=7")],
            confirmed: [("Date", date(0))], expected: Freshness(lifetime: .seconds(10), staleIfError: .seconds(7), mustRevalidate: true)),
        Case(
            name: "the stored Expires is compared with the new Date", stored: [("Expires", date(50)), ("Date", date(-20))],
            confirmed: [("Date", date(10))], expected: .fresh(for: .seconds(40))),
        Case(
            name: "a new Cache-Control without a lifetime ends the stored one", stored: [("Cache-Control", "max-age=10")],
            confirmed: [("Cache-Control", "private")], expected: .unspecified),
        Case(
            name: "a new entity tag replaces the stored one", stored: [("Cache-Control", "max-age=10")],
            confirmed: [("ETag", "\"v2\"")], expected: .fresh(for: .seconds(10)), tag: "\"v2\""),
        Case(
            name: "a new entity tag replaces the stored one, although no message states a lifetime", stored: [],
            confirmed: [("ETag", "\"v2\"")], expected: .unspecified, tag: "\"v2\""),
        Case(
            name: "a malformed entity tag is ignored", stored: [("Cache-Control", "max-age=10")],
            confirmed: [("ETag", "v2")], expected: .fresh(for: .seconds(10))),
        Case(
            name: "no-store forbids to keep the content", stored: [("Cache-Control", "max-age=10")],
            confirmed: [("Cache-Control", "no-store")],
            expected: Freshness(lifetime: .zero, mustRevalidate: true, storage: .forbidden)),
        Case(
            name: "a new Vary applies", stored: [("Cache-Control", "max-age=10")], confirmed: [("Vary", "*")],
            expected: Freshness(lifetime: .zero, mustRevalidate: true)),
    ]

    private static func response(_ status: Int, _ lines: [(String, String)]) -> MemoryTransport.Response {
        var response = status == 304 ? MemoryTransport.Response.status(304) : .json("[1]")
        for (name, value) in lines { response = response.adding(name, value) }
        return response
    }

    @Test(arguments: cases)
    func `H19: a 304 merges its fields into the stored ones`(_ row: Case) async throws {
        let time = ManualTime(date: ConfirmationTests.now)
        let transport = MemoryTransport(
            inTurn: ConfirmationTests.response(200, row.stored + [("ETag", "\"v1\"")]), ConfirmationTests.response(304, row.confirmed),
            .status(404))
        let host = RemoteHost("api.example.com", transport: transport, time: time)
        // The second store reads the record of the first one, so the fields were saved with it.
        let cacher = MemoryCacher<Int, [Int]>()
        for isSecond in [false, true] {
            let store = Store(cacher: cacher, fetcher: host.fetcher(of: [Int].self) { (_: Int) in Route(path: "/x") }, time: time)
            #expect(try await store[1].requireData() == [1])
            if isSecond { #expect(try await store[1].requireData(from: .origin) == [1]) }
            try await store.waitUntilSaved()
        }
        let record = await cacher.load(param: 1)
        if row.expected.storage == .forbidden {
            #expect(record == nil)
        } else {
            #expect(record?.freshness == row.expected && record?.validator?.entityTag == row.tag)
        }
        #expect(transport.requests.map { $0.fields["If-None-Match"] } == [nil, "\"v1\""])
    }

    @Test func `H19: a 304 without fields keeps the freshness of the page function`() async throws {
        let transport = MemoryTransport(inTurn: .json("[1]").adding("Cache-Control", "max-age=60").adding("ETag", "\"v1\""), .status(304))
        let fetcher = RemoteHost("api.example.com", transport: transport).pages(parsing: { _ in
            Page([1], freshness: .fresh(for: .seconds(5)))
        }) { (_: Int, _: PageCursor?) in Route(path: "/log") }
        guard case .modified(_, _, let validator) = try await fetcher.respond(to: .content(1, revalidating: nil)).result else { return }
        #expect(try await fetcher.respond(to: .content(1, revalidating: validator)).result == .notModified())
        #expect(transport.requests.map { $0.fields["If-None-Match"] } == [nil, "\"v1\""])
    }

    @Test func `H19: a new Last-Modified replaces the stored one, and survives the next confirmation`() async throws {
        let (old, new) = (ConfirmationTests.date(-100), ConfirmationTests.date(-50))
        let time = ManualTime(date: ConfirmationTests.now)
        let transport = MemoryTransport(
            inTurn: ConfirmationTests.response(200, [("Cache-Control", "max-age=10"), ("Last-Modified", old)]),
            ConfirmationTests.response(304, [("Last-Modified", new)]), .status(304), .status(304))
        let host = RemoteHost("api.example.com", transport: transport, time: time)
        let store = Store(
            cacher: MemoryCacher<Int, [Int]>(), fetcher: host.fetcher(of: [Int].self) { (_: Int) in Route(path: "/x") }, time: time)
        for _ in 0..<4 {
            #expect(try await store[1].requireData() == [1])
            #expect(try await store[1].requireData() == [1])
            time.advance(by: .seconds(11))
        }
        #expect(transport.requests.map { $0.fields["If-Modified-Since"] } == [nil, old, new, new])
    }
}
