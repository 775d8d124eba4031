import Foundation
import StoreCore
import StoreFiles
import StorePlatform
import Testing
import Trials

@testable import TextStore

/// The files of a session, without an origin.
struct ShelfTests {
    let place: TemporaryDirectory

    init() throws { place = try TemporaryDirectory() }

    private var directory: Directory { place.directory }

    private func shelf() -> Shelf { place.shelf() }

    private func reading(_ journal: inout Journal) throws -> Journal.Reading {
        let reading = journal.read()
        return try #require(reading)
    }

    /// Reads a record as a new start would.
    private func read(_ name: RecordName, of identifier: String, _ written: TextRecord) throws -> TextRecord {
        var reader = try SealedFile.reader(directory)
        let place = Pointer.Place(file: name, rank: written.rank, digest: written.facts.digest)
        return try TextRecord.read(place, of: identifier, in: directory, with: &reader)
    }

    private func active(_ identifier: String) async -> TextRecord? {
        let shelf = shelf()
        _ = await shelf.admit([identifier], activatesPending: false)
        return shelf.session.read { $0.held[identifier]?.active }
    }

    @Test func `T21: a device keeps its number although the lock of the session cannot be opened`() async throws {
        let number = try #require(await shelf().device())
        let lock = place.file(SessionLock.fileName)
        try FileManager.default.removeItem(at: lock)
        try FileManager.default.createDirectory(at: lock, withIntermediateDirectories: false)
        #expect(await shelf().device() == number)
    }

    @Test(arguments: ["1.9.0", "2.0.0-rc.1", nil])
    func `T3: a lower version is refused, even by another store of the session`(lower: String?) async throws {
        let one = shelf(), other = shelf()
        _ = await one.admit(["eula"], activatesPending: false)
        _ = await other.admit(["eula"], activatesPending: false)
        _ = try await one.store("text/eula", [record("eula", "2.0.0", "two")], isActivated: true)
        for shelf in [one, other] {
            await expectError(.belowFloor, of: "eula") {
                try await shelf.store("text/eula", [record("eula", lower, "low")], isActivated: true)
            }
        }
        #expect(await active("eula")?.text == "two")
    }

    /// `DiskFormatTests` damages each byte of such a file.
    @Test func `T4: text, version, digest, and validator round-trip, and a record of another text is refused`() async throws {
        let written = record("é/🧾", "1.2.3-rc.1+b", "Text\n\u{FEFF}with a mark inside")
        let name = RecordName(of: written.identifier)
        try written.write(as: name, in: directory, options: FileWriteOptions())
        #expect(try read(name, of: written.identifier, written) == written)
        #expect(throws: TextStoreError.self) { try read(name, of: "other", written) }
        let first = shelf()
        _ = await first.admit([written.identifier], activatesPending: false)
        _ = try await first.store("text/x", [written], isActivated: true)
        #expect(await active(written.identifier) == written)
    }

    @Test func `T3: a truncated journal keeps its whole entries, and accepts the next one`() throws {
        var journal = Journal(name: "floor", directory: directory, options: FileWriteOptions())
        for number in 1...4 { _ = try journal.add([UInt8](repeating: UInt8(number), count: number * 9)) { [UInt8(number)] } }
        let whole = try Data(contentsOf: place.file("floor.0"))
        for length in 0..<whole.count {
            for copy in 0..<2 { try whole.prefix(length).write(to: place.file("floor.\(copy)")) }
            var cut = Journal(name: "floor", directory: directory, options: FileWriteOptions())
            let found = try reading(&cut)
            // A killed process leaves such an end, which is not damage.
            #expect(found.faults.isEmpty, "\(length)")
            let serials = found.entries.map(\.serial)
            #expect(serials == Array(serials.indices.map { UInt64($0 + 1) }), "\(length)")
            _ = try cut.add([7]) { [8] }
            var next = Journal(name: "floor", directory: directory, options: FileWriteOptions())
            let after = try reading(&next)
            #expect(after.faults.isEmpty && after.entries.count == (serials.isEmpty ? 1 : serials.count + 1), "\(length)")
        }
    }

