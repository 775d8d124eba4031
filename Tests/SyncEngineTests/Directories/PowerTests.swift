import Dispatch
import Foundation
import StoreCore
import StoreFiles
import StorePlatform
import Testing
import Trials
@testable import SyncEngine

/// S9 and F1 with `.power`: the state of the disk after a power loss.
struct PowerTests {
    /// The steps of a pass in their order.
    private final class Log: Sendable {
        let steps = Lock<[TargetStep]>([])
        private let tenAreWritten = DispatchSemaphore(value: 0)

        func add(_ step: TargetStep) { steps.withLock { $0.append(step) } }

        /// Holds the first flush until ten files are written, so that later files share one.
        func addKeepingTheFirstFlush(_ step: TargetStep) {
            let (written, flushes) = steps.withLock { steps in
                steps.append(step)
                // A large file is written in many steps.
                return (Set(steps.compactMap { if case .writes(let path) = $0 { path } else { nil } }), steps.count { $0 == .flushBegins })
            }
            if written.count == 10 { tenAreWritten.signal() }
            if step == .flushBegins, flushes == 1 { _ = tenAreWritten.wait(timeout: .now() + 60) }
        }

        /// Files renamed before the end of their own flush, or of one that began after their last write.
        var early: [String] {
            let steps = steps.withLock { $0 }
            return steps.indices.compactMap { index -> String? in
                guard case .renames(let path) = steps[index] else { return nil }
                let written = steps[..<index].lastIndex(of: .writes(path)) ?? -1
                let later = steps[(written + 1)..<index]
                if later.contains(.synchronizes(path)) { return nil }
                guard let begun = later.firstIndex(of: .flushBegins), later[begun...].contains(.flushEnds) else { return path }
                return nil
            }
        }
    }

    /// A bench with many small files. They are smaller under the sanitizer, where hashing a few hundred kilobytes takes a second.
    private static func bench(_ count: Int) throws -> DirectoryBench {
        let bench = try DirectoryBench()
        for number in 0..<count {
            bench["d\(number % 7)/f\(number)"] = String(repeating: "\(number) ", count: number % 5 * (isSanitized ? 100 : 1_000) + 1)
        }
        return bench
    }

    @Test(arguments: isSanitized ? [4] : part(of: [1, 4, 16], each: 3))
    func `F1, S9: with durability power, a file is renamed only after a flush of its bytes`(concurrency: Int) async throws {
        let bench = try Self.bench(120)
        bench["large"] = String(repeating: "large", count: 210_000)
        let log = Log()
        bench.onStep { log.addKeepingTheFirstFlush($0) }
        let report = try await bench.sync(durability: .power, concurrency: concurrency)
        #expect(report.addedCount == 121)
        #expect(log.early == [])
        let steps = log.steps.withLock { $0 }
        #expect(steps.count { if case .renames = $0 { true } else { false } } == 121)
        #expect(steps.contains(.synchronizes("large")))
        // Without sharing, each small file would cause a flush. The exact number depends on the speed of the machine.
        if DirectoryHandle.synchronizesFileSystems { #expect(steps.count { $0 == .flushBegins } < 120, "flushes are shared") }
        #expect(try bench.files == bench.origin.withLock { $0.contents })
    }

    @Test func `S9: with durability crash, nothing is flushed`() async throws {
        let bench = try Self.bench(20)
        let log = Log()
        bench.onStep { log.add($0) }
        try await bench.sync(durability: .crash)
        let steps = log.steps.withLock { $0 }
        #expect(!steps.contains(.flushBegins))
        #expect(log.early.count == 20, "the check can fail")
    }

    @Test func `S9: files that wait for a flush do not delay other transfers`() async throws {
        guard DirectoryHandle.synchronizesFileSystems else { return }
        let bench = try Self.bench(40)
        let (written, gate) = (WatchedState<Set<String>>([]), DispatchSemaphore(value: 0))
        let begun = Lock(0)
        bench.onStep { step in
            if case .writes(let path) = step { written.update { _ = $0.insert(path) } }
            // Blocks only the flush's own thread.
            guard step == .flushBegins else { return }
            let number = begun.withLock { begun in
                begun += 1
                return begun
            }
            if number == 1 { gate.wait() }
        }
        let run = Task { try await bench.sync(durability: .power, concurrency: 1) }
        try await written.wait { $0.count == 40 ? () : nil }
        #expect(try bench.files.isEmpty)
        gate.signal()
        #expect(try await run.value.addedCount == 40)
    }

    @Test func `S9: a directory stays locked during a flush even if the end of the pass is canceled`() async throws {
        guard DirectoryHandle.synchronizesFileSystems else { return }
        let bench = try DirectoryBench()
        let (events, gate) = (WatchedState<[String]>([]), DispatchSemaphore(value: 0))
        let place = Directory(path: bench.url.path(percentEncoded: false))
        defer { withExtendedLifetime(bench) {} }
        let session = try TargetSession(place, durability: .power, folding: nil) { step in
            guard step == .flushEnds, events.current.isEmpty else { return }
            events.update { $0.append("flushes") }
            gate.wait()
            events.update { $0.append("has flushed") }
        }
        let flush = Task { try await session.flush() }
        try await events.wait { $0.isEmpty ? nil : () }
        flush.cancel()
        _ = await flush.result
        let end = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            defer { events.update { $0.append("has ended") } }
            try await session.end(isComplete: true)
        }
        try await until("the end waits for a flush of its own, or the flush has ended") {
            session.flushes.waitingCount == 1 || events.current.count > 1
        }
        #expect(throws: SyncError.self) { try TargetSession(place, durability: .power, folding: nil) }
        gate.signal()
        try await end.value
        #expect(events.current == ["flushes", "has flushed", "has ended"])
    }

