import Foundation
import StoreTrials
import Testing
import Trials
@testable import StoreCore
@testable import StoreFiles
@testable import StorePlatform

/// Tests D1 to D4, D7 and D8 with several cachers on one directory.
struct SharedDirectoryTests {
    private let place: TemporaryDirectory
    private let faults = FaultRecorder()

    init() throws { place = try TemporaryDirectory() }

    private func user(limit: Int = 256_000_000) async throws -> SharedUser {
        let user = SharedUser(place.url, limit: limit, faults: faults)
        try await user.attach()
        return user
    }

    // MARK: Changes arrive

    @Test func `D1: a save and a removal reach the observers of other cachers in order`() async throws {
        let (a, b) = (try await user(), try await user())
        for key in 1...3 { try await a.cacher.save(record(key), param: key) }
        try await a.cacher.remove(param: 2)
        try await until { b.keys == [1, 2, 3, 2] }
        #expect(try await b.content(1) == 1)
        #expect(try await b.content(2) == nil)
        #expect(b.gaps == 0)
    }

    @Test func `D1: a cacher that began before the directory existed is notified of its first record`() async throws {
        let missing = place.file("a/b/c")
        let (a, b) = (SharedUser(missing), SharedUser(missing))
        try await b.attach()
        try await a.cacher.save(record(1), param: 7)
        try await until { b.keys == [7] }
        #expect(b.gaps == 0)
    }

    @Test func `D1: a key too long for the log is read from its record`() async throws {
        let writer = FileCacher<String, Int>(directory: place.url, sharing: .processes)
        let reader = FileCacher<String, Int>(directory: place.url, sharing: .processes)
        let seen = Lock<[String]>([])
        let observation = reader.observeChanges { change in if case .changed(let key, _) = change { seen.withLock { $0.append(key) } } }
        let key = String(repeating: "long ", count: 400)
        _ = try await reader.load(param: key)
        try await writer.save(record(1), param: key)
        try await until { seen.withLock { $0 } == [key] }
        withExtendedLifetime(observation) {}
    }

    @Test func `D1: a save for which the disk has no room notifies no other cacher`() async throws {
        let options = FileWriteOptions { step throws(StoreError) in
            if step == .created { throw .fileSystem("writing", path: "", errno: ENOSPC) }
        }
        let failing = FileCacher<Int, Int>(directory: place.url, options: options, sharing: .processes)
        let (a, b) = (try await user(), try await user())
        await #expect(throws: StoreError.self) { try await failing.save(record(1), param: 1) }
        try await a.cacher.save(record(2), param: 2)
        try await until { b.keys.last == 2 }
        #expect(b.keys == [2])
    }

    @Test func `D2: a cacher is not notified of its own changes`() async throws {
        let (a, b) = (try await user(), try await user())
        for value in 1...20 { try await a.save(value, 1, over: a.cacher.position) }
        try await a.cacher.remove(param: 1)
        try await a.cacher.removeAll()
        try await until { b.changes.count >= 22 }
        try await b.cacher.save(record(1), param: 2)
        try await until { !a.changes.isEmpty }
        #expect(a.keys == [2])
        #expect(a.changes.count == 1)
    }

    // MARK: No lost update

