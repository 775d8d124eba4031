import Foundation
import StoreCore
import StoreCoreTesting
import Testing
import Trials
@testable import SyncEngine

/// S13: the progress published during a pass.
struct ProgressTests {
    private final class Published: Sendable {
        let reports = WatchedState<[SyncReport]>([])
        let board: ProgressBoard

        init(_ time: ManualTime) {
            board = ProgressBoard(pass: 1, time: time, interval: .milliseconds(100)) { [reports] report, _ in
                reports.update { $0.append(report) }
            }
        }

        var last: SyncProgress? { reports.current.last?.progress }
    }

    @Test func `S13: an observer gets the loading state of a pass before the pass publishes progress`() async throws {
        // The passes enter no stage, so all states come from the hub.
        let mayEnd = WatchedState(0)
        let hub = SyncHub { pass, publish in
            let board = ProgressBoard(pass: pass.number, time: ManualTime(), interval: .seconds(1), publish: publish)
            try? await mayEnd.wait { $0 >= pass.number ? () : nil }
            return .success(board.finish())
        }
        for number in 1...2 {
            let pass = Task { try await hub.sync([]) }
            try await until("the pass runs") { hub.isSyncing }
            let first = WatchedState<LoadingState<SyncReport>?>(nil)
            let observing = Task {
                let state = await SyncObserver(hub).next()
                first.update { $0 = state }
            }
            try await until("the observer has a state") { first.current != nil }
            if case .loading(let report) = first.current {
                #expect(report?.pass == number)
            } else {
                Issue.record("\(first.current as Any)")
            }
            mayEnd.update { $0 = number }
            #expect(try await pass.value.pass == number)
            await observing.value
        }
    }

    @Test func `S13: a hundred thousand items cause few publications`() {
        let time = ManualTime()
        let published = Published(time)
        published.board.enter(.contents, items: .exactly(100_000))
        for _ in 0..<100_000 { published.board.advance(items: 1) }
        #expect(published.reports.current.count == 1)
        time.advance(by: .milliseconds(100))
        for _ in 0..<1000 { published.board.advance(items: 1) }
        #expect(published.reports.current.count == 2)
        #expect(published.last?.doneItems == 100_001)
        #expect(published.last?.elapsed == .milliseconds(100))
        published.board.enter(.removals)
        #expect(published.reports.current.count == 3)
    }

    @Test func `S13: the total is a lower bound until the list has ended`() async throws {
        let time = ManualTime()
        let bench = Bench(
            order: .unsorted, list: { _ in [SourcePage([Thing(1), Thing(2)]), SourcePage([Thing(3)], end: .complete(count: 3))] },
            act: { _ in time.advance(by: .seconds(1)) })
        let published = Published(time)
        let pass = SyncPass(processor: bench, options: SyncOptions(concurrency: 1), overrides: [], time: time, board: published.board)
        #expect(try await pass.run().get().addedCount == 3)
        let progress = published.reports.current.map(\.progress)
        #expect(progress.filter { $0.stage == .sourceList }.allSatisfy { if case .atLeast = $0.totalItems { true } else { false } })
        #expect(progress.first { $0.stage == .contents }?.totalItems == .exactly(3))
        #expect(progress.filter { $0.stage == .contents }.map(\.doneItems) == [0, 1, 2, 3])
        // Stages without items have exact totals from the beginning.
        let others = progress.filter { [.begin, .safetyGate, .prepare, .end].contains($0.stage) }
        #expect(others.map(\.stage) == [.begin, .safetyGate, .prepare, .end])
        #expect(others.map(\.totalItems) == [.exactly(0), .exactly(0), .exactly(0), .exactly(3)])
    }

    @Test func `S13: a list in pages increases the total while it is read`() async throws {
        let time = ManualTime()
        let published = Published(time)
        var reading = ListReading(
            reader: Bench.Pages(pages: [SourcePage([Thing(1), Thing(2)]), SourcePage([Thing(3)], end: .complete())], order: .unsorted)
                .makeReader(), board: published.board)
        published.board.enter(.sourceList)
        time.advance(by: .seconds(1))
        _ = try await reading.next()
        #expect(published.last?.totalItems == .atLeast(2))
        time.advance(by: .seconds(1))
        _ = try await reading.next()
        #expect(published.last?.totalItems.description == "at least 3")
        #expect(try await reading.next() == nil)
    }

