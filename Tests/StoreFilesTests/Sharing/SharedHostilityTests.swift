import Foundation
import Testing
import Trials
import StoreCoreTesting
import StoreTrials
@testable import StoreCore
@testable import StoreFiles
@testable import StorePlatform

/// Tests D1 to D4 and D7 on directories that are renamed, removed under a writer, shared by cachers of several types, or on a full disk.
struct SharedHostilityTests {
    private let place: TemporaryDirectory
    private let directory: URL

    init() throws {
        place = try TemporaryDirectory()
        directory = place.file("shared")
    }

    @Test func `D4: a followed directory that is renamed causes a gap, and the changes in its successor arrive`() async throws {
        let (a, b) = (SharedUser(directory), SharedUser(directory))
        try await a.attach()
        try await b.attach()
        for round in 1...3 {
            try await a.cacher.save(record(1), param: 10 * round)
            try await until { b.keys.last == 10 * round }
            let gaps = b.gaps
            try FileManager.default.moveItem(at: directory, to: place.file("old \(round)"))
            // Another process creates the successor, or the follower does.
            if round == 2 { try await SharedUser(directory).cacher.save(record(2), param: 5) }
            try await until("there is a gap") { b.gaps > gaps }
            try await a.cacher.save(record(3), param: 10 * round + 1)
            try await until("changes arrive") { b.keys.last == 10 * round + 1 }
        }
    }

    @Test func `D4: after its directory was renamed, an observer shows the content of the successor`() async throws {
        let (a, b) = (SharedStoreTests.Process(directory), SharedStoreTests.Process(directory))
        let observer = b.observer(1)
        await a.store[1].update(10)
        try await until("the observer follows") { observer.states.last?.content == 10 }
        try FileManager.default.moveItem(at: directory, to: place.file("old"))
        await a.store[1].update(11)
        try await until("the observer follows the successor") { observer.states.last?.content == 11 }
    }

    // MARK: Stopped writers

    /// A cacher whose writes wait before the file gets its name, as those of a stopped process do.
    private func stoppingCacher(_ stop: Stop) -> FileCacher<Int, Int> {
        let options = FileWriteOptions { step throws(StoreError) in if step == .written { stop.pass() } }
        return FileCacher(directory: directory, options: options, sharing: .processes)
    }

    /// Stops one write.
    private final class Stop: Sendable {
        private let isWanted = Lock(false)
        private let isStopped = Lock(false)
        private let gate = DispatchSemaphore(value: 0)

        var hasStopped: Bool { isStopped.withLock { $0 } }

        func arm() { isWanted.withLock { $0 = true } }

        func pass() {
            let stops = isWanted.withLock { isWanted in
                defer { isWanted = false }
                return isWanted
            }
            guard stops else { return }
            isStopped.withLock { $0 = true }
            gate.wait()
        }

        func end() { gate.signal() }
    }

    @Test func `D3: a writer that was stopped while its directory was replaced does not save over newer content`() async throws {
        let stop = Stop()
        let (a, b) = (stoppingCacher(stop), SharedUser(directory))
        try await a.save(record(1), param: 1)
        let base = a.position
        stop.arm()
        let save = Task { try await a.save(record(2), param: 1, over: base).isSaved }
        try await until("the writer has stopped") { stop.hasStopped }
        try removeFollowed(directory)
        try await b.cacher.save(record(50), param: 1)
        stop.end()
        #expect(try await save.value() == false)
        #expect(try await b.content(1) == 50)
    }

    @Test(arguments: [false, true])
    func `D1: a writer that was stopped while its directory was removed creates it again, and saves with a notice if it was replaced`(
        isReplaced: Bool
    ) async throws {
        let stop = Stop()
        let (a, b) = (stoppingCacher(stop), SharedUser(directory))
        try await a.save(record(1), param: 1)
        if isReplaced { try await b.attach() }
        stop.arm()
        let save = Task { try await a.save(record(2), param: 2) }
        try await until("the writer has stopped") { stop.hasStopped }
        try removeFollowed(directory)
        if isReplaced { try await b.cacher.save(record(50), param: 1) }
        stop.end()
        try await save.value()
        if isReplaced { try await until("the notice arrives") { b.keys.last == 2 } } else { try await b.attach() }
        #expect(try await b.content(2) == 2)
        #expect(a.position.number == b.cacher.position.number)
    }