    @Test func `D3: a cacher's own changes never supersede its saves`() async throws {
        let a = try await user()
        let base = a.cacher.position
        for value in 1...5 { #expect(try await a.save(value, 1, over: base).isSaved) }
        #expect(try await a.content(1) == 5)
    }

    @Test func `D3: a removal leaves a mark that an older save does not overwrite`() async throws {
        let (a, b) = (try await user(), try await user())
        let base = b.cacher.position
        try await a.cacher.save(record(1), param: 1)
        try await a.cacher.remove(param: 1)
        let revision = Revision(number: a.cacher.position.number, writer: try #require(a.cacher.shared?.writer))
        #expect(try await b.save(100, 1, over: base) == .superseded(by: nil, revision))
        #expect(try await a.content(1) == nil)
        #expect(try await a.cacher.keys() == [])
        // Another key is not affected.
        #expect(try await b.save(100, 2, over: base).isSaved)
        #expect(faults.faults.isEmpty)
    }

    @Test func `D3: an older save does not take the place of a newer record that was evicted`() async throws {
        let (a, b) = (try await user(limit: 40_960), try await user())
        let base = b.cacher.position
        try await a.cacher.save(record(1), param: 1)
        try place.age(fileName(1), by: .seconds(7200))
        for key in 2...40 { try await a.cacher.save(record(key), param: key) }
        await a.cacher.settle()
        #expect(try await a.content(1) == nil)
        #expect(!(try await b.save(100, 1, over: base).isSaved))
        try await until { b.keys.count == 40 }
        // What is decided on after the eviction is saved.
        #expect(try await b.save(200, 1, over: b.cacher.position).isSaved)
    }

    @Test func `D3: a compaction of the changes lowers no floor`() async throws {
        let user = SharedDirectory(place.directory, slots: 8)
        let evicted = try await user.perform {
            try user.transact { transaction throws(StoreError) -> UInt64 in
                for key in 0..<14 { _ = try transaction.appendChange(of: FileKey(key), schema: 1) }
                try transaction.appendRemovalOfAll()
                let evicted = try transaction.appendChange(of: FileKey(14), schema: 1).number
                _ = try transaction.appendChange(of: FileKey(15), schema: 1)
                try transaction.raiseFloor(to: evicted)
                return evicted
            }
        }
        let numbers = try #require(try changeNumbers(in: place))
        #expect(numbers.floor == evicted)
        #expect(numbers.head == evicted + 1)
    }

    @Test func `F2: the first scan removes what a killed compaction of the changes has left behind`() async throws {
        let a = try await user()
        let name = ".sharing/" + TemporaryFile.makeName(kind: WritableFile.replacementKind)
        try place.write([1], name)
        try await a.cacher.save(record(1), param: 1)
        await a.cacher.settle()
        #expect(try place.status(name) == nil)
        #expect(try await a.content(1) == 1)
    }

    @Test(arguments: [false, true], [false, true])
    func `D3, F2: an older save does not take the place of a newer record that was damaged`(
        _ isHeaderIntact: Bool, _ isFound: Bool
    ) async throws {
        let (a, b) = (try await user(), try await user())
        let base = b.cacher.position
        try await a.cacher.save(record(1), param: 1)
        var bytes = try place.bytes(fileName(1))
        bytes[isHeaderIntact ? bytes.count - 1 : 0] ^= 1
        try place.write(bytes, fileName(1))
        if isFound { #expect(try await a.content(1) == nil) }
        #expect(!(try await b.save(100, 1, over: base).isSaved))
        #expect(faults.drain() == [.damaged])
        #expect(try await b.save(200, 1, over: b.cacher.position).isSaved)
    }

    @Test func `D3, F8: a record that cannot be read is evicted like any other, and refuses older saves`() async throws {
        let (a, b) = (try await user(), try await user())
        let base = b.cacher.position
        try await a.cacher.save(record(1), param: 1)
        await a.cacher.settle()
        // Opening a link fails for every user of the system, as opening a file without permission fails for most.
        let name = try fileName(1)
        try place.directory.remove(name)
        try FileManager.default.createSymbolicLink(at: place.file(name), withDestinationURL: place.file("elsewhere"))
        try await a.cacher.forgetRevisions(of: [FileKey(1).digest])
        try place.directory.remove(name)
        #expect(!(try await b.save(100, 1, over: base).isSaved))
        #expect(try await b.save(200, 1, over: b.cacher.position).isSaved)
    }

    @Test func `D3: a sweep refuses no save that was decided on after the records that it removes`() async throws {
        let a = try await user()
        for key in 11...12 { try await a.cacher.save(record(1), param: key) }
        let base = a.cacher.position
        for key in 13...20 { try await a.cacher.save(record(1), param: key) }
        for key in 11...20 { try place.age(fileName(key), by: .seconds(3600 * (100 - key))) }
        // Exactly nine records are nine tenths of the limit.
        let small = try await user(limit: 10 * RecordFiles.space(of: #require(try place.status(fileName(11)))))
        try await small.cacher.save(record(1), param: 21)
        await small.cacher.settle()
        #expect(try await Set(small.cacher.keys() ?? []) == Set(13...21))
        #expect(try await a.save(100, 50, over: base).isSaved)
        #expect(faults.faults.isEmpty)
    }

    @Test func `D3: an old mark of a removal is deleted, and older content is still refused`() async throws {
        let (a, b) = (try await user(), try await user())
        let base = b.cacher.position
        for key in 1...3 { try await a.cacher.save(record(key), param: key) }
        for key in 1...2 { try await a.cacher.remove(param: key) }
        for key in [1, 3] { try place.age(fileName(key), by: .seconds(7200)) }
        // The first save of a cacher scans the directory.
        let c = try await user()
        try await c.cacher.save(record(4), param: 4)
        await c.cacher.settle()
        #expect(try place.directory.status(of: fileName(1)) == nil)
        // A young mark, and an old record.
        #expect(try place.directory.status(of: fileName(2)) != nil)
        #expect(try await c.content(3) == 3)
        #expect(!(try await b.save(100, 1, over: base).isSaved))
        #expect(try await b.content(1) == nil)
        #expect(try await b.save(100, 1, over: b.cacher.position).isSaved)
        #expect(faults.faults.isEmpty)
    }

    @Test(arguments: [
        nil,
        RecordDetails.Fields(freshness: .fresh(for: .seconds(9)), validator: Validator(entityTag: "v"), nextKey: "n", isInvalidated: true),
    ])
    func `a shared record keeps its details, and a cacher without sharing reads it`(fields: RecordDetails.Fields?) async throws {
        let a = try await user()
        var saved = record(1)
        saved.fields = fields ?? RecordDetails.Fields()
        try await a.cacher.save(saved, param: 1)
        #expect(try await a.cacher.load(param: 1) == saved)
        #expect(try await FileCacher<Int, Int>(directory: place.url).load(param: 1) == saved)
        #expect(FileRecordFormat.key(in: place.directory, try fileName(1)) == Array("1".utf8))
        #expect(try FileRecordFormat.revision(of: try fileName(1), in: place.directory)?.writer == a.cacher.shared?.writer)
    }

    @Test func `the stored default details decode to default fields`() throws {
        let fields = try JSONDecoder().decode(RecordDetails.Fields.self, from: FileCacher<Int, Int>.Encoded.defaultDetails)
        #expect(fields == RecordDetails.Fields())
    }

    // MARK: Emptying

    @Test func `D7: removing all records reaches other cachers, and nothing older is saved after it`() async throws {
        let (a, b) = (try await user(), try await user())
        let base = b.cacher.position
        for key in 1...5 { try await a.cacher.save(record(key), param: key) }
        try await a.cacher.removeAll()
        try await until { if case .removedAll? = b.changes.last { true } else { false } }
        #expect(!(try await b.save(100, 1, over: base).isSaved))
        #expect(!(try await b.save(100, 77, over: base).isSaved))
        #expect(try await b.cacher.keys() == [])
        #expect(try await b.save(1, 1, over: b.cacher.position).isSaved)
    }

    @Test func `D7: clearing a scope empties a shared directory whose store is not open`() async throws {
        let scope = CacheScope(directory: place.url)
        let user = SharedUser(scope.directory(named: "users"))
        try await user.attach()
        let other = SharedUser(scope.directory(named: "users"))
        try await other.cacher.save(record(1), param: 1)
        try await until { user.keys == [1] }
        try await scope.clear()
        try await until { if case .removedAll? = user.changes.last { true } else { false } }
        #expect(try await user.content(1) == nil)
    }

    // MARK: Gaps

    @Test func `D4: a compaction that drops unread changes notifies their reader of a gap`() async throws {
        let (a, b) = (try await user(), try await user())
        // The reader's queue is busy meanwhile.
        let gate = DispatchSemaphore(value: 0)
        let isBusy = Lock(false)
        b.cacher.shared?.queue.async {
            isBusy.withLock { $0 = true }
            gate.wait()
        }
        try await until { isBusy.withLock { $0 } }
        try await addChanges(2_060, in: place)
        gate.signal()
        try await until { b.gaps == 1 }
        // The position advances after the gap was delivered.
        try await until { try b.cacher.position.number == changeNumbers(in: place)?.head }
        try await a.cacher.save(record(1), param: 5000)
        try await until { b.keys == [5000] }
    }

    @Test func `D4: a directory that was removed and created again causes a gap, and changes arrive again`() async throws {
        let (a, b) = (try await user(), try await user())
        try await a.cacher.save(record(1), param: 1)
        try await until { b.keys == [1] }
        for round in 1...3 {
            let gaps = b.gaps
            try removeFollowed(place.url)
            try await a.cacher.save(record(2), param: 10 * round)
            try await until { b.gaps > gaps }
            try await a.cacher.save(record(3), param: 10 * round + 1)
            // The first change comes too if the new ring was seen before it.
            try await until { b.keys.last == 10 * round + 1 }
        }
    }

    @Test func `D4: the removal of a followed directory causes a gap, and the directory is created again`() async throws {
        let (a, b) = (try await user(), try await user())
        try await a.cacher.save(record(1), param: 1)
        try await until { b.keys == [1] }
        try removeFollowed(place.url)
        // A follower that meets the removal several times is told of several gaps.
        try await until { a.gaps > 0 && b.gaps > 0 }
        #expect(try await b.content(1) == nil)
        let gaps = b.gaps
        try await a.cacher.save(record(2), param: 2)
        try await until { b.keys == [1, 2] || b.gaps > gaps }
        #expect(try await b.content(2) == 2)
    }

    @Test func `D4: a damaged log is replaced with a new one and causes a gap`() async throws {
        let (a, b) = (try await user(), try await user())
        try await a.cacher.save(record(1), param: 1)
        try await until { b.keys == [1] }
        try place.write(Array("garbage".utf8), ".sharing/changes")
        try await a.cacher.save(record(2), param: 1)
        try await until { b.gaps > 0 }
        #expect(try await b.content(1) == 2)
        // The position advances after the gap was delivered.
        try await until { try await b.save(3, 1, over: b.cacher.position).isSaved }
    }

    @Test func `D3, D7: after damage to the log, no older content takes the place of a removed record`() async throws {
        func cacher() -> FileCacher<Int, Int> { FileCacher(directory: place.url, sharing: .processes) }
        let a = cacher()
        try await a.save(record(1), param: 2)
        let base = a.position
        try await a.save(record(1), param: 1)
        try await a.removeAll()
        // The last bit belongs to the removal.
        var bytes = try place.bytes(".sharing/changes")
        bytes[bytes.count - 1] ^= 1
        try place.write(bytes, ".sharing/changes")
        let b = cacher()
        #expect(!(try await b.save(record(100), param: 1, over: base).isSaved))
        #expect(try await b.save(record(200), param: 1, over: b.position).isSaved)
        #expect(try await a.load(param: 1)?.content == 200)
    }

    @Test func `D3: a log that lost its latest changes continues above the records' revisions`() async throws {
        let a = try await user()
        try await a.cacher.save(record(1), param: 1)
        let old = try place.bytes(".sharing/changes")
        for value in 2...9 { try await a.cacher.save(record(value), param: 1) }
        let revision = a.cacher.position
        try place.write(old, ".sharing/changes")
        let b = try await user()
        try await b.cacher.save(record(10), param: 1)
        #expect(b.cacher.position > revision)
    }

    // MARK: Degrading

    @Test func `D8: a directory that cannot be followed is reported once, and changes arrive when it can be`() async throws {
        let ring = place.file(".sharing/changes")
        try FileManager.default.createDirectory(at: ring, withIntermediateDirectories: true)
        let plain = FileCacher<Int, Int>(directory: place.url)
        try await plain.save(record(1), param: 1)
        let b = SharedUser(place.url, faults: faults)
        // Loads still work.
        for _ in 0..<3 { #expect(try await b.content(1) == 1) }
        #expect(faults.kinds == [.changesLost])
        await #expect(throws: StoreError.self) { try await b.cacher.save(record(2), param: 1) }
        // The second attempt fails too.
        let shared = try #require(b.cacher.shared)
        try await until("the delay grows") { shared.log.follower.state.withLock { $0.backOff.map { $0 > .seconds(1) } == true } }
        try FileManager.default.removeItem(at: ring)
        let a = SharedUser(place.url)
        var value = 1
        try await until {
            value += 1
            try await a.cacher.save(record(value), param: 1)
            return b.keys.last == 1 || b.gaps > 0
        }
        #expect(faults.kinds == [.changesLost])
    }

    @Test func `D8: a process that is stopped in the middle of a write blocks no other process for long`() async throws {
        try await user().cacher.save(record(1), param: 1)
        let folder = try #require(try DirectoryHandle(opening: Directory(path: place.directory.path(of: ".sharing"))))
        // A lock belongs to the open file, so this is the lock of another process.
        let stopped = try WritableFile("lock", in: folder)
        #expect(try stopped.lock())
        let shared = SharedDirectory(place.directory, patience: .milliseconds(100))
        let write: @Sendable () async throws -> Void = {
            _ = try await shared.perform { try shared.transact { transaction throws(StoreError) in try transaction.appendRemovalOfAll() } }
        }
        for _ in 0..<3 {
            let error = await #expect(throws: StoreError.self) { try await Task { try await write() }.value(of: "the wait ends") }
            #expect(error?.message.contains("another process has held") == true)
        }
        stopped.unlock()
        // The thread that waited takes the lock before it gives it back, perhaps between these writes.
        for _ in 0..<2 { try await until { (try? await write()) != nil } }
    }

    @Test func `F2: foreign files in the directory are ignored`() async throws {
        try FileManager.default.createDirectory(at: place.file(".sharing"), withIntermediateDirectories: true)
        try place.write([1], ".sharing/notes.txt")
        try place.write([2], "notes.txt")
        let (a, b) = (try await user(), try await user())
        try await a.cacher.save(record(1), param: 1)
        try await until { b.keys == [1] }
        try await a.cacher.removeAll()
        #expect(try place.bytes(".sharing/notes.txt") == [1])
        #expect(try place.bytes("notes.txt") == [2])
    }

    @Test func `a cacher that is no longer observed does not follow`() async throws {
        let (a, b) = (try await user(), try await user())
        b.stopObserving()
        try await until { !b.isWatching }
        try await a.cacher.save(record(1), param: 1)
        #expect(b.changes.isEmpty)
        try await until { a.isWatching }
    }

    @Test func `D1: a cacher that is observed again receives changes again`() async throws {
        let (a, b) = (try await user(), try await user())
        for round in 1...5 {
            b.stopObserving()
            // These events may arrive before the watch ends.
            for key in 1...20 { try await a.cacher.save(record(key), param: key) }
            b.observe()
            try await b.attach()
            try await a.cacher.save(record(1), param: 1000 + round)
            try await until { b.keys.last == 1000 + round }
        }
    }

    /// Follows a log again when the last receiver is released, as another thread may while following ends.
    private final class Successor: Sendable {
        let log: SharedLog<StoreFiles.SharedChange>
        init(_ log: SharedLog<StoreFiles.SharedChange>) { self.log = log }
        deinit { log.follow(isImmediate: true) { _ in } }
    }

    @Test func `D1: a log that is followed again while following ends is watched`() async throws {
        try await user().cacher.save(record(1), param: 1)
        let shared = SharedDirectory(place.directory)
        try await shared.perform {
            shared.log.follow(isImmediate: true) { [successor = Successor(shared.log)] _ in _ = successor }
            shared.log.unfollow()
        }
        #expect(shared.log.isFollowed)
        try await until { shared.log.isWatched }
    }

    @Test(arguments: [false, true])
    func `D1, D6: changes are followed while there is an observer, however others come and leave`(_ stays: Bool) async throws {
        let cacher = FileCacher<Int, Int>(directory: place.url, sharing: .processes)
        for _ in 0..<rounds(200, quick: 50) {
            let leaving = Lock<ChangeObservation?>(cacher.observeChanges { _ in })
            if stays { await cacher.attach() }
            async let left: Void = leaving.withLock { $0 = nil }
            let staying = stays ? cacher.observeChanges({ _ in }) : nil
            await cacher.attach()
            await left
            #expect(cacher.shared?.log.isFollowed == stays)
            withExtendedLifetime(staying) {}
        }
    }

    @Test func `D1: changes arrive however the log is replaced while a watch begins`() async throws {
        let a = try await user()
        let ring = place.file(".sharing/changes")
        for round in 1...rounds(30, quick: 10) {
            let b = SharedUser(place.url)
            // Either may see the old ring, no ring, or the new one.
            async let removal: Void? = try? FileManager.default.removeItem(at: ring)
            try await b.attach()
            _ = await removal
            try await a.cacher.save(record(round), param: round)
            try await until { b.keys.last == round || b.gaps > 0 }
            let gaps = b.gaps
            try await a.cacher.save(record(round), param: 1000 + round)
            // A gap may stand for both changes of a log that the cacher had not met before.
            try await until { b.keys.last == 1000 + round || b.gaps > gaps }
        }
    }
}
