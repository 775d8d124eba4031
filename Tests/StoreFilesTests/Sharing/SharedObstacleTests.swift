import Foundation
import Testing
import Trials
import StoreCoreTesting
import StoreTrials
@testable import StoreCore
@testable import StoreFiles
@testable import StorePlatform

/// Tests D1, D3, D4, D5 and D8 in directories that contain foreign files, files of older versions, or that are removed.
struct SharedObstacleTests {
    private let place: TemporaryDirectory

    init() throws { place = try TemporaryDirectory() }

    enum Obstacle: String, CaseIterable, Sendable { case file, directory, link, pipe }

    private func make(_ obstacle: Obstacle, at url: URL) throws {
        try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        let path = url.path(percentEncoded: false)
        switch obstacle {
        case .file: try Data("garbage".utf8).write(to: url)
        case .directory: try FileManager.default.createDirectory(at: url, withIntermediateDirectories: false)
        case .link: try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "elsewhere")
        case .pipe: #expect(mkfifo(path, 0o600) == 0)
        }
    }

    private func kind(of url: URL) -> FileAttributeType? {
        try? FileManager.default.attributesOfItem(atPath: url.path(percentEncoded: false))[.type] as? FileAttributeType
    }

    @Test(arguments: [".sharing", ".sharing/changes", ".sharing/KEY.lease", "KEY.record"], Obstacle.allCases)
    func `D8: a store goes on although a foreign file has the name of the cacher's own`(name: String, obstacle: Obstacle) async throws {
        let url = place.file(name.replacing("KEY", with: try FileKey(1).digest.hex))
        try make(obstacle, at: url)
        let kind = kind(of: url)
        let store = SharedStoreTests.Process(place.url).store
        #expect(try await store[1].requireData() == 1)
        await store[1].update(5)
        #expect(try await store[1].requireData() == 5)
        #expect(place.file("elsewhere").isMissing && place.file(".sharing/elsewhere").isMissing)
        // A save replaces the file of a record.
        if obstacle != .file, !name.hasSuffix(".record") { #expect(self.kind(of: url) == kind) }
        // The follower may put a file into the directory meanwhile.
        if self.kind(of: url) == kind { try removeFollowed(url) }
        try await store.waitUntilSaved()
        await store[1].update(6)
        try await store.waitUntilSaved()
        #expect(try await FileCacher<Int, Int>(directory: place.url, sharing: .processes).load(param: 1)?.content == 6)
    }

    @Test func `D1, D3: a record of an older version of the package is served, changed and followed`() async throws {
        let older = FileCacher<Int, Int>(directory: place.url)
        try await older.save(record(5), param: 1)
        let (a, b) = (SharedStoreTests.Process(place.url), SharedStoreTests.Process(place.url))
        let observer = b.observer(1)
        try await until("the old record is served") { observer.states.last?.content == 5 }
        for value in 6...8 {
            #expect(await a.store[1].update { $0 += 1 })
            try await until("the change arrives") { observer.states.last?.content == value }
        }
        #expect(a.fetcher.requests.isEmpty && b.fetcher.requests.isEmpty)
        #expect(try await older.load(param: 1)?.content == 8)
    }

    @Test func `D4: after the directory was removed, a live key and the memory are read again`() async throws {
        let (a, b) = (SharedStoreTests.Process(place.url), SharedStoreTests.Process(place.url))
        let observer = b.observer(1)
        try await until("the key is fetched") { observer.states.last?.content == 1 }
        await b.store[2].update(20)
        try removeFollowed(place.url)
        // A follower that meets the removal several times fetches several times.
        try await until("the key is fetched again") { observer.states.last?.content.map { $0 > 1 } == true }
        try await until("memory is empty") { await b.store[2].getData(from: .cache) == nil }
        await a.store[1].update(30)
        try await until("a change arrives again") { observer.states.last?.content == 30 }
    }

    #if !canImport(Darwin)
    @Test func `D4: a file without a name is never found by its old one, even while the system removes it`() throws {
        let folder = try #require(try DirectoryHandle(opening: Directory(path: place.url.path(percentEncoded: false))))
        var found = 0
        for _ in 0..<rounds(20_000, quick: 1_000) {
            let file = try WritableFile("removed", in: folder)
            var isNamed = [true, true]
            isNamed.withUnsafeMutableBufferPointer { isNamed in
                nonisolated(unsafe) let isNamed = isNamed
                DispatchQueue.concurrentPerform(iterations: 2) { side in
                    if side == 0 { return _ = unlink(file.path) }
                    while let status = try? file.status(), status.linkCount > 0 {}
                    isNamed[0] = file.isNamed
                    isNamed[1] = file.size(ifNamed: "removed", in: folder) != nil
                }
            }
            found += isNamed.count { $0 }
        }
        #expect(found == 0)
    }

    @Test func `D4: after the system has dropped events, every watch is told, and ends`() async throws {
        let files = ["busy", "other", "idle"].map { place.file($0) }
        for file in files { try Data().write(to: file) }
        // Events of its own, because other tests would be told too.
        let inotify = Inotify()
        let counts = WatchedState([0, 0, 0])
        let (isBlocked, gate) = (WatchedState(false), DispatchSemaphore(value: 0))
        var watches: [(Int32, UInt64)] = []
        for (number, file) in files.enumerated() {
            let watch = try inotify.add(file.path(percentEncoded: false), UInt32(IN_MODIFY)) { _ in
                counts.update { $0[number] += 1 }
                guard number == 0, !isBlocked.current else { return }
                isBlocked.update { $0 = true }
                gate.wait()
            }
            watches.append(try #require(watch))
        }
        let writers = try files.map { try FileHandle(forWritingTo: $0) }
        for count in 1...2 {
            try writers[1].write(contentsOf: [1])
            try await until { counts.current[1] == count }
        }
        #expect(counts.current == [0, 2, 0])
        // Nothing reads events until the gate opens.
        try writers[0].write(contentsOf: [1])
        try await until { isBlocked.current }
        let limit = try String(contentsOfFile: "/proc/sys/fs/inotify/max_queued_events", encoding: .utf8)
        let count = try #require(Int(limit.trimmingCharacters(in: .whitespacesAndNewlines)))
        // Two files in turn, because the system joins equal events.
        for number in 0...count { try writers[number % 2].write(contentsOf: [1]) }
        #expect(counts.current == [1, 2, 0])
        #expect(watches.allSatisfy { inotify.isValid($0.0, $0.1) })
        gate.signal()
        try await until { counts.current[2] == 1 }
        // The end of a watch may be among the dropped events, so its owner begins a new one.
        #expect(watches.allSatisfy { !inotify.isValid($0.0, $0.1) })
    }
    #endif

    @Test func `D1, D3: revisions never restart, although a clock was set back and a new ring begins below them`() async throws {
        let (a, b) = (SharedStoreTests.Process(place.url), SharedStoreTests.Process(place.url))
        let observer = b.observer(1)
        try await until("the key is fetched") { observer.states.last?.content == 1 }
        await b.store[1].update(100)
        let before = b.cacher.position
        // Without the record, only the ring knows the revisions. In place, because the process follows the file. Under the lock, because
        // the process may append to the file.
        try FileManager.default.removeItem(at: place.file(fileName(1)))
        let folder = try #require(try DirectoryHandle(opening: Directory(path: place.directory.path(of: ".sharing"))))
        let lock = try WritableFile("lock", in: folder)
        try await until("the lock is free") { try lock.lock() }
        try place.write(LogFormat.changes.encode([SharedChange.began(.beginning(5_000_000))], at: 0), ".sharing/changes")
        lock.unlock()
        try await until("the follower has seen the new ring") {
            let head = try changeNumbers(in: place)?.head ?? 0
            return b.cacher.position < before || head >= before.number
        }
        try await until("the key is fetched again") { observer.states.last?.content.map { $0 < 100 } == true }
        for value in 10...12 {
            await a.store[1].update(value)
            try await until("the change arrives") { observer.states.last?.content == value }
        }
        #expect(b.cacher.position > before)
    }

    @Test func `D3: the old mark of a long key is removed, and still refuses older content`() async throws {
        let (a, b, c) = (longKeys(), longKeys(), longKeys())
        let key = String(repeating: "long ", count: 400)
        _ = try await b.load(param: key)
        let base = b.position
        try await a.save(record(1), param: key)
        try await a.remove(param: key)
        try place.age(fileName(key), by: .seconds(7200))
        // The first save of a cacher scans the directory.
        try await c.save(record(1), param: "other")
        await c.settle()
        #expect(try place.status(fileName(key)) == nil)
        #expect(!(try await b.save(record(2), param: key, over: base).isSaved))
        #expect(try await b.load(param: key) == nil)
    }

    private func longKeys() -> FileCacher<String, Int> { FileCacher(directory: place.url, sharing: .processes) }

    @Test func `D8: a process that is stopped while it removes a file blocks no save for long`() async throws {
        try await cacher().save(record(1), param: 1)
        // A lock belongs to the open directory, so this is the lock of another process, which removes names under it.
        let stopped = open(place.directory.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        defer { close(stopped) }
        #expect(flock(stopped, LOCK_EX) == 0)
        let events = EventLog()
        let store = Store(cacher: TieredCacher(over: cacher()), fetcher: ScriptedFetcher<Int, Int>.counting(), onEvent: events.append)
        await store[1].update(5)
        #expect(try await store[1].requireData() == 5)
        // Events are reported after the callers have resumed.
        try await until("the fault is reported") { events.names.contains("fault save") }
        #expect(flock(stopped, LOCK_UN) == 0)
        // The thread that waited takes the lock before it gives it back.
        try await until("the change is saved") { (try? await store.waitUntilSaved()) != nil }
        #expect(try await cacher().load(param: 1)?.content == 5)
    }

    // MARK: Leases

    private func cacher() -> FileCacher<Int, Int> { FileCacher(directory: place.url, sharing: .processes) }

    @Test func `D5: a waiter gets the lease when the directory is removed, and the old holder does not end it`() async throws {
        let (a, b, c) = (cacher(), cacher(), cacher())
        let lease = try #require(try await granted { try await a.lease(1, for: .seconds(100_000)) })
        let waiter = Task { try await granted { try await b.lease(1, for: .seconds(100_000)) } }
        try await until { b.shared?.leaseEvents.current.waited.count == 1 }
        // In one step, because a removal that is still running would also remove the next lease.
        let old = place.url.appending(path: "../\(UUID())").standardizedFileURL
        try FileManager.default.moveItem(at: place.url, to: old)
        try FileManager.default.removeItem(at: old)
        let next = try #require(try await waiter.value())
        lease.end(.saved)
        let last = Task { try await granted { try await c.lease(1, for: .seconds(100_000)) } }
        try await until { c.shared?.leaseEvents.current.waited.count == 1 }
        next.end(.saved)
        #expect(try await last.value() != nil)
    }

    @Test func `D5: an old lease file that a foreign process has locked blocks no longer than the lease`() async throws {
        try await cacher().save(record(1), param: 1)
        try place.write(Array(#"{"holder":77,"expires":5}"#.utf8), ".sharing/\(FileKey(1).digest.hex).lease")
        let folder = try #require(try DirectoryHandle(opening: Directory(path: place.directory.path(of: ".sharing"))))
        let foreign = try WritableFile("\(FileKey(1).digest.hex).lease", in: folder)
        #expect(try foreign.lock())
        #expect(try await granted { try await cacher().lease(1, for: .seconds(100_000)) } != nil)
        foreign.unlock()
    }
}

extension URL {
    fileprivate var isMissing: Bool { !FileManager.default.fileExists(atPath: path(percentEncoded: false)) }
}
