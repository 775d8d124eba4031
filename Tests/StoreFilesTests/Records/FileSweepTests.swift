import Dispatch
import Foundation
import StoreTrials
import Testing
import Trials
@testable import StoreCore
@testable import StoreFiles
@testable import StorePlatform

/// Tests the limit of the space on disk, the orphans of F1 and the permissions of F7.
struct FileSweepTests {
    private let place: TemporaryDirectory

    init() throws { place = try TemporaryDirectory() }

    private func cacher(limit: Int = 256_000_000, durability: Durability = .crash) -> FileCacher<Int, String> {
        FileCacher(directory: place.url, limit: limit, durability: durability)
    }

    /// Creates a record with a file of about the given size.
    private func bulk(_ bytes: Int) -> CacheRecord<String> { record(String(repeating: "x", count: bytes - 90)) }

    private func space(_ key: Int) throws -> Int { try place.status(fileName(key)).map { RecordFiles.space(of: $0) } ?? 0 }

    /// The space of all records on disk.
    private var total: Int {
        get throws { try place.records.reduce(0) { try $0 + (place.status($1).map { RecordFiles.space(of: $0) } ?? 0) } }
    }

    /// Saves records of one block each, the first one with the oldest last use.
    private func fill(_ cacher: FileCacher<Int, String>, _ count: Int) async throws {
        for key in 0..<count {
            try await cacher.save(bulk(4000), param: key)
            try place.age(fileName(key), by: .seconds(3600 * (1000 - key)))
        }
        await cacher.settle()
    }

    /// Saves a record, and waits until the sweeps have ended.
    private func save(_ record: CacheRecord<String>, _ key: Int, in cacher: FileCacher<Int, String>) async throws {
        try await cacher.save(record, param: key)
        await cacher.settle()
    }

    @Test func `D3, F8: a sweep of a shared directory removes only records whose revisions it has forgotten`() async throws {
        let cacher = FileCacher<Int, String>(directory: place.url, limit: 43_008, sharing: .processes)
        for key in 0..<10 {
            try await cacher.save(record("x"), param: key)
            try place.age(fileName(key), by: .seconds(60 * (20 - key)))
        }
        await cacher.settle()
        // The oldest record is being changed while the sweep runs.
        let oldest = try FileKey(0).digest
        cacher.state.withLock { $0.ledger.changeBegan(oldest) }
        try await save(record("x"), 10, in: cacher)
        #expect(try await Set(cacher.keys() ?? []) == Set(2...10).union([0]))
    }

    /// What happens to the first of ten records before another one is saved above the limit.
    enum FirstRecord: Sendable { case untouched, loaded, damaged, replacedAfterDamage }

    @Test(arguments: [
        (FirstRecord.untouched, Set(2...10)), (.loaded, Set(3...10).union([0])), (.damaged, Set(1...10)),
        (.replacedAfterDamage, Set(2...10)),
    ])
    func `F2, F8: above the limit the least recently used records are removed until nine tenths remain, and the store is told`(
        _ first: FirstRecord, _ kept: Set<Int>
    ) async throws {
        let small = cacher(limit: 43_008)
        let evicted = Lock<[Int]>([])
        small.observeNotices { notice in if case .evicted(let count) = notice { evicted.withLock { $0.append(count) } } }
        try await fill(small, 10)
        #expect(try place.records.count == 10)
        // A sweep without an eviction is not reported.
        #expect(evicted.withLock { $0 } == [])
        switch first {
        case .untouched: break
        case .loaded: #expect(try await small.load(param: 0) != nil)
        case .damaged:
            try truncateFile(place.directory.path(of: fileName(0)), to: 3_999)
            #expect(try await small.load(param: 0) == nil)
        case .replacedAfterDamage:
            try place.write(place.bytes(fileName(0)).map { ~$0 }, fileName(0))
            #expect(try await small.load(param: 0) == nil)
            try await save(bulk(4000), 0, in: small)
            try place.age(fileName(0), by: .seconds(3600 * 1001))
        }
        try await save(bulk(4000), 10, in: small)
        #expect(try await Set(small.keys() ?? []) == kept)
        // A deleted damaged file no longer counts.
        #expect(try total <= (first == .damaged ? 43_008 : 38_707))
        #expect(evicted.withLock { $0.reduce(0, +) } == (first == .damaged ? 0 : 2))
    }

