import Foundation
import LoopbackOrigin
import StoreCore
import StoreFiles
import StorePlatform
import Testing
import Trials

@testable import TextStore

/// State that survives clearing, damage, and other holders of the session's lock.
struct ForgettingTests {
    let bench: Bench

    init() throws { bench = try Bench() }

    private var directory: Directory { bench.place.directory }

    private func shelf() -> Shelf { bench.place.shelf() }

    @Test func `T3: clearing keeps the floor even if both copies were damaged since the start`() async throws {
        bench.serve(eula: 2)
        let store = try await bench.started().refreshed()
        let copies = bench.place.files.filter { $0.contains("floor.") }
        #expect(copies.count == 2)
        for name in copies { try Data("damaged".utf8).write(to: bench.place.file(name)) }
        bench.origin.goDown()
        try await store.clear()
        let next = try await bench.started()
        #expect(line(try await next.text(for: bench.source("eula"))) == "1.0.0 bundle: Bundled terms 1 (below floor)")
    }

    @Test func `T14: a manifest that arrives after a clear is not saved`() async throws {
        let shelf = shelf()
        var record = ManifestRecord(url: "http://x/")
        record.body = Data("{}".utf8)
        shelf.session.update { $0.manifestFlight = 1 }
        #expect(await shelf.keep(record, of: 1, since: .now) == nil)
        #expect(shelf.manifestFile.load().copies.first?.value == record)
        _ = try await shelf.clear { $0.manifestFlight = nil }
        #expect(await shelf.keep(record, of: 1, since: .now) == nil)
        #expect(shelf.manifestFile.load().copies.first?.value.body == nil)
    }

    /// Runs a closure while files cannot be opened, and expects that it does not replace them.
    private func whileUnreadable(_ files: [String], _ body: () async throws -> Void) async throws {
        for name in files {
            try FileManager.default.moveItem(at: bench.place.file(name), to: bench.place.file("kept-" + name))
            // No process can open a link to itself, not even as superuser.
            try FileManager.default.createSymbolicLink(atPath: bench.place.file(name).path, withDestinationPath: name)
        }
        try await body()
        for name in files {
            let path = bench.place.file(name).path
            #expect((try? FileManager.default.destinationOfSymbolicLink(atPath: path)) == name)
            try FileManager.default.removeItem(atPath: path)
            try FileManager.default.moveItem(at: bench.place.file("kept-" + name), to: bench.place.file(name))
        }
    }

    @Test(arguments: [["pointer.0", "pointer.1"], ["floor.0", "floor.1"]])
    func `T3, T4: unreadable journals are not overwritten, and their records stay`(names: [String]) async throws {
        _ = try await shelf().store("text/eula", [record("eula", "2.0.0", "Terms 2")], isActivated: true)
        let records = bench.place.files.filter { $0.hasSuffix(".text") }
        for name in records { try bench.place.age(name, by: .seconds(7200)) }
        try await whileUnreadable(names) {
            let other = shelf()
            _ = await other.admit(["eula"], activatesPending: true)
            // Removes the leftovers of killed processes.
            _ = try await other.activatePending()
            _ = try? await other.store("text/notes", [record("notes", "1.0.0", "Notes 1")], isActivated: true)
        }
        #expect(Set(bench.place.files).isSuperset(of: records))
        let next = shelf()
        _ = await next.admit(["eula"], activatesPending: true)
        #expect(next.session.read { $0.resolved["eula"]?.text.text } == "Terms 2")
        await expectError(.belowFloor) { try await next.store("text/eula", [record("eula", "1.0.0", "Terms 1")], isActivated: true) }
    }

    private func ledger() -> AcceptanceLedger { AcceptanceLedger(directory: directory, options: FileWriteOptions()) }

