import Foundation
import LoopbackOrigin
import StoreCore
import StoreCoreTesting
import Testing
import Trials

@testable import TextStore

/// C24: the delays that an origin names.
struct AdviceTests {
    let bench: Bench

    init() throws { bench = try Bench() }

    private var count: Int { bench.origin.requests(to: "/versions.json").count }

    private func advise(_ wish: String?) {
        bench.origin.on(.get, "/versions.json") { _ in
            let busy = LoopbackOrigin.Response.text("busy", status: 503)
            return wish.map { busy.setting("Retry-After", to: $0) } ?? busy
        }
    }

    private func read(_ store: TextStore) async throws {
        _ = try await store.text(for: bench.source("eula"))
        _ = try await store.text(for: bench.source("eula"), awaiting: patient)
    }

    @Test(arguments: [nil, 60])
    func `C24: a Retry-After of years delays the checks by an hour or by the policy's limit, over restarts too`(limit: Int?) async throws {
        advise("2147483647")
        var policy = TextStorePolicy()
        if let limit { policy.backOff.adviceLimit = .seconds(limit) }
        let seconds = limit ?? 3600
        let first = try await bench.started(policy: policy)
        try await read(first)
        #expect(count == 1)
        bench.time.advance(by: .seconds(seconds - 1))
        try await read(first)
        let second = try await bench.started(policy: policy)
        try await read(second)
        #expect(count == 1, "the advice counts up to the limit")
        bench.time.advance(by: .seconds(1))
        try await read(second)
        #expect(count == 2)
        bench.time.advance(by: .seconds(seconds))
        try await read(try await bench.started(policy: policy))
        #expect(count == 3)
    }

    @Test(arguments: [1e10, .greatestFiniteMagnitude, -1e10])
    func `C24: a saved pause beyond its limit counts as the limit`(pause: Double) async throws {
        advise(nil)
        let first = try await bench.started()
        try await read(first)
        var record = try #require(first.session.read { $0.manifestRecord })
        record.pause = pause
        _ = try first.shelf.manifestFile.save(record, serial: 1)
        let next = try await bench.started()
        bench.time.advance(by: .seconds(3600))
        try await read(next)
        #expect(count == 2 || (pause < 0 && count == 3))
    }

    @Test func `C24: a saved interval is not longer than the policy's`() async throws {
        bench.serve(manifest: #"{"eula":"1.0.0"}"#)
        try await read(try await bench.started(policy: TextStorePolicy(checkInterval: .seconds(1_000_000_000))))
        let next = try await bench.started()
        try await read(next)
        #expect(count == 1)
        bench.time.advance(by: .seconds(900))
        try await read(next)
        #expect(count == 2)
    }

    /// The clock is set back again and again while the store waits, so that its date hardly moves.
    @Test(arguments: [("/versions.json", 3600, false), ("/versions.json", 3600, true), ("/eula.txt", 600, false)])
    func `C24: a clock that is set back does not lengthen the delay of a manifest or text`(
        path: String, seconds: Int, restarts: Bool
    ) async throws {
        bench.serve(manifest: #"{"eula":"2.0.0"}"#)
        bench.origin.on(.get, path) { _ in .text("busy", status: 503).setting("Retry-After", to: "\(seconds)") }
        let policy = path == "/eula.txt" ? TextStorePolicy(checkInterval: .seconds(86_400)) : TextStorePolicy()
        var store = try await bench.started(policy: policy)
        try await read(store)
        if restarts {
            store = try await bench.started(policy: policy)
            try await read(store)
        }
        for _ in 0..<seconds / 60 {
            bench.time.advance(by: .seconds(59))
            bench.time.shiftDate(by: .seconds(-59))
            try await read(store)
        }
        #expect(bench.origin.requests(to: path).count == 1)
        bench.time.advance(by: .seconds(seconds / 60))
        try await read(store)
        #expect(bench.origin.requests(to: path).count == 2)
    }

    @Test func `C24: an observed store repeats a failed check after the delay, even if the clock is set back meanwhile`() async throws {
        advise("600")
        let store = try await bench.started()
        let session = store.session
        let observing = Task { [bench] in for await _ in store.publish(bench.source("eula")) {} }
        defer { observing.cancel() }
        func waitForFailures(_ count: Int) async throws {
            try await until("a check has failed") { session.read { !$0.observers.isEmpty && $0.manifestRecord?.failures == count } }
        }
        try await waitForFailures(1)
        for expected in 2...3 {
            bench.time.advance(by: .seconds(300))
            bench.time.shiftDate(by: .seconds(-299))
            // Sets the timer anew.
            session.update { $0.timer = nil }
            store.arm()
            #expect(count == expected - 1)
            bench.time.advance(by: .seconds(300))
            try await waitForFailures(expected)
            #expect(count == expected)
        }
    }

    @Test func `C24: a clock that was wrong for a moment does not stop the checks`() async throws {
        bench.time.shiftDate(by: .seconds(10 * 365 * 86_400))
        advise("2147483647")
        let store = try await bench.started()
        try await read(store)
        bench.time.shiftDate(by: .seconds(-10 * 365 * 86_400))
        try await read(store)
        #expect(count == 2)
        bench.time.shiftDate(by: .seconds(10 * 365 * 86_400))
        try await read(store)
        #expect(count == 3)
    }

    @Test(arguments: ["0", "Sun, 06 Nov 1994 08:49:37 GMT", "-1", "soon", ""])
    func `C24: advice shorter than the back-off causes no more requests than none`(wish: String) async throws {
        func requests(_ wish: String?) async throws -> [Int] {
            let session = UUID().uuidString
            advise(wish)
            let before = count
            let store = try await bench.started(session)
            var counts: [Int] = []
            for _ in 0..<60 {
                try await read(store)
                counts.append(count - before)
                bench.time.advance(by: .seconds(2))
            }
            return counts
        }
        let expected = try await requests(nil)
        #expect(try await requests(wish) == expected)
        #expect(expected.last == 5)
    }

    @Test(arguments: [-86_400, 0, 86_400, 20 * 365 * 86_400])
    func `C24: a Retry-After date is relative to the response's own date`(deviation: Double) async throws {
        let origin = Date(timeIntervalSince1970: 784_111_777)
        let fetcher = HTTPTextFetcher(time: ManualTime(date: origin + deviation))
        bench.origin.on(.get, "/busy") { _ in
            .text("busy", status: 503).setting("Retry-After", to: "Sun, 06 Nov 1994 08:51:07 GMT")
                .setting("Date", to: "Sun, 06 Nov 1994 08:49:37 GMT")
        }
        let error = await #expect(throws: TextStoreError.self) {
            try await fetcher.fetch(param: RemoteFile(url: bench.origin.url.appending(path: "busy")), revalidating: nil)
        }
        #expect(error?.retryAfter == .seconds(90))
    }
}