    @Test func `F8: records of a few bytes take no more space on disk than the limit, and their number is limited`() async throws {
        let small = cacher(limit: 409_600)
        for key in 0..<300 { try await small.save(record("tiny"), param: key) }
        await small.settle()
        let records = try place.records
        #expect((80...100).contains(records.count))
        let blocks = try records.reduce(0) { try $0 + (place.status($1)?.allocatedSize ?? 0) }
        #expect(blocks <= 409_600 * 13 / 10)
        #expect(try total <= 409_600)
        #expect(try await small.load(param: 299) != nil)
    }

    @Test(arguments: [(0, 0, 4_096), (100, 4_096, 4_096), (5_000, 8_192, 8_192), (5_000, 512, 5_000), (100, 65_536, 65_536)])
    func `F8: a file counts with its blocks, and at least with its size and one block`(size: Int, allocated: Int, space: Int) throws {
        var status = try #require(try place.directory.status())
        (status.size, status.allocatedSize) = (size, allocated)
        #expect(RecordFiles.space(of: status) == space)
    }

    @Test(arguments: [(0, 0), (1, 512), (16, 8_192), (-1, 0), (Int.max, Int.max / 512 * 512)])
    func `F8: the blocks that a system reports have 512 bytes`(blocks: Int, bytes: Int) {
        var info = stat()
        info.st_blocks = .init(blocks)
        #expect(FileStatus(info).allocatedSize == bytes)
    }

    @Test func `F8: a sweep removes nothing more once exactly nine tenths of the limit remain`() async throws {
        try await cacher().save(record("content"), param: 10)
        let small = try cacher(limit: 10 * space(10))
        for key in 10..<20 {
            try await small.save(record("content"), param: key)
            try place.age(fileName(key), by: .seconds(3600 * (1000 - key)))
        }
        await small.settle()
        try await save(record("content"), 20, in: small)
        #expect(try await Set(small.keys() ?? []) == Set(12...20))
    }

    @Test func `F8: a sweep that failed is tried again after the next save`() async throws {
        let aside = place.url.deletingLastPathComponent().appending(path: "aside-\(UUID().uuidString)")
        let isBlocked = Lock(false)
        // A file takes the place of the directory before the first sweep begins.
        let options = FileWriteOptions { [place] (step: FileWriteOptions.Step) throws(StoreError) in
            guard step == .renamed,
                isBlocked.withLock({ isBlocked in
                    defer { isBlocked = true }
                    return !isBlocked
                })
            else { return }
            try? FileManager.default.moveItem(at: place.url, to: aside)
            try? Data().write(to: place.url)
        }
        let faults = FaultRecorder()
        let small = FileCacher<Int, String>(directory: place.url, limit: 43_008, options: options) { faults.record($0) }
        try await save(bulk(4000), 0, in: small)
        #expect(faults.kinds == [.sweepFailed])

        try FileManager.default.removeItem(at: place.url)
        try FileManager.default.moveItem(at: aside, to: place.url)
        for key in 1...20 { try await small.save(bulk(4000), param: key) }
        await small.settle()
        #expect(try total <= 43_008)
    }

    @Test(arguments: [(30, false), (50, false), (61, true), (60 * 24 * 365, true), (-70, true)])
    func `a load updates the last use of a file at most once an hour`(minutes: Int, isTouched: Bool) async throws {
        let cacher = cacher()
        try await cacher.save(record("content"), param: 1)
        try place.age(fileName(1), by: .seconds(60 * minutes))
        let before = try #require(try place.status(fileName(1)))
        _ = try await cacher.load(param: 1)
        let after = try #require(try place.status(fileName(1)))
        #expect((after.modified != before.modified) == isTouched)
        #expect(abs(FileStatus.now() - after.modified) < 3_600_000_000_000 || !isTouched)
    }

