import StoreCore
import StoreCoreTesting
import Testing
@testable import SyncEngine

/// The effects of a pass on the next one.
struct RepeatedPassTests {
    @Test func `S12: a downloaded preview is not repeated while its content is missing`() async throws {
        let failures = Lock(2)
        let bench = Bench(
            source: [Thing(1), Thing(2)],
            act: {
                guard $0 == .content(2) else { return }
                let fails = failures.withLock { left in
                    left -= 1
                    return left >= 0
                }
                if fails { throw Trouble.lasting }
            })
        let synchronizer = OneWaySynchronizer(
            processor: bench, options: SyncOptions(downloadsPreviews: true, stopsOnError: false, retry: .never))
        for _ in 0..<2 { #expect(await syncError { try await synchronizer.sync() }?.code == .incomplete) }
        try await synchronizer.sync()
        #expect(bench.calls.count { $0 == .preview(2) } == 1)
        // Another version has another preview.
        bench.state.update { $0.source = [Thing(1), Thing(2, 2)] }
        try await synchronizer.sync()
        #expect(bench.calls.count { $0 == .preview(2) } == 2)
    }

    @Test func `S12: new items and new versions get previews while the previews of other items are kept`() async throws {
        let bench = Bench(source: [Thing(1), Thing(2)], act: { if case .content = $0 { throw Trouble.lasting } })
        let synchronizer = OneWaySynchronizer(
            processor: bench, options: SyncOptions(downloadsPreviews: true, stopsOnError: false, retry: .never))
        #expect(await syncError { try await synchronizer.sync() }?.report?.previewCount == 2)
        bench.state.update { $0.source = [Thing(1), Thing(2, 2), Thing(3)] }
        #expect(await syncError { try await synchronizer.sync() }?.report?.previewCount == 2)
        #expect([1, 2, 3].map { key in bench.calls.count { $0 == .preview(key) } } == [1, 2, 1])
    }
}
