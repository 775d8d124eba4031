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

    @Test(arguments: [false, true])
    func `D2: processes with different schema versions or types do not fetch against each other`(_ differsInType: Bool) async throws {
        if differsInType {
            try await checkFetches(beside: FileCacher<Int, String>(directory: directory, sharing: .processes), content: "text")
        } else {
            try await checkFetches(beside: FileCacher<Int, Int>(directory: directory, version: 2, sharing: .processes), content: 50)
        }
    }

    private func checkFetches<Content: Codable & Sendable & Equatable>(
        beside otherCacher: FileCacher<Int, Content>, content: Content
    ) async throws {
        let cacher = FileCacher<Int, Int>(directory: directory, sharing: .processes)
        let (origin, otherOrigin) = (ScriptedFetcher<Int, Int>.counting(), ScriptedFetcher<Int, Content> { _ in .success(content) })
        let store = Store(cacher: TieredCacher(over: cacher), fetcher: origin)
        let other = Store(cacher: TieredCacher(over: otherCacher), fetcher: otherOrigin)
        let (observer, otherObserver) = (RecordingObserver(store[1].publish()), RecordingObserver(other[1].publish()))
        try await until("both show content") { observer.states.last?.content != nil && otherObserver.states.last?.content != nil }
        await store[1].update(100)
        try await store.waitUntilSaved()
        // The other process knows the change, and would fetch because of it.
        for _ in 0..<20 {
            try await until("the notices arrive") { otherCacher.position.number >= cacher.position.number }
            await otherTasksRun()
        }
        // Each may have waited for the first fetch of the other.
        let counts = [origin.startedCount, otherOrigin.startedCount]
        #expect(counts.allSatisfy { $0 <= 2 }, "\(counts)")
        try await until("each shows its own content") {
            observer.states.last?.content == 100 && otherObserver.states.last?.content == content
        }
        // Clearing concerns each of them.
        try await store.clear()
        try await until("both have fetched again") { origin.startedCount > counts[0] && otherOrigin.startedCount > counts[1] }
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
