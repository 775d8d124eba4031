import Foundation
import StoreCore
import Testing

@testable import TextStore

/// The files of a session alone, without an origin.
struct ShelfTests {
    let place: Place

    init() throws { place = try Place() }

    private var directory: Directory { Directory(path: place.url.path(percentEncoded: false)) }

    private func shelf() -> Shelf {
        Shelf(directory: directory, options: FileWriteOptions(), session: WatchedState(SessionState()))
    }

    /// The record that a new start finds to be active.
    private func active(_ identifier: String) async -> TextRecord? {
        let shelf = shelf()
        _ = await shelf.admit([identifier], activatesPending: false)
        return shelf.session.read { $0.held[identifier]?.active }
    }

    private func record(_ identifier: String, _ version: String?, _ text: String) -> TextRecord {
        TextRecord(
            identifier: identifier, text: text,
            facts: TextRecord.Facts(
                version: version.flatMap { SemanticVersion($0) }, digest: sha256(text), fileDigest: sha256(text),
                validator: Validator(entityTag: "\"\(text)\""), url: "http://x/", isVerified: true,
                fetchedAt: Date(timeIntervalSince1970: 5)))
    }

    @Test(arguments: ["1.9.0", "2.0.0-rc.1", nil])
    func `T3 a lower version is refused where it is stored, by another store of the session too`(lower: String?) async throws {
        let one = shelf(), other = shelf()
        _ = await one.admit(["eula"], activatesPending: false)
        _ = await other.admit(["eula"], activatesPending: false)
        _ = try await one.store("text/eula", [record("eula", "2.0.0", "two")], isActivated: true, begun: 0)
        for shelf in [one, other] {
            let error = await #expect(throws: TextStoreError.self) {
                try await shelf.store("text/eula", [record("eula", lower, "low")], isActivated: true, begun: 0)
            }
            #expect(error?.code == .belowFloor && error?.identifier == "eula")
        }
        #expect(await active("eula")?.text == "two")
    }

    @Test func `T4 text, version, digest and validator are read as they were written`() async throws {
        let written = record("é/🧾", "1.2.3-rc.1+b", "Text\n\u{FEFF}with a mark inside")
        let first = shelf()
        _ = await first.admit([written.identifier], activatesPending: false)
        _ = try await first.store("text/x", [written], isActivated: true, begun: 0)
        #expect(await active(written.identifier) == written)
    }

    @Test func `T4 a record is whole or not there, whichever byte is damaged or missing`() async throws {
        let written = record("eula", "1.0.0", "Terms")
        let name = TextRecord.makeName("eula")
        try written.write(as: name, in: directory, options: FileWriteOptions())
        let good = try Data(contentsOf: place.file(name))
        for index in good.indices {
            var bad = good
            bad[index] ^= 1
            try bad.write(to: place.file(name))
            #expect(throws: TextStoreError.self) { try TextRecord.read(name, of: "eula", in: directory) }
            try good.prefix(index).write(to: place.file(name))
            #expect(throws: TextStoreError.self) { try TextRecord.read(name, of: "eula", in: directory) }
        }
        try good.write(to: place.file(name))
        #expect(try TextRecord.read(name, of: "eula", in: directory) == written)
        #expect(throws: TextStoreError.self) { try TextRecord.read(name, of: "other", in: directory) }
    }

    @Test func `T14 what was begun before everything was forgotten is not stored after it`() async throws {
        let shelf = shelf()
        _ = await shelf.admit(["eula"], activatesPending: false)
        _ = try await shelf.clear()
        #expect(try await shelf.store("text/eula", [record("eula", "1.0.0", "x")], isActivated: true, begun: 0) == nil)
        #expect(!place.files.contains { $0.hasSuffix(".text") })
    }
}