    /// The second directory is on a file system with dates that do not fit into 64 bits of nanoseconds.
    @Test(arguments: [NSTemporaryDirectory(), "/dev/shm"], [Int.min / 4, -1 << 40, 0, 1 << 40, .max / 4])
    func `a file with any date can be loaded, touched and swept`(parent: String, seconds: Int) async throws {
        guard FileManager.default.isWritableFile(atPath: parent) else { return }
        let place = try TemporaryDirectory(in: parent)
        let small = FileCacher<Int, String>(directory: place.url, limit: 43_008)
        for key in 0..<10 {
            try await small.save(bulk(4000), param: key)
            try setModified(place.file(fileName(key)).path(percentEncoded: false), seconds: seconds)
        }
        try place.write([1], TemporaryFile.makeName(kind: "record"))
        #expect(try await small.load(param: 0) != nil)
        #expect(abs(FileStatus.now() - (try place.status(fileName(0))?.modified ?? 0)) < 3_600_000_000_000)
        try await save(bulk(4000), 10, in: small)
        #expect(try await small.load(param: 10) != nil)
    }

    @Test func `saves of different keys run concurrently`() async throws {
        // The first writer waits until the other one has renamed its file.
        let isFirst = Lock(true)
        let otherIsDone = DispatchSemaphore(value: 0)
        let options = FileWriteOptions { (step: FileWriteOptions.Step) throws(StoreError) in
            let waits =
                step == .written
                && isFirst.withLock { first in
                    defer { first = false }
                    return first
                }
            if waits { #expect(otherIsDone.wait(timeout: .now() + 600) == .success) }
            if step == .renamed { otherIsDone.signal() }
        }
        let cacher = FileCacher<Int, String>(directory: place.url, options: options)
        async let first: Void = cacher.save(record("first"), param: 1)
        async let second: Void = cacher.save(record("second"), param: 2)
        _ = try await (first, second)
        #expect(try await Set(cacher.keys() ?? []) == [1, 2])
    }

    @Test func `F8: overwriting and removing keep the sum exact, so that no sweep comes too early or too late`() async throws {
        let small = cacher(limit: 43_008)
        try await fill(small, 10)
        for _ in 0..<30 { try await small.save(bulk(4000), param: 9) }
        for _ in 0..<30 {
            try await small.remove(param: 9)
            try await small.save(bulk(4000), param: 9)
        }
        await small.settle()
        #expect(try place.records.count == 10)
        try await small.remove(param: 0)
        try await save(bulk(5600), 9, in: small)
        #expect(try place.records.count == 9)
        try await save(bulk(8000), 10, in: small)
        #expect(try await small.load(param: 1) == nil)
        #expect(try await small.load(param: 10) != nil)
    }

    @Test func `F8: records from an earlier process count toward the limit from the first save on`() async throws {
        try await fill(cacher(), 20)
        let small = cacher(limit: 40_960)
        #expect(try await small.load(param: 19) != nil)
        await small.settle()
        #expect(try place.records.count == 20)
        try await save(bulk(4000), 20, in: small)
        #expect(try await Set(small.keys() ?? []) == Set(12...20))
    }

    @Test func `F8: saving a record larger than the limit fails and keeps the older record`() async throws {
        let small = cacher(limit: 2000)
        try await small.save(record("old"), param: 1)
        let error = await #expect(throws: StoreError.self) { try await small.save(bulk(3000), param: 1) }
        #expect(error?.code == .unwritableRecord)
        #expect(error?.description.contains("limit of 2000") == true)
        await small.settle()
        #expect(try await small.load(param: 1) == record("old"))
    }

    @Test func `F8: a record of nearly the limit survives the sweep of its own save`() async throws {
        let small = cacher(limit: 8_192)
        for key in 0..<5 {
            try await save(bulk(8_000), key, in: small)
            #expect(try await small.load(param: key) != nil)
        }
        #expect(try total <= 8_192)
        // It also survives the first save of another cacher, for another key.
        let other = cacher(limit: 8_192)
        try await other.save(record(""), param: 9)
        await other.settle()
        #expect(try await other.load(param: 9) != nil)
        #expect(try total <= 8_192)
    }

    @Test func `F8: saves that outpace the sweep still end below the limit`() async throws {
        let small = cacher(limit: 204_800)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for worker in 0..<8 { group.addTask { for key in 0..<60 { try await small.save(bulk(4000), param: worker * 1000 + key) } } }
            try await group.waitForAll()
        }
        await small.settle()
        #expect(try total <= 204_800)
        #expect(try total >= 163_840)
        #expect(try place.temporaries.isEmpty)
    }