    @Test func `T13: unreadable acceptances are not overwritten`() async throws {
        func acceptance(_ name: String) -> Acceptance { Acceptance(identifier: name, version: nil, digest: "", date: Date()) }
        _ = try await ledger().accept(acceptance("eula"))
        try await whileUnreadable(["accepted.0", "accepted.1"]) {
            await expectError(.fileSystem) { try await ledger().accept(acceptance("privacy")) }
        }
        _ = try await ledger().accept(acceptance("privacy"))
        for name in ["eula", "privacy"] { #expect(try await ledger().history(of: name).history.newest() != nil) }
    }

    @Test func `T8: waiting for the session's lock blocks no other task`() async throws {
        var holder = try SessionLock(directory: directory).take()
        #expect(holder != nil)
        let hasBegun = WatchedState(0)
        // More waits than the concurrency runtime of a small machine has threads.
        let waiting = (0..<8).map { number in
            Task { [directory, shelf = shelf()] in
                hasBegun.update { $0 += 1 }
                if number.isMultiple(of: 2) {
                    _ = try await shelf.accept(revision: 1)
                } else {
                    let ledger = AcceptanceLedger(directory: directory, options: FileWriteOptions(), patience: .seconds(600))
                    _ = try await ledger.accept(Acceptance(identifier: "\(number)", version: nil, digest: "", date: Date()))
                }
            }
        }
        try await hasBegun.wait { $0 == 8 ? () : nil }
        // If the waits blocked threads, this loop would continue only after their timeout.
        for _ in 0..<20 { await Task.detached {}.value }
        withExtendedLifetime(holder) {}
        holder = nil
        for task in waiting { await #expect(throws: Never.self) { try await task.value } }
    }

    @Test func `T8: waiting for the session's lock ends with the patience, and leaves no lock behind`() async throws {
        var holder = try SessionLock(directory: directory).take()
        #expect(holder != nil)
        let error = #expect(throws: TextStoreError.self) { try SessionLock(directory: directory, patience: .milliseconds(20)).take() }
        #expect(error?.code == .fileSystem)
        withExtendedLifetime(holder) {}
        holder = nil
        #expect(try SessionLock(directory: directory, patience: .seconds(600)).take() != nil)
    }

    private func journal() -> Journal { Journal(name: "floor", directory: directory, options: FileWriteOptions()) }

    @Test func `T3: journal copies with different entries of one number both count, and the next entry unifies them`() throws {
        var one = journal()
        _ = try one.add([1]) { [1] }
        _ = try one.add([2]) { [2] }
        let kept = try Data(contentsOf: bench.place.file("floor.0"))
        for copy in 0..<2 { try FileManager.default.removeItem(at: bench.place.file("floor.\(copy)")) }
        var other = journal()
        _ = try other.add([1]) { [1] }
        _ = try other.add([3]) { [3] }
        try kept.write(to: bench.place.file("floor.1"))
        var both = journal()
        let reading = both.read()
        let found = try #require(reading)
        #expect(found.entries.map { Array($0.content) } == [[1], [2], [3]])
        _ = try both.add([4]) { [9] }
        #expect(try Data(contentsOf: bench.place.file("floor.0")) == Data(contentsOf: bench.place.file("floor.1")))
        var healed = journal()
        #expect(healed.read()?.entries.map { Array($0.content) } == [[9]])
    }

    @Test(arguments: [UInt32.max, 1 << 31, 0x7FFF_FFFF, 1 << 20])
    func `T3: an entry that claims to exceed the file is ignored, at the end and in the middle`(length: UInt32) throws {
        var one = journal()
        for number in 1...3 { _ = try one.add([UInt8(number)]) { [UInt8(number)] } }
        let good = try Data(contentsOf: bench.place.file("floor.0")), size = LogFormat.entryHeaderSize + 9
        for (entry, rest) in [(0, [2, 3]), (1, [1, 3]), (2, [1, 2])] {
            var bad = good
            let start = LogFormat.headerSize + entry * size + 4
            withUnsafeBytes(of: length.littleEndian) { bad.replaceSubrange(start..<start + 4, with: $0) }
            for copy in 0..<2 { try bad.write(to: bench.place.file("floor.\(copy)")) }
            var damaged = journal()
            #expect(damaged.read()?.entries.map { $0.content.first } == rest.map { UInt8($0) })
            _ = try damaged.add([4]) { [8] }
            var healed = journal()
            #expect(healed.read()?.faults.isEmpty == true)
        }
    }

    @Test func `T3: the maximum serial number is invalid, because no entry could follow it`() throws {
        let bytes = try LogFormat.texts.encode([Journal.Entry(serial: .max, content: [7])], at: 0)
        for copy in 0..<2 { try Data(bytes).write(to: bench.place.file("floor.\(copy)")) }
        var journal = journal()
        let found = journal.read()
        #expect(found?.entries.isEmpty == true && found?.faults.isEmpty == false)
        _ = try journal.add([1]) { [2] }
        #expect(journal.serial == 1)
    }
}
