internal import Foundation
internal import StoreCore
internal import SyncEngine
internal import Synchronization
internal import Trials

extension Experiment {
    static var synchronizing: [Experiment] {
        let all = [plan(.sortedByKey), plan(.unsorted), planMemory, unchanged(100_000), unchanged(1_000_000)]
        #if os(Linux)
        return all + [filesMemory]
        #else
        return all
        #endif
    }

    /// Plans with sides that are generated during reading. Every figure includes that cost; the floor is that cost alone.
    private static func plan(_ order: SourceOrder) -> Experiment {
        let isSorted = order == .sortedByKey
        let figure = Figure(
            name: isSorted ? "sync-plan" : "sync-plan-unsorted",
            title: "plan of 1 M + 1 M \(isSorted ? "sorted" : "unsorted") entries, 0.1 % changed", unit: .nanoseconds)
        return Experiment(section: .sync, figures: [figure], peers: { _ in isSorted ? [] : try await sortAndCompare() }) { _ in
            let rows = Rows(count: 1_000_000, changes: 1_000)
            return [
                .floor {
                    let watch = Stopwatch()
                    for start in stride(from: 0, to: rows.count, by: Rows.pageSize) {
                        blackHole(rows.sourcePage(at: start))
                        blackHole(rows.localPage(at: start))
                    }
                    return [watch.nanoseconds]
                },
                .mutex {
                    let watch = Stopwatch()
                    blackHole(isSorted ? HandwrittenSync.merge(rows).count : HandwrittenSync.hash(rows).count)
                    return [watch.nanoseconds]
                },
                .storehouse {
                    let synchronizer = OneWaySynchronizer(processor: RowProcessor(rows: rows, order: order))
                    let watch = Stopwatch()
                    blackHole(try await synchronizer.plan().updates.count)
                    return [watch.nanoseconds]
                },
            ]
        }
    }

    /// Sorts the same lists as text files, and compares them line by line.
    private static func sortAndCompare() async throws -> [Peer] {
        let rows = Rows(count: 1_000_000, changes: 1_000)
        let place = BenchmarkDirectory()
        let (source, local) = (try place.makeDirectory() + "source", try place.makeDirectory() + "local")
        try IteratorSequence(rows.sourcePages()).map { "\($0.key) \($0.version)\n" }.joined()
            .write(toFile: source, atomically: true, encoding: .utf8)
        try IteratorSequence(rows.localPages()).map { "\($0.key) \($0.version)\n" }.joined()
            .write(toFile: local, atomically: true, encoding: .utf8)
        let script = "sort \"$1\" > \"$1.s\" && sort \"$2\" > \"$2.s\" && comm -3 \"$1.s\" \"$2.s\""
        let peer = try await Peer.time("sync-plan-unsorted", "sort | comm", needs: ["sort", "comm"], script, [source, local])
        return peer.map { [$0] } ?? []
    }

    /// Uses as many changes in the longer list as in the shorter one, because the changes may take memory.
    private static let planMemory = Experiment(
        section: .sync,
        figures: [
            Figure(name: "sync-plan-peak", title: "peak heap of a plan of 1 M + 1 M sorted entries", unit: .bytes),
            Figure(name: "sync-plan-peak-4m", title: "the increase with 4 M + 4 M entries and as many changes", unit: .bytes),
        ],
        rounds: 3
    ) { _ in
        [
            .storehouse {
                let short = try await peak(Rows(count: 1_000_000, changes: 1_000))
                return [short, max(0, try await peak(Rows(count: 4_000_000, changes: 1_000)) - short)]
            }
        ]
    }

    /// Measures the heap's peak growth, sampled at each request for a page.
    private static func peak(_ rows: Rows) async throws -> Double {
        let most = Mutex(0.0)
        let before = HeapUsage.bytes
        let processor = RowProcessor(rows: rows, order: .sortedByKey) {
            let held = HeapUsage.bytes - before
            most.withLock { $0 = max($0, held) }
        }
        blackHole(try await OneWaySynchronizer(processor: processor, options: SyncOptions(listLimit: 5_000_000)).plan().updates.count)
        return most.withLock { $0 }
    }

    #if os(Linux)
    /// Measures a whole process that reads a list, examines every file, and does nothing else.
    private static let filesMemory = Experiment(
        .sync, "sync-files-peak", "peak memory of a process that finds 100 000 files unchanged", unit: .bytes, rounds: 3
    ) { _ in
        let place = BenchmarkDirectory()
        let directory = try place.makeDirectory()
        @Sendable func run(_ mode: String) throws -> [Int] {
            let child = try ChildProcess("SyncCrashWriter", [directory, "0", "100000", "crash", mode])
            return child.rest.split(whereSeparator: \.isWhitespace).compactMap { Int($0) }
        }
        // The first pass writes the journal.
        for mode in ["fill", "idle"] { _ = try run(mode) }
        return [
            .storehouse {
                guard let kilobytes = try run("idle").last else { throw CocoaError(.fileReadCorruptFile) }
                return [Double(kilobytes) * 1024]
            }
        ]
    }
    #endif

    private static func unchanged(_ count: Int) -> Experiment {
        let isSmall = count == 100_000
        let title = "each of \(isSmall ? "100 000" : "1 M") unchanged items, through the whole engine"
        return Experiment(.sync, isSmall ? "sync-unchanged" : "sync-unchanged-1m", title) { _ in
            let rows = Rows(count: count, changes: 0)
            let synchronizer = OneWaySynchronizer(processor: RowProcessor(rows: rows, order: .unsorted))
            return [
                .mutex {
                    let watch = Stopwatch()
                    blackHole(HandwrittenSync.hash(rows).count)
                    return [watch.nanoseconds / Double(count)]
                },
                .storehouse {
                    let watch = Stopwatch()
                    blackHole(try await synchronizer.sync().unchangedCount)
                    return [watch.nanoseconds / Double(count)]
                },
            ]
        }
    }
}

/// Synchronizes rows without downloads and removals.
private struct RowProcessor: SyncProcessor {
    var rows: Rows
    var order: SourceOrder
    /// Called at each request for a page of the source.
    var onPage: @Sendable () -> Void = {}

    func sourceList() async throws -> PagedSource<Row, Int> {
        PagedSource(order: order) { [rows, onPage] cursor in
            onPage()
            let start = cursor ?? 0
            let page = rows.sourcePage(at: start)
            let end = start + page.count
            return .init(page, then: end < rows.count ? .page(end) : .end(.complete(count: rows.count)))
        }
    }

    func localInventory() async throws -> LocalInventory<Row> {
        LocalInventory(order: order) { [rows] in
            var start = 0
            return {
                guard start < rows.count else { return nil }
                defer { start += Rows.pageSize }
                return rows.localPage(at: start).map { LocalEntry($0.key, version: $0.version) }
            }
        }
    }

    func downloadContent(of item: Row) async throws {}
    func remove(_ keys: Set<Int>) async throws {}
}