    @Test func `F1: the first scan removes orphaned temporary files older than an hour`() async throws {
        let old = TemporaryFile.makeName(kind: "record")
        let young = TemporaryFile.makeName(kind: "record")
        for name in [old, young] { try place.write([1], name) }
        try place.age(old, by: .seconds(3601))
        try place.age(young, by: .seconds(1800))
        let cacher = cacher()
        _ = try await cacher.load(param: 1)
        _ = try await cacher.keys()
        await cacher.settle()
        // Loading and listing do not scan.
        #expect(try place.temporaries.count == 2)
        try await cacher.save(record("content"), param: 1)
        await cacher.settle()
        #expect(try place.temporaries == [young])
        try await cacher.removeAll()
        #expect(try place.names.isEmpty)
    }

    @Test func `F7: only the user can access the files and the directories created for them`() async throws {
        let url = place.url.appending(path: "a/b", directoryHint: .isDirectory)
        let cacher = FileCacher<Int, String>(directory: url, durability: .power)
        #expect(try await cacher.load(param: 1) == nil)
        #expect(try await cacher.keys() == [])
        try await cacher.removeAll()
        #expect(try place.names.isEmpty)
        try await cacher.save(record("content"), param: 1)
        #expect(try place.status("a")?.permissions == 0o700)
        #expect(try place.status("a/b")?.permissions == 0o700)
        #expect(try place.status("a/b/" + fileName(1))?.permissions == 0o600)
    }

    @Test func `a directory of a scope is inside it under any name`() throws {
        let scope = CacheScope(directory: place.url)
        let names = [
            "users", "../x", "..", ".", "", "a/b", "a%2Fb", "/etc", "a/../../b", "%", "%25", "a\u{0}b", "a\nb", ".sharing", "é", "a:b",
            "a\\b",
            String(repeating: "long", count: 100), String(repeating: "long", count: 101), String(repeating: "e\u{301}", count: 200), "..%",
        ]
        let urls = names.map { scope.directory(named: $0) }
        #expect(Set(urls.map(\.path)).count == names.count)
        for url in urls {
            #expect(url.standardizedFileURL.deletingLastPathComponent().path == place.url.standardizedFileURL.path)
            try FileManager.default.createDirectory(at: url, withIntermediateDirectories: false)
        }
        #expect(try place.names.count == names.count)
        #expect(scope.directory(named: "users").lastPathComponent == "users")
    }

    @Test func `F1: a directory is created with its parents, even if its name begins with a combining accent`() throws {
        let parent = Directory(path: place.directory.path(of: "user"))
        let directory = Directory(path: parent.path(of: "\u{301}a"))
        #expect(directory.parent == parent)
        try directory.create()
        #expect(try directory.status()?.kind == .directory)
    }

    @Test(arguments: ["caf", String(repeating: "long", count: 100)])
    func `F3: canonically equal names have one directory of a scope`(_ name: String) {
        let scope = CacheScope(directory: place.url)
        let composed = scope.directory(named: name + "\u{E9}").path(percentEncoded: true)
        #expect(scope.directory(named: name + "e\u{301}").path(percentEncoded: true) == composed)
    }

    @Test func `F2: clearing a scope removes only the records, in all its directories, even if its name needs escapes`() async throws {
        let folder = "a b%20c"
        let scope = CacheScope(directory: place.url.appending(path: folder, directoryHint: .isDirectory))
        let users = FileCacher<Int, String>(directory: scope.directory(named: "users"))
        try await users.save(record("Ada"), param: 1)
        try await FileCacher<Int, String>(directory: place.url.appending(path: folder)).save(record("top"), param: 1)
        try place.write([1], folder + "/users/notes.txt")
        try place.write([1], folder + "/users/" + TemporaryFile.makeName(kind: "record"))
        await users.settle()
        try await scope.clear()
        #expect(try await users.load(param: 1) == nil)
        #expect(try FileManager.default.contentsOfDirectory(atPath: place.directory.path(of: folder)) == ["users"])
        #expect(try FileManager.default.contentsOfDirectory(atPath: place.directory.path(of: folder + "/users")) == ["notes.txt"])
    }
}