    // MARK: Several types

    @Test func `D2: processes with different schema versions do not fetch against each other`() async throws {
        let origins = (0..<2).map { _ in ScriptedFetcher<Int, Int>.counting() }
        let cachers = (1...2).map { FileCacher<Int, Int>(directory: directory, version: $0, sharing: .processes) }
        let stores = zip(cachers, origins).map { Store(cacher: TieredCacher(over: $0), fetcher: $1) }
        let observers = stores.map { RecordingObserver($0[1].publish()) }
        try await until("both show content") { observers.allSatisfy { $0.states.last?.content != nil } }
        await stores[0][1].update(100)
        try await stores[0].waitUntilSaved()
        try await settle(cachers[1], after: cachers[0])
        // The other version may have waited for the first fetch.
        #expect(origins.allSatisfy { $0.requests.count <= 2 }, "\(origins.map(\.requests.count))")
        // Clearing concerns each version.
        try await stores[0].clear()
        try await until("both have fetched again") { observers.allSatisfy { $0.states.last?.content.map { $0 < 100 } == true } }
    }

    @Test func `D2: processes with different types do not fetch against each other`() async throws {
        let numbers = ScriptedFetcher<Int, Int>.counting()
        let texts = Lock(0)
        let (a, b) = (
            FileCacher<Int, Int>(directory: directory, sharing: .processes),
            FileCacher<Int, String>(directory: directory, sharing: .processes)
        )
        let (first, second) = (
            Store(cacher: TieredCacher(over: a), fetcher: numbers),
            Store(cacher: TieredCacher(over: b)) { _ in
                texts.withLock { $0 += 1 }
                return "text"
            }
        )
        let (one, other) = (RecordingObserver(first[1].publish()), RecordingObserver(second[1].publish()))
        try await until("both show content") { one.states.last?.content != nil && other.states.last?.content != nil }
        await first[1].update(100)
        try await settle(b, after: a)
        #expect(numbers.requests.count <= 2 && texts.withLock { $0 } <= 2, "\(numbers.requests.count), \(texts.withLock { $0 })")
        try await until("each shows its own content") { one.states.last?.content == 100 && other.states.last?.content == "text" }
    }

    /// Waits until a cacher knows the changes of another one, and for the fetches that they would cause.
    private func settle<A, B>(_ cacher: FileCacher<Int, A>, after other: FileCacher<Int, B>) async throws {
        for _ in 0..<20 {
            try await until("the notices arrive") { cacher.position.number >= other.position.number }
            await otherTasksRun()
        }
    }

    // MARK: Directories that cannot be written

    @Test func `D8: a store over a directory that it may not write works from memory and reports this once`() async throws {
        try await SharedUser(directory).cacher.save(record(1), param: 1)
        // The directory can be entered, and not written.
        for path in [place.directory.path, directory.path(percentEncoded: false)] {
            try FileManager.default.setAttributes([.posixPermissions: 0o555], ofItemAtPath: path)
        }
        defer { try? FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: directory.path(percentEncoded: false)) }
        defer { try? FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: place.directory.path) }
        let child = try ChildProcess(ChildProcess.path(of: "CrashWriter"), ["share", directory.path(percentEncoded: false), "nobody"])
        for line in ["fetched 2", "updated 3", "follow 1"] { #expect(try await child.nextLine() == line) }
    }

    #if os(Linux)
    /// Runs a mode of the other process on a small disk.
    private func smallDisk(_ mode: String) throws -> ChildProcess {
        let path = place.directory.path
        return try ChildProcess(onDisk: "size=128k,mode=700", at: path, "CrashWriter", ["share", path, mode])
    }

    @Test(.enabled(if: canMountSmallDisks()))
    func `D7: on a full disk, a record can be removed, and all records can`() async throws {
        let child = try smallDisk("full")
        for line in ["full", "removed", "refused", "full", "removed all", "changed all", "saved"] {
            #expect(try await child.nextLine() == line)
        }
    }

    @Test(.enabled(if: canMountSmallDisks()))
    func `D7: on a full disk, all records of a directory can be removed that no process has shared before`() async throws {
        let child = try smallDisk("full-before")
        for line in ["full", "removed all"] { #expect(try await child.nextLine() == line) }
    }
    #endif
}