    @Test func `T3: a journal with a hard link is replaced, not overwritten`() throws {
        var journal = Journal(name: "floor", directory: directory, options: FileWriteOptions())
        _ = try journal.add([1]) { [1] }
        _ = try journal.add([2]) { [1, 2] }
        let backups = (0..<2).map { place.file("backup.\($0)") }
        for (number, backup) in backups.enumerated() { try FileManager.default.linkItem(at: place.file("floor.\(number)"), to: backup) }
        let before = try backups.map { try Data(contentsOf: $0) }
        _ = try journal.add([3]) { [1, 2, 3] }
        #expect(try backups.map { try Data(contentsOf: $0) } == before)
        var next = Journal(name: "floor", directory: directory, options: FileWriteOptions())
        #expect(try reading(&next).entries.map(\.content) == [[1], [2], [3]])
    }

    @Test func `T3: a damaged byte in one journal copy loses nothing, and in both copies only its entry`() throws {
        var journal = Journal(name: "floor", directory: directory, options: FileWriteOptions())
        for number in 1...3 { _ = try journal.add([UInt8](repeating: UInt8(number), count: 20)) { [UInt8](repeating: 1, count: 20) } }
        let whole = try Data(contentsOf: place.file("floor.0"))
        for index in whole.indices {
            var bad = whole
            bad[index] ^= 0x40
            for copies in [1, 2] {
                for copy in 0..<2 { try (copy < copies ? bad : whole).write(to: place.file("floor.\(copy)")) }
                var damaged = Journal(name: "floor", directory: directory, options: FileWriteOptions())
                let found = try reading(&damaged)
                #expect(found.entries.count == (copies == 1 || index < LogFormat.headerSize ? 3 : 2), "byte \(index) of \(copies)")
                _ = try damaged.add([7]) { [8] }
                var next = Journal(name: "floor", directory: directory, options: FileWriteOptions())
                let healed = try reading(&next)
                #expect(healed.faults.isEmpty, "byte \(index) of \(copies)")
            }
        }
    }

    @Test func `T3: a floor that another store has raised meanwhile is kept`() async throws {
        let one = shelf(), other = shelf()
        _ = await one.admit(["eula"], activatesPending: false)
        _ = await other.admit(["privacy"], activatesPending: false)
        _ = try await one.store("text/eula", [record("eula", "2.0.0", "two")], isActivated: true)
        _ = try await other.store("text/privacy", [record("privacy", "3.0.0", "three")], isActivated: true)
        let between = shelf()
        _ = await between.admit(["eula", "privacy"], activatesPending: false)
        #expect(await between.floors.texts.mapValues { $0.rank.version?.description } == ["eula": "2.0.0", "privacy": "3.0.0"])
        _ = try await one.accept(revision: 7, ["eula": "2.1.0"])
        _ = try await one.store("text/eula", [record("eula", "2.1.0", "two and one")], isActivated: true)
        let next = shelf()
        _ = await next.admit(["eula", "privacy"], activatesPending: false)
        #expect(await next.floors.texts.mapValues { $0.rank.version?.description } == ["eula": "2.1.0", "privacy": "3.0.0"])
        #expect(await next.floors.edition == Edition(revision: 7))
        #expect(await active("eula")?.text == "two and one")
        #expect(await active("privacy")?.text == "three")
    }

    @Test(arguments: [true, false])
    func `T4: a store whose file another one has removed finds the newer text without a fault`(isActivated: Bool) async throws {
        let one = shelf(), other = shelf()
        _ = try await one.store("text/eula", [record("eula", "1.0.0", "1")], isActivated: isActivated)
        // The store knows the place of the first version, and has not read it yet.
        _ = await other.admit(["privacy"], activatesPending: false)
        for number in 2...4 {
            _ = try await one.store("text/eula", [record("eula", "\(number).0.0", "\(number)")], isActivated: isActivated)
        }
        let outcome = await other.admit(["eula"], activatesPending: false)
        #expect(other.session.read { isActivated ? $0.held["eula"]?.active?.text : $0.held["eula"]?.waiting?.text } == "4")
        #expect(outcome.faults.isEmpty)
    }

