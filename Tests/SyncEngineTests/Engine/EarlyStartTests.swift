import StoreCore
import StoreCoreTesting
import Testing
@testable import SyncEngine

/// S11: additions that begin while the list is read, and all other work that waits for its end.
struct EarlyStartTests {
    private static let early = SyncOptions(startsEarly: true, stopsOnError: false, removalLimit: .unlimited, retry: .never)

    /// Key 1 changes, 2 is removed, 3 stays unchanged, and the other keys are new.
    private static let local = [1: 1, 2: 1, 3: 1]
    private static let pages = [
        SourcePage([Thing(1, 2), Thing(3), Thing(10)]), SourcePage([Thing(11)]), SourcePage([Thing(12)], end: .complete(count: 5)),
    ]

    /// Holds the page of a number until key 10 is downloaded.
    private func bench(
        _ order: SourceOrder, local: [Int: Int] = Self.local, pages: [SourcePage<Thing>] = Self.pages, held: Int? = 2,
        refuses: Set<Int> = [], act: @escaping @Sendable (Bench.Call) async throws -> Void = { _ in }
    ) -> Bench {
        let arrived = WatchedState(false)
        return Bench(
            local: local, order: order, refuses: refuses, list: { _ in pages },
            onPage: { number in if number == held { try await arrived.wait { $0 ? () : nil } } },
            act: { call in
                try await act(call)
                if call == .content(10) { arrived.update { $0 = true } }
            })
    }

    @Test(arguments: [SourceOrder.unsorted, .sortedByKey])
    func `S11: new items are downloaded before the list has ended, and no others`(order: SourceOrder) async throws {
        let bench = bench(order)
        // The third page arrives only after the download of key 10, so without an early start the pass would hang.
        let report = try await OneWaySynchronizer(processor: bench, options: Self.early).sync()
        #expect(bench.local == [1: 2, 3: 1, 10: 1, 11: 1, 12: 1])
        #expect((report.addedCount, report.updatedCount, report.removedCount, report.unchangedCount) == (3, 1, 1, 1))
        #expect(report.isComplete)
        let calls = bench.calls
        let prepared = try #require(calls.firstIndex(of: .prepare))
        #expect(try #require(calls.firstIndex(of: .content(10))) < prepared)
        #expect(try #require(calls.firstIndex(of: .content(1))) > prepared, "replacements wait for the complete plan")
        #expect(calls.suffix(2) == [.remove([2]), .end])
        #expect(calls.filter { $0 == .content(10) }.count == 1)
    }