    @Test(arguments: [POSIXErrorCode.EIO, .ENOSPC])
    func `S5, S9: a failed flush fails its items, ends the pass, and discards their parts`(code: POSIXErrorCode) async throws {
        guard DirectoryHandle.synchronizesFileSystems else { return }
        let bench = try Self.bench(40)
        bench.onStep { if $0 == .flushEnds { throw diskError(code) } }
        let error = await syncError { try await bench.sync(durability: .power) }
        #expect(error?.code == .incomplete)
        let failures = try #require(error?.report?.failures)
        #expect(!failures.isEmpty)
        for failure in failures {
            #expect(((failure.error as? StoreError)?.underlyingError as? POSIXError)?.code == code)
            #expect(failure.stage == .contents)
        }
        #expect(try bench.files.isEmpty)
        let parts = bench.url.appending(path: ".storehouse/parts")
        // Bytes that the system failed to write may look intact until they are read from the disk again.
        #expect(try FileManager.default.contentsOfDirectory(atPath: parts.path).isEmpty)
        bench.probe.withLock { $0 = nil }
        bench.origin.withLock { $0.transfers = [] }
        #expect(try await bench.sync(durability: .power).addedCount == 40)
        #expect(bench.origin.withLock { $0.transfers.count } == 40, "all files are transferred again")
    }

    @Test func `S5, S9: a failed flush at the end fails the pass and unlocks the directory`() async throws {
        guard DirectoryHandle.synchronizesFileSystems else { return }
        let bench = try Self.bench(3)
        let removed = "old"
        try await bench.sync(durability: .power)
        bench[removed] = "to be removed"
        try await bench.sync(durability: .power)
        bench[removed] = nil
        // A pass without downloads flushes once, at its end.
        bench.onStep { if $0 == .flushEnds { throw diskError(.EIO) } }
        let error = await syncError { try await bench.sync(durability: .power) }
        #expect((error?.code, error?.stage) == (.stageFailed, .end))
        #expect(((error?.underlyingError as? StoreError)?.underlyingError as? POSIXError)?.code == .EIO)
        #expect(error?.report?.removedCount == 1)
        let flushes = Lock(0)
        bench.onStep { step in if step == .flushBegins { flushes.withLock { $0 += 1 } } }
        #expect(try await bench.sync(durability: .power).unchangedCount == 3, "the directory is unlocked, and its files are kept")
        #expect(flushes.withLock { $0 } == 1, "the next pass flushes the removal, although it changes nothing")
    }