    @Test func `T9: a check confirms only the record that it has compared`() async throws {
        let one = shelf(), other = shelf(), checked = Date(timeIntervalSince1970: 9)
        func check(_ known: TextRecord) async throws -> Date? {
            _ = try await one.store("text/eula", [], isActivated: true, unchanged: ([known], checked))
            return one.session.read { $0.held["eula"]?.checked }
        }
        _ = await one.admit(["eula"], activatesPending: false)
        let first = record("eula", "1.0.0", "1"), second = record("eula", "2.0.0", "2")
        _ = try await one.store("text/eula", [first], isActivated: true)
        #expect(try await check(first) == checked)
        _ = try await other.store("text/eula", [second], isActivated: true)
        #expect(try await check(first) == nil, "the other store has replaced the text during the check")
        #expect(try await check(second) == checked)
    }

    @Test func `T16: an order of the bundle that cannot be saved is saved with the next edition`() async throws {
        let shelf = shelf(), folder = place.url.path, away = folder + "-away"
        _ = await shelf.admit(["eula"], activatesPending: false)
        _ = try await shelf.store("text/eula", [record("eula", "9.0.0", "nine")], isActivated: true)
        let entry = #"{"version":"1.0.0","rollback":true}"#
        var order = try VersionManifest(parsing: Data(#"{"epoch":1,"revision":1,"texts":{"eula":\#(entry)}}"#.utf8))
        try FileManager.default.moveItem(atPath: folder, toPath: away)
        try Data().write(to: URL(filePath: folder))
        #expect(await shelf.carryOut(order).changed == ["eula"])
        try FileManager.default.removeItem(atPath: folder)
        try FileManager.default.moveItem(atPath: away, toPath: folder)
        order.revision = 2
        _ = try await shelf.accept(order, TextStorePolicy(), isVerified: true)
        let next = self.shelf()
        _ = await next.admit(["eula"], activatesPending: false)
        #expect(await next.floors.texts["eula"]?.rank == Rank(epoch: Edition(epoch: 1, revision: 1), version: SemanticVersion("1.0.0")))
    }

    @Test func `T14: a removed session is cleared`() async throws {
        let shelf = shelf()
        _ = await shelf.admit(["eula"], activatesPending: false)
        _ = try await shelf.store("text/eula", [record("eula", "1.0.0", "1")], isActivated: true)
        try FileManager.default.removeItem(at: place.url)
        _ = try await shelf.clear()
        #expect(shelf.session.read { $0.held["eula"]?.active == nil && $0.held["eula"]?.floor != nil })
    }

    @Test func `T14: a shelf forgets the records that another one has removed`() async throws {
        let one = shelf(), other = shelf()
        _ = await other.admit(["eula"], activatesPending: false)
        for number in 1...6 {
            _ = try await one.store("text/eula", [record("eula", "\(number).0.0", "\(number)")], isActivated: true)
            guard number.isMultiple(of: 2) else { continue }
            try await other.checkOrder(of: VersionManifest(parsing: Data("{}".utf8)), TextStorePolicy())
            _ = await other.lookAgain()
        }
        #expect(other.session.read { $0.held["eula"]?.active?.text } == "6")
        #expect(await other.loaded.count == 1)
    }

    @Test func `T14: a text whose fetch began before a clear is not stored after it`() async throws {
        let shelf = shelf()
        _ = await shelf.admit(["eula"], activatesPending: false)
        shelf.session.update { $0.setFlight(1, of: "text/eula") }
        _ = try await shelf.clear { $0.forgetFetches() }
        let outcome = try await shelf.store(
            "text/eula", [record("eula", "1.0.0", "x")], isActivated: true, where: { $0.flights["text/eula"] == 1 })
        #expect(outcome == nil)
        #expect(!place.files.contains { $0.hasSuffix(".text") })
    }
}