    @Test func `S13: bytes increase within an item, and a failed attempt's are subtracted before the wait for the next`() async throws {
        let time = ManualTime()
        let tries = WatchedState(0)
        let bench = Bench(
            source: [Thing(1, bytes: 1000)],
            act: {
                guard $0 == .content(1) else { return }
                SyncProgress.transferred(600)
                tries.update { $0 += 1 }
                if tries.current == 1 { throw Trouble.passing }
                SyncProgress.transferred(300)
            })
        let board = Published(time).board
        let pass = SyncPass(processor: bench, options: SyncOptions(), overrides: [], time: time, board: board)
        let run = Task { await pass.run() }
        try await time.sleepers(atLeast: 1)
        #expect(board.report.progress.doneBytes == 0)
        time.advanceToNextDeadline()
        let report = try await run.value.get()
        #expect((report.progress.doneBytes, report.progress.totalBytes, report.downloadedBytes) == (1000, 1000, 1000))
        // Outside a download the call has no effect.
        SyncProgress.transferred(5)
    }

    @Test(arguments: [true, false])
    func `S13: the last progress of a pass contains the counts of its items`(hasWork: Bool) async throws {
        let time = ManualTime()
        let published = Published(time)
        let bench = Bench(source: [Thing(1, bytes: 10), Thing(2, bytes: 20)], local: hasWork ? [:] : [1: 1, 2: 1])
        let pass = SyncPass(processor: bench, options: SyncOptions(), overrides: [], time: time, board: published.board)
        #expect(try await pass.run().get().progress.doneItems == 2)
        let last = try #require(published.last)
        #expect(last.stage == .end)
        #expect((last.doneItems, last.totalItems, last.doneBytes) == (2, .exactly(2), hasWork ? 30 : 0))
    }

    @Test(arguments: [nil, 1_000] as [Int64?], [true, false])
    func `S13: finished items keep their received bytes, with or without a known size`(size: Int64?, isPreview: Bool) async throws {
        let bench = Bench(
            source: [Thing(1, bytes: size), Thing(2, bytes: size)],
            act: { call in
                switch call {
                case .preview, .content: SyncProgress.transferred(1_000)
                default: break
                }
            })
        let options = SyncOptions(downloadsPreviews: isPreview, downloadsContents: !isPreview)
        #expect(try await OneWaySynchronizer(processor: bench, options: options).sync().progress.doneBytes == 2_000)
    }

    @Test func `S13: the counts of a stage keep its whole time if the next stage counts nothing`() {
        let time = ManualTime()
        let board = Published(time).board
        board.enter(.contents, items: .exactly(1))
        time.advance(by: .milliseconds(50))
        board.advance(items: 1, bytes: 10)
        board.enter(.removals, items: .exactly(1))
        time.advance(by: .seconds(1))
        #expect(board.finish().progress.bytesPerSecond == 200)
    }

    @Test func `S13: a transfer that starts over counts only its new bytes`() async throws {
        let bench = try DirectoryBench()
        let transfer = ClosureTransfer<ListedFile> { _, part in
            for count in [20, 30] {
                try part.begin()
                try part.append([UInt8](repeating: 1, count: count))
            }
        }
        let target = DirectoryTarget(directory: bench.url, transfer: transfer) { ListedSource([ListedFile(path: "a", version: "1")]) }
        #expect(try await OneWaySynchronizer(processor: target).sync().progress.doneBytes == 30)
    }

    @Test func `S13: the removal of items of known sizes has no bytes, so that its items show the remaining time`() async throws {
        let bench = try await DirectoryBench(["a": "one", "b": "two"]).synced()
        bench["b"] = nil
        let progress = try await bench.sync().progress
        #expect(progress.stage == .removals && progress.doneItems == 1)
        #expect(progress.totalBytes == nil)
    }

    @Test func `S13: bytes reported as totals decrease if an item starts over`() async throws {
        let time = ManualTime()
        let published = Published(time)
        let seen = Lock<[Int64]>([])
        let bench = Bench(
            source: [Thing(1, bytes: 1000)],
            act: {
                guard $0 == .content(1) else { return }
                for bytes in [400, 900, 100, -5] as [Int64] {
                    time.advance(by: .seconds(1))
                    SyncProgress.reached(bytes)
                    seen.withLock { $0.append(published.last?.doneBytes ?? -1) }
                }
            })
        let pass = SyncPass(processor: bench, options: SyncOptions(), overrides: [], time: time, board: published.board)
        #expect(try await pass.run().get().progress.doneBytes == 1000)
        #expect(seen.withLock { $0 } == [400, 900, 100, 0])
        // Outside a download the call has no effect.
        SyncProgress.reached(5)
    }