    @Test func `S9, S10: a pass flushes once at its end what it or an earlier one has left, and an unchanged pass never`() async throws {
        guard DirectoryHandle.synchronizesFileSystems else { return }
        let bench = try Self.bench(4)
        try await bench.sync(durability: .power)
        let flushes = Lock(0)
        bench.onStep { step in if step == .flushBegins { flushes.withLock { $0 += 1 } } }
        // A process has ended before it had flushed the journal.
        let changes = try TargetJournal.changes(in: bench.journal)
        #expect(changes.suffix(2) == [.synchronized, TargetJournal.flushMark])
        try TargetJournal.write(Array(changes.dropLast()), to: bench.journal)
        for _ in 0..<2 { #expect(try await bench.sync(durability: .power).unchangedCount == 4) }
        #expect(flushes.withLock { $0 } == 1)
        bench["d0/f0"] = nil
        for _ in 0..<2 { try await bench.sync(durability: .power) }
        #expect(flushes.withLock { $0 } == 2, "a removal is flushed")
        bench["d0/f0"] = "new"
        try await bench.sync(durability: .crash)
        #expect(flushes.withLock { $0 } == 2)
        for _ in 0..<2 { try await bench.sync(durability: .power) }
        #expect(flushes.withLock { $0 } == 3, "the first pass with power flushes what the pass with crash has written")
        // A pass that has only received a part of a file flushes the part.
        bench["part"] = String(repeating: "part ", count: 20_000)
        bench.origin.withLock { $0.breaks["part"] = 50_000 }
        #expect(await syncError { try await bench.sync(durability: .power) }?.code == .incomplete)
        #expect(flushes.withLock { $0 } == 4)
    }

    @Test func `S7, S9: a download that waits for a flush is canceled at once and not repeated`() async throws {
        guard DirectoryHandle.synchronizesFileSystems else { return }
        let bench = try Self.bench(12)
        let (began, gate) = (WatchedState(false), DispatchSemaphore(value: 0))
        bench.onStep { step in
            guard step == .flushBegins else { return }
            began.update { $0 = true }
            gate.wait()
        }
        let target = bench.target(durability: .power)
        try await target.syncWillBegin()
        let file = ListedFile(path: "d1/f1", sha256: digest(try #require(bench["d1/f1"])))
        let download = Task { try await target.downloadContent(of: file) }
        try await began.wait { $0 ? () : nil }
        download.cancel()
        // The flush is still blocked, so the wait must end before it does.
        await #expect(throws: CancellationError.self) { try await download.value }
        #expect(try bench.files.isEmpty)
        bench.probe.withLock { $0 = nil }
        gate.signal()
        await target.syncDidEnd(SyncReport(pass: 1))
        try await bench.sync(durability: .power)
        #expect(bench.origin.withLock { $0.transfers.count { $0 == "d1/f1" } } == 1)
        #expect(try bench.files == bench.origin.withLock { $0.contents })
    }

    @Test func `S14: a directory is unlocked when its pass ends, even if the session still exists`() async throws {
        let bench = try Self.bench(1)
        let place = Directory(path: bench.url.path)
        let session = try TargetSession(place, durability: .power, folding: nil)
        try await session.end(isComplete: true)
        let next = try TargetSession(place, durability: .power, folding: nil)
        withExtendedLifetime((session, next)) {}
    }

    @Test func `S9: a journal settles exactly the files up to a given change, even after it is read again`() throws {
        for seed in seeds(200, quick: 15, sanitized: 15) {
            var chance = SplitMix(seed: seed)
            var journal = TargetJournal()
            var changes: [TargetJournal.Change] = []
            func add(_ change: TargetJournal.Change) {
                journal.apply(change)
                changes.append(change)
            }
            add(.beginning)
            // The change of each path that is not settled yet.
            var expected: [PathKey: Int] = [:]
            for number in 2...60 {
                let path = PathKey("p\(Int.random(in: 0..<12, using: &chance))")
                let stamp = FileStamp(size: number, modified: Int64(number), inode: UInt64(number))
                switch Int.random(in: 0..<8, using: &chance) {
                case 0:
                    add(.removed(path))
                    expected[path] = nil
                case 1:
                    let last = Int.random(in: 0..<number, using: &chance)
                    add(.synchronizedThrough(last))
                    expected = expected.filter { $0.value > last }
                case 2 where number % 5 == 0:
                    add(.synchronized)
                    expected = [:]
                default:
                    add(.put(path, FileRecord(version: "\(number)", digest: SHA256.digest(of: [1]), stamp: stamp)))
                    expected[path] = number
                }
            }
            let bench = try DirectoryBench()
            let file = bench.url.appending(path: "journal")
            try TargetJournal.write(changes, to: file)
            let read = try #require(try TargetJournal.read(from: file), "seed \(seed)")
            #expect(journal.unsettled == expected && read.unsettled == expected, "seed \(seed)")
            #expect(read.records.count == journal.records.count, "seed \(seed)")
            #expect(read.records.paths.allSatisfy { read.records[$0] == journal.records[$0] }, "seed \(seed)")
            #expect(read.count == 60)
        }
    }

    @Test func `S9: the journal settles a name only after a flush that began after its rename`() async throws {
        guard DirectoryHandle.synchronizesFileSystems else { return }
        let bench = try Self.bench(400)
        let file = bench.journal
        // The paths renamed so far, and those renamed before the last flush began. The journal may settle only the latter after a power
        // loss.
        let renamed = Lock<(now: Set<String>, atBegin: Set<String>)>(([], []))
        let wrong = Lock<[String]>([])
        let vouched = Lock(0)
        let mayVouch = Lock<Set<String>>([])
        bench.onStep { step in
            switch step {
            case .renamed(let path): renamed.withLock { _ = $0.now.insert(path) }
            case .flushBegins:
                let journal = try TargetJournal.read(from: file) ?? TargetJournal()
                let settled = Set(journal.records.paths.filter { journal.isSettled($0) }.map(\.path))
                vouched.withLock { $0 = max($0, settled.count) }
                wrong.withLock { $0 += settled.subtracting(mayVouch.withLock { $0 }) }
                renamed.withLock { $0.atBegin = $0.now }
            case .flushEnds: mayVouch.withLock { $0 = renamed.withLock { $0.atBegin } }
            default: break
            }
        }
        try await bench.sync(durability: .power, concurrency: 8)
        #expect(wrong.withLock { $0 } == [])
        #expect(vouched.withLock { $0 } > 0, "the journal settles some names before the end of the pass")
    }
}

extension TargetJournal {
    /// Writes the log of a journal.
    static func write(_ changes: [Change], to file: URL) throws { try Data(LogFormat.mirror.encode(changes, at: 0)).write(to: file) }

    /// Returns the changes in the log of a journal.
    static func changes(in file: URL) throws -> [Change] {
        let path = file.path(percentEncoded: false)
        var changes: [Change] = []
        guard let open = try OpenFile(reading: path) else { return [] }
        let (damages, _) = try LogFile<Change>.read(open, .mirror) { changes.append($0) }
        #expect(damages.isEmpty)
        return changes
    }

    static func read(from file: URL) throws -> TargetJournal? {
        let path = file.path(percentEncoded: false)
        guard let open = try OpenFile(reading: path) else { return nil }
        return try TargetJournal.read(open)
    }

    /// The paths that are not settled yet, with their changes.
    fileprivate var unsettled: [PathKey: Int] {
        var copy = self
        let all = records.paths.filter { !isSettled($0) }.compactMap { path in records.row(of: path).map { (path, records.line(at: $0)) } }
        #expect(copy.unsettledCount == all.count)
        return Dictionary(uniqueKeysWithValues: all)
    }
}
