import Foundation
import LoopbackOrigin
import StoreCore
import StoreCoreTesting
import Testing
import Trials

@testable import TextStore

/// T9: the periods in which reads need no action, and the events that end them.
struct QuietTests {
    let bench: Bench

    init() throws { bench = try Bench() }

    @Test func `T9: a read notices at once that the clock was set past the manifest's expiry and back`() async throws {
        let expires = bench.time.date.addingTimeInterval(3600).formatted(.iso8601)
        bench.serve(manifest: #"{"expires":"\#(expires)","texts":{"eula":"1.0.0"}}"#)
        let store = try await bench.started(policy: TextStorePolicy(checkInterval: .seconds(86_400)))
        _ = try await store.text(for: bench.source("eula"), awaiting: patient)
        func staleSince() async throws -> Date? {
            // The second read uses the period that the first one has computed.
            _ = try await store.text(for: bench.source("eula"))
            return try await store.text(for: bench.source("eula")).staleSince
        }
        #expect(try await staleSince() == nil)
        for _ in 0..<2 {
            bench.time.shiftDate(by: .seconds(7200))
            #expect(try await staleSince()?.formatted(.iso8601) == expires)
            bench.time.shiftDate(by: .seconds(-7200))
            #expect(try await staleSince() == nil)
        }
        bench.time.advance(by: .seconds(3600))
        #expect(try await staleSince()?.formatted(.iso8601) == expires)
        #expect(bench.origin.requests(to: "/versions.json").count == 1)
    }

    @Test func `T9: a read notices at once that the clock was set past the next check, or before the last one`() async throws {
        bench.serve(manifest: #"{"eula":"1.0.0"}"#)
        let store = try await bench.started().refreshed()
        for (count, shift) in [(2, 901), (3, -2000)] {
            for _ in 0..<3 { _ = try await store.text(for: bench.source("eula")) }
            bench.time.shiftDate(by: .seconds(shift))
            _ = try await store.text(for: bench.source("eula"))
            try await bench.events.waitForChecks(count)
        }
    }

    @Test func `T9: a read fetches the text of an expired manifest as soon as the clock is set back`() async throws {
        let expires = bench.time.date.addingTimeInterval(3600).formatted(.iso8601)
        bench.serve(manifest: #"{"expires":"\#(expires)","texts":{"eula":"2.0.0"}}"#)
        let store = try await bench.started(policy: TextStorePolicy(checkInterval: .seconds(86_400)))
        await expectError(.unexpectedStatus, of: "eula") { try await store.refresh() }
        bench.serve("eula", "Remote terms 2")
        bench.time.shiftDate(by: .seconds(7200))
        bench.time.advance(by: .seconds(60))
        // The retry finds the manifest expired.
        _ = try await store.text(for: bench.source("eula"))
        #expect(store.session.read { $0.failure(of: "eula")?.code } == .expiredManifest)
        bench.time.shiftDate(by: .seconds(-7200))
        _ = try await store.text(for: bench.source("eula"))
        try await store.session.wait { $0.resolved["eula"]?.text.text == "Remote terms 2" ? () : nil }
        #expect(bench.origin.requests(to: "/versions.json").count == 2)
    }

    @Test func `T9: a check that ends while the clock is read is not repeated`() async throws {
        bench.serve(manifest: #"{"eula":"1.0.0"}"#)
        let time = InterruptedTime()
        let store = try TextStore(
            session: "legal", directory: bench.place.file("state"), bundle: try bench.bundle(),
            fetcher: RevalidatingClosureFetcher<RemoteFile, RemoteText> { _, _ in
                try await bench.time.sleep(until: .distantFuture)
                throw CancellationError()
            }, time: time)
        try await bench.start(store)
        let session = store.session
        let ticket = try #require(session.read { $0.manifestFlight })
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                time.interrupt {
                    var record = ManifestRecord(url: bench.versions.remoteFile?.url.absoluteString ?? "")
                    record.succeeded(at: time.date.addingTimeInterval(0.001), TextStorePolicy())
                    session.update { _ = $0.manifestEnded(ticket: ticket, record, nil, nil, at: SessionMoment(time)) }
                }
                store.begin(["eula"])
                continuation.resume()
            }
        }
        try await session.wait { $0.manifestRecord?.attemptedAt != nil ? () : nil }
        #expect(session.read { $0.manifestFlight } == nil)
    }
}

/// The system's time, which runs a closure during the next read of the date.
private final class InterruptedTime: TimeSource {
    private let pending = Lock<(@Sendable () -> Void)?>(nil)

    func interrupt(_ body: @escaping @Sendable () -> Void) { pending.withLock { $0 = body } }

    var now: MonotonicInstant { SystemTime().now }

    var date: Date {
        let date = Date()
        let body = pending.withLock { pending in
            defer { pending = nil }
            return pending
        }
        if let body {
            let done = DispatchSemaphore(value: 0)
            DispatchQueue.global().async {
                body()
                done.signal()
            }
            // Returns at once, unless the closure must wait for the end of this read.
            _ = done.wait(timeout: .now() + 0.3)
        }
        return date
    }

    func sleep(until deadline: MonotonicInstant) async throws { try await SystemTime().sleep(until: deadline) }
}
