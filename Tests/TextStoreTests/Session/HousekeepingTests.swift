import Foundation
import StoreCore
import StoreFiles
import StorePlatform
import Testing
import Trials

@testable import TextStore

/// Unreferenced files that a start finds in the session's directory.
struct HousekeepingTests {
    let place: TemporaryDirectory

    init() throws { place = try TemporaryDirectory() }

    private func shelf() -> Shelf { place.shelf() }

    /// Creates a file if it is missing, and sets the time of its last change.
    private func put(_ name: String, minutesAgo: Double) throws {
        if !place.files.contains(name) { try Data("left behind".utf8).write(to: place.file(name)) }
        try place.age(name, by: .seconds(60 * minutesAgo))
    }

    private func stored() async throws -> Shelf {
        let shelf = shelf()
        _ = await shelf.admit(["eula"], activatesPending: false)
        _ = try await shelf.store("text/eula", [record("eula", "1.0.0", "one")], isActivated: true)
        return shelf
    }

    @Test func `T14: leftovers of killed processes are removed after an hour; used and foreign files stay`() async throws {
        _ = try await stored()
        let used = Set(place.files)
        for name in used { try put(name, minutesAgo: 600) }
        let old = [RecordName(of: "eula").text, ".text.1.0123456789abcdef.tmp"]
        let kept = [RecordName(of: "eula").text, ".text.1.0123456789abcde0.tmp", "notes.text", ".other.1.0123456789abcdef.tmp"]
        for name in old { try put(name, minutesAgo: 61) }
        for name in kept.prefix(2) { try put(name, minutesAgo: 50) }
        for name in kept.suffix(2) { try put(name, minutesAgo: 600) }

        let next = shelf(), before = Set(place.files)
        let outcome = await next.admit(["eula"], activatesPending: false)
        #expect(outcome.faults.isEmpty)
        // The start itself does not wait for the removal.
        #expect(Set(place.files) == before)
        #expect(try await next.accept(revision: nil).faults.isEmpty)
        #expect(Set(place.files) == used.union(kept))
        #expect(next.session.read { $0.held["eula"]?.active?.text } == "one")
    }

    @Test func `T14: the next start removes a long history from the journals`() async throws {
        let first = try await stored()
        func size() throws -> Int { try Data(contentsOf: place.file("pointer.0")).count }
        var number = 0
        // Beyond this size, the next entry would rewrite the file.
        while try size() <= 1 << 14 {
            number += 1
            _ = try await first.store("text/eula", [record("eula", "1.0.\(number)", "text \(number)")], isActivated: true)
            try #require(number < 1_000)
        }
        let before = try size()
        let next = shelf()
        _ = await next.admit(["eula"], activatesPending: false)
        _ = try await next.accept(revision: nil)
        #expect(try size() < before / 10)
        let last = shelf()
        _ = await last.admit(["eula"], activatesPending: false)
        #expect(last.session.read { $0.held["eula"]?.active?.text } == "text \(number)")
    }

    @Test func `T14: setting the version source removes leftovers`() async throws {
        let bench = try Bench()
        bench.serve(eula: 2)
        try await bench.started().refresh()
        let saved = try #require(bench.place.files.first { $0.hasSuffix(".text") })
        let left = (saved as NSString).deletingLastPathComponent + "/" + RecordName(of: "eula").text
        try Data("left behind".utf8).write(to: bench.place.file(left))
        try bench.place.age(left, by: .seconds(61 * 60))
        let store = try await bench.started()
        #expect(!bench.place.files.contains(left))
        #expect(try await line(store.text(for: bench.source("eula"))) == "2.0.0 cache: Remote terms 2")
    }

    @Test func `T14: cleanup keeps files that another process has stored since the start, however old they appear`() async throws {
        let other = try await stored()
        let shelf = shelf()
        _ = await shelf.admit(["eula"], activatesPending: false)
        _ = try await other.store("text/eula", [record("eula", "2.0.0", "two")], isActivated: true)
        _ = try await other.store("text/privacy", [record("privacy", "2.0.0", "waits")], isActivated: false)
        let before = Set(place.files)
        for name in before { try put(name, minutesAgo: 600) }
        #expect(try await shelf.accept(revision: nil, ["privacy": "2.0.0"]).faults.isEmpty)
        #expect(Set(place.files) == before)
        #expect(shelf.session.read { $0.held["eula"]?.active?.text } == "two")
    }

    @Test func `T4: a text that another store has cleared is not reported as damaged`() async throws {
        let first = try await stored()
        let shelf = shelf()
        #expect(await shelf.admit([], activatesPending: false).faults.isEmpty)
        _ = try await first.clear()
        let outcome = await shelf.admit(["eula"], activatesPending: false)
        #expect(outcome.faults.isEmpty)
        #expect(shelf.session.read { $0.held["eula"]?.active == nil && $0.damaged.isEmpty })
    }

    @Test func `T14: a record's name round-trips, and no other name is accepted`() throws {
        for identifier in ["", "eula", "../../x", "é"] {
            let name = RecordName(of: identifier)
            let text = name.text
            #expect(RecordName(text) == name && text.hasSuffix(".text") && text.hasPrefix(RecordName.digest(of: identifier).hex))
            #expect(RecordName(of: identifier) != name)
            for index in text.indices {
                let others = "0f-.tG/".filter { $0 != text[index] }.map { text.replacingCharacters(in: index...index, with: String($0)) }
                #expect(others.allSatisfy { RecordName($0) != name })
                #expect(RecordName(String(text[..<index])) == nil)
            }
            let others = [text.uppercased(), text + " ", " " + text, text.replacing("-", with: "_"), text.dropLast() + "_"]
            #expect(others.allSatisfy { RecordName($0) == nil })
        }
    }

    /// The buffer of the fast path holds 16 KiB.
    @Test(arguments: [0, 1, 16_000, 16_359, 16_360, 16_361, 16_384, 100_000])
    func `T4: a file of any size is read whole`(size: Int) throws {
        let payload = (0..<size).map { UInt8(truncatingIfNeeded: $0) }
        try SealedFile.session.write(payload, as: "sealed", in: place.directory)
        func read() throws -> [UInt8]? {
            var reader = try SealedFile.reader(place.directory)
            return try reader.load("sealed") { Array($0) }
        }
        #expect(try read() == payload)
        let handle = try FileHandle(forWritingTo: place.file("sealed"))
        try handle.truncate(atOffset: UInt64(SealedFile.headSize + size - min(size, 1)))
        if size > 0 { #expect(throws: TextStoreError.self) { try read() } }
    }

    @Test func `T4: a directory or link in place of a record is reported with the text's identifier, not read`() async throws {
        let shelf = try await stored()
        let name = try #require(await shelf.pointer.active["eula"]?.file.text), elsewhere = place.file("elsewhere")
        try FileManager.default.moveItem(at: place.file(name), to: elsewhere)
        let replacements: [(TextStoreError.Code, () throws -> Void)] = [
            (.damagedFile, { try FileManager.default.createDirectory(at: place.file(name), withIntermediateDirectories: false) }),
            (.fileSystem, { try FileManager.default.createSymbolicLink(at: place.file(name), withDestinationURL: elsewhere) }),
        ]
        for (code, replace) in replacements {
            try replace()
            let next = self.shelf()
            let outcome = await next.admit(["eula"], activatesPending: false)
            #expect(outcome.faults.map(\.code) == [code] && outcome.faults.first?.identifier == "eula", "\(outcome.faults)")
            #expect(next.session.read { $0.held["eula"]?.active } == nil)
            try FileManager.default.removeItem(at: place.file(name))
        }
    }
}