    @Test(arguments: [SourceOrder.unsorted, .sortedByKey], ["cut", "count", "throws", "duplicate"])
    func `S2, S11: a list with a late fault fails the pass without replacements or removals`(order: SourceOrder, how: String)
        async throws
    {
        var pages = Self.pages
        switch how {
        case "cut": pages[2].end = nil
        case "count": pages[2].end = .complete(count: 6)
        case "duplicate": pages[2] = SourcePage([Thing(11)], end: .complete())
        default: break
        }
        let source = bench(order, pages: pages)
        let failing = Bench(
            local: Self.local, order: order, list: { [pages] _ in pages },
            onPage: { number in
                try await source.onPage(number)
                if how == "throws", number == 2 { throw Trouble.lasting }
            }, act: source.act)
        let error = await syncError { try await OneWaySynchronizer(processor: failing, options: Self.early).sync() }
        #expect(
            error?.code == (how == "throws" ? .stageFailed : how == "duplicate" ? .duplicateKeys : .incompleteList))
        #expect(error?.stage == .sourceList)
        #expect(failing.local[1] == 1 && failing.local[2] == 1, "no item is replaced or removed")
        #expect(failing.local[10] == 1, "downloaded items stay")
        #expect((error?.report?.addedCount ?? 0) >= 1)
        #expect(!failing.calls.contains(.prepare))
    }

    @Test func `S3, S11: the gate stops all changes except early additions`() async throws {
        let local = Dictionary(uniqueKeysWithValues: (100..<130).map { ($0, 1) })
        let bench = bench(
            .unsorted, local: local, pages: [SourcePage([Thing(10)]), SourcePage([Thing(11)]), SourcePage([], end: .complete())])
        var options = Self.early
        options.removalLimit = .share(0.5)
        let error = await syncError { try await OneWaySynchronizer(processor: bench, options: options).sync() }
        #expect(error?.code == .removalLimit)
        #expect(error?.message.contains("nothing was replaced or removed") == true)
        #expect(bench.local.count >= 31)
        #expect(!bench.calls.contains { if case .remove = $0 { true } else { false } })
        #expect(error?.report?.pendingRemovals.count == 0, "removals of a refused plan are not pending")
    }

    @Test(arguments: ["previews", "removals first", "last counts", "no contents", "off"])
    func `S11: nothing begins early if an option needs the complete list first`(why: String) async throws {
        var options = Self.early
        switch why {
        case "previews": options.downloadsPreviews = true
        case "removals first": options.removalTiming = .beforeDownloads
        case "last counts": options.duplicates = .keepLast
        case "no contents": options.downloadsContents = false
        default: options.startsEarly = false
        }
        // Yields long enough for an early download to begin.
        let bench = Bench(local: Self.local, list: { _ in Self.pages }, onPage: { _ in for _ in 0..<2_000 { await Task.yield() } })
        try await OneWaySynchronizer(processor: bench, options: options).sync()
        let prepared = try #require(bench.calls.firstIndex(of: .prepare))
        for key in [1, 10, 11, 12] { #expect(bench.calls.firstIndex(of: .content(key)).map { $0 > prepared } ?? true) }
    }

    @Test func `S5, S11: an early failure is reported once and prevents removals`() async throws {
        let bench = bench(.unsorted) { call in if call == .content(11) { throw Trouble.lasting } }
        let error = await syncError { try await OneWaySynchronizer(processor: bench, options: Self.early).sync() }
        #expect(error?.code == .incomplete)
        #expect(error?.report?.failures.map(\.key.description) == ["11"])
        #expect(error?.report?.pendingDownloadCount == 1)
        #expect(error?.report?.pendingRemovals.count == 1)
        #expect(bench.local == [1: 2, 2: 1, 3: 1, 10: 1, 12: 1])
    }

    @Test func `S5, S11: a fatal error of an early download ends the pass and is reported once`() async throws {
        let hasFailed = WatchedState(false)
        let bench = Bench(
            local: Self.local, list: { _ in Self.pages },
            onPage: { number in if number == 2 { try await hasFailed.wait { $0 ? () : nil } } },
            act: { call in
                guard call == .content(11) else { return }
                hasFailed.update { $0 = true }
                throw Trouble.deadly
            })
        let error = await syncError { try await OneWaySynchronizer(processor: bench, options: Self.early).sync() }
        #expect(error?.failureKind == .fatal)
        #expect(error?.report?.failures.map(\.key.description) == ["11"])
        #expect(bench.local[1] == 1 && bench.local[2] == 1, "no item is replaced or removed")
        #expect(!bench.calls.contains(.prepare))
    }

    @Test func `S8, S11: an item that the target refuses never begins`() async throws {
        let bench = bench(.unsorted, refuses: [11])
        let error = await syncError { try await OneWaySynchronizer(processor: bench, options: Self.early).sync() }
        #expect(error?.report?.failures.map(\.stage) == [.plan])
        #expect(!bench.calls.contains(.content(11)))
        #expect(bench.local[10] == 1)
    }

    @Test func `S4, S11: a new item with an obstacle waits until after the plan`() async throws {
        let isPrepared = WatchedState(false)
        let source = bench(.unsorted)
        let bench = Bench(
            local: Self.local, list: { _ in Self.pages },
            checks: { key, _ in
                if key == 11, !isPrepared.current { throw Trouble.lasting }
                return true
            }, onPage: source.onPage,
            act: { call in
                if call == .prepare { isPrepared.update { $0 = true } }
                try await source.act(call)
            })
        // Key 11 is offered before the last page is requested. An early start would fail, because nothing is prepared yet.
        let report = try await OneWaySynchronizer(processor: bench, options: Self.early).sync()
        #expect(report.isComplete)
        let prepared = try #require(bench.calls.firstIndex(of: .prepare))
        #expect(try #require(bench.calls.firstIndex(of: .content(11))) > prepared)
    }

    @Test func `S5, S11: a second reading of the list repeats neither downloads nor old failures`() async throws {
        let tries = WatchedState(0)
        let source = bench(.unsorted)
        let bench = Bench(
            local: Self.local, list: { _ in Self.pages },
            onPage: { number in
                try await source.onPage(number)
                guard number == 2 else { return }
                let isFirst = tries.update { tries -> Bool in
                    tries += 1
                    return tries == 1
                }
                if isFirst { throw Trouble.passing }
            },
            act: { call in
                // Key 11 fails permanently in the first reading, and is tried again in the second.
                if call == .content(11), tries.current == 0 { throw Trouble.lasting }
                try await source.act(call)
            })
        var options = Self.early
        options.retry = .exponential(attempts: 2)
        let time = ManualTime()
        let run = Task { try await OneWaySynchronizer(processor: bench, options: options, time: time).sync() }
        try await time.sleepers(atLeast: 1)
        time.advance(by: .seconds(60))
        let report = try await run.value
        #expect(report.failures.isEmpty)
        #expect(report.addedCount == 3)
        #expect(bench.calls.filter { $0 == Bench.Call.content(10) }.count == 1)
        #expect(bench.local == [1: 2, 3: 1, 10: 1, 11: 1, 12: 1])
    }

    @Test func `S7, S11: cancel ends early downloads, and the next pass resumes`() async throws {
        let bench = Bench(local: Self.local, list: { _ in Self.pages })
        bench.hold(.content(10))
        let synchronizer = OneWaySynchronizer(processor: bench, options: Self.early)
        let run = Task { await syncError { try await synchronizer.sync() } }
        try await bench.waiting(.content(10))
        synchronizer.cancel()
        #expect(await run.value?.code == .cancelled)
        bench.release(.content(10))
        let report = try await synchronizer.sync()
        #expect(report.isComplete)
        #expect(bench.local == [1: 2, 3: 1, 10: 1, 11: 1, 12: 1])
    }

    @Test func `S11: the queue of early downloads is bounded, and other items begin after the plan`() async throws {
        let early = EarlyDownloads<Thing>(workers: 1, capacity: 3)
        early.offer((0..<5).map { SyncPlan.Download(item: Thing($0), local: nil, reason: .missing) })
        #expect(early.room == 0)
        var begun: [Int] = []
        while begun.count < 3, let item = await early.next() { begun.append(item.item.key) }
        #expect(begun == [0, 1, 2])
        early.stop()
        #expect(await early.next() == nil)
        // Now through the engine, with more new items than the queue holds.
        let things = (0..<5_000).map { Thing($0) }
        let bench = Bench(list: { _ in [SourcePage(things), SourcePage([], end: .complete(count: 5_000))] })
        let report = try await OneWaySynchronizer(processor: bench, options: Self.early).sync()
        #expect(report.addedCount == 5_000)
        #expect(bench.local.count == 5_000)
        #expect(bench.calls.count { if case .content = $0 { true } else { false } } == 5_000)
    }
}
