import StoreCore
import Testing
@testable import SyncEngine

/// S5: removals beside failed downloads.
struct RemovalConditionTests {
    private static let gone = Dictionary(uniqueKeysWithValues: (100..<110).map { ($0, 1) })

    private func bench(failing: Set<Int>, _ trouble: Trouble = .lasting, refuses: Set<Int> = []) -> Bench {
        Bench(
            source: (0..<40).map { Thing($0) }, local: Self.gone.merging((20..<40).map { ($0, 1) }) { first, _ in first },
            refuses: refuses,
            act: { call in if case .content(let key) = call, failing.contains(key) { throw trouble } })
    }

    private func sync(_ bench: Bench, _ options: SyncOptions) async -> SyncError? {
        await syncError { try await OneWaySynchronizer(processor: bench, options: options).sync() }
    }

    private static func options(
        _ condition: RemovalCondition, stops: Bool = false, timing: RemovalTiming = .afterDownloads, limit: ChangeLimit = .share(0.5)
    ) -> SyncOptions {
        SyncOptions(stopsOnError: stops, removalTiming: timing, removalCondition: condition, removalLimit: limit, retry: .never)
    }

    @Test(arguments: [RemovalTiming.afterDownloads, .beforeDownloads])
    func `S5: by option, items that the list lacks are removed although a download has failed`(timing: RemovalTiming) async throws {
        let bench = bench(failing: [3], refuses: [4])
        let error = await sync(bench, Self.options(.despiteFailures, timing: timing))
        #expect(error?.code == .incomplete)
        #expect(error?.report?.failures.map(\.key.description).sorted() == ["3", "4"])
        #expect((error?.report?.removedCount, error?.report?.pendingRemovals.count) == (10, 0))
        #expect(bench.local.keys.allSatisfy { $0 < 100 })
    }

    @Test(arguments: [RemovalCondition.afterSuccess, .despiteFailures])
    func `S5, S23: removals that a refused item holds up free no space for the downloads`(condition: RemovalCondition) async throws {
        let bench = bench(failing: [], refuses: [4])
        let options = Self.options(condition, timing: .beforeDownloads)
        let plan = try await OneWaySynchronizer(processor: bench, options: options).plan()
        #expect(plan.removesFirst == (condition == .despiteFailures))
        let report = await sync(bench, options)?.report
        #expect(report?.removedCount == (plan.removesFirst ? 10 : 0))
    }

    @Test func `S3, S5: the gate holds for removals despite failures`() async throws {
        let bench = bench(failing: [3])
        #expect(await sync(bench, Self.options(.despiteFailures, limit: .count(9)))?.code == .removalLimit)
        #expect(bench.local.count == 30)
    }

    @Test(arguments: ["fatal", "stops"])
    func `S5: a failure that ends the pass removes nothing, whatever the option`(how: String) async throws {
        let bench = bench(failing: [3], how == "fatal" ? .deadly : .lasting)
        let error = await sync(bench, Self.options(.despiteFailures, stops: how == "stops"))
        #expect((error?.report?.removedCount, error?.report?.pendingRemovals.count) == (0, 10))
    }
}