    // Bytes and items done, total bytes and items, seconds → rate, remaining seconds.
    @Test(
        arguments: [
            (500, 1, 1000, 10, 5, 100, 5), (0, 0, 1000, 10, 5, 0, nil), (0, 5, nil, 10, 5, 0, 5), (0, 0, nil, 10, 5, 0, nil),
            (1000, 10, 1000, 10, 5, 200, 0), (2000, 5, 1000, 10, 5, 400, 0), (0, 0, nil, 0, 5, 0, 0), (500, 1, 1000, 10, 0, 0, nil),
            (0, 3, 0, 6, 3, 0, 3),
        ] as [(Int64, Int, Int64?, Int, Int, Double, Double?)])
    func `S13: progress computes rate and remaining time`(
        bytes: Int64, items: Int, totalBytes: Int64?, totalItems: Int, seconds: Int, rate: Double, remaining: Double?
    ) {
        let progress = SyncProgress(
            stage: .contents, doneItems: items, totalItems: .exactly(totalItems), doneBytes: bytes, totalBytes: totalBytes,
            elapsed: .seconds(seconds))
        #expect(progress.bytesPerSecond == rate)
        #expect(progress.remaining.map { $0 / .seconds(1) } == remaining)
    }

    @Test func `S13: progress estimates no remaining time while the total is a lower bound`() {
        #expect(SyncProgress(stage: .sourceList, doneItems: 5, totalItems: .atLeast(9), elapsed: .seconds(3)).remaining == nil)
    }

    @Test func `S13: huge sizes do not overflow`() async throws {
        let source = [Thing(1, bytes: .max), Thing(2, bytes: .max), Thing(3, bytes: -5)]
        let bench = Bench(
            source: source,
            act: { call in
                for bytes in [Int.max, .max, .min, .min, .max] { SyncProgress.transferred(bytes) }
                if call == .content(3) { SyncProgress.transferred(.min) }
            })
        let report = try await OneWaySynchronizer(processor: bench, options: SyncOptions(concurrency: 1)).sync()
        #expect(report.downloadedBytes == .max)
        let slow = SyncProgress(
            stage: .contents, doneItems: 0, totalItems: .exactly(2), doneBytes: 1, totalBytes: .max, elapsed: .seconds(1_000_000_000))
        #expect((slow.remaining ?? .zero) > .seconds(1_000_000_000))
    }

    @Test func `S13: observers get totals during a pass and the report at its end`() async throws {
        let bench = Bench(source: [Thing(1), Thing(2)])
        let synchronizer = OneWaySynchronizer(processor: bench, options: SyncOptions(concurrency: 1))
        bench.hold(.content(2))
        let observer = RecordingObserver(synchronizer.publish())
        let caller = Task { try await synchronizer.sync() }
        try await bench.waiting(.content(2))
        let running = try await observer.next { $0.isLoading && $0.content?.progress.stage == .contents }
        #expect(running.content?.sourceCount == 2)
        bench.release(.content(2))
        #expect(try await caller.value.addedCount == 2)
        let ended = try await observer.next { if case .completed = $0 { true } else { false } }
        #expect(ended.content?.addedCount == 2)
        // A later observer gets the result of the last pass.
        let late = RecordingObserver(synchronizer.publish())
        #expect(try await late.states(count: 1).first?.content?.addedCount == 2)
        try await observer.stopAndLeave()
        try await late.stopAndLeave()
    }

    @Test func `S13: an observer gets an error with its report`() async throws {
        let bench = Bench(source: [Thing(1), Thing(2)], act: { if $0 == .content(2) { throw Trouble.lasting } })
        let synchronizer = OneWaySynchronizer(processor: bench, options: SyncOptions(concurrency: 1))
        _ = await syncError { try await synchronizer.sync() }
        let observer = RecordingObserver(synchronizer.publish())
        let state = try await observer.next { if case .error = $0 { true } else { false } }
        #expect(state.content?.addedCount == 1)
        #expect((state.error as? SyncError)?.code == .incomplete)
        try await observer.stopAndLeave()
    }
}
