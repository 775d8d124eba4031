import Foundation
import Testing

@testable import TextStore

/// T13: every combination of accepted versions, shown version, floor, and granularity, against the wording of the law.
struct AcceptanceTests {
    typealias Row = (accepted: String?, shown: String?, isSameText: Bool, any: Bool, major: Bool, minor: Bool, digest: Bool)

    @Test(
        arguments: [
            ("1.0.0", "1.0.0", true, false, false, false, false), ("1.0.0", "1.0.0", false, false, false, false, true),
            ("1.0.0", "1.0.1", true, true, false, false, false), ("1.0.0", "1.1.0", false, true, false, true, true),
            ("1.9.0", "2.0.0", true, true, true, true, false), (nil, "1.0.0", true, false, false, false, false),
            (nil, "1.0.0", false, true, true, true, true), ("1.0.0", nil, false, true, true, true, true),
            ("1.0.0", nil, true, false, false, false, false), ("2.0.0", "1.0.0", false, false, false, false, true),
            ("1.0.0+1", "1.0.0+2", true, false, false, false, false), ("1.0.0+1", "1.0.0+2", false, false, false, false, true),
            ("2.0.0-rc.1", "2.0.0", false, true, false, false, true), ("2.0.0", "2.0.0-rc.1", false, false, false, false, true),
            ("1.1.0", "1.0.9", false, false, false, false, true),
        ] as [Row])
    func `T13: a text needs acceptance unless the same or a higher version was accepted`(row: Row) {
        let text = VersionedText(identifier: "eula", text: "new", version: row.shown.flatMap { SemanticVersion($0) })
        var history = AcceptanceHistory()
        history.add(acceptance(row.accepted, row.isSameText ? "new" : "old"))
        let expected: [(Acceptance.Granularity, Bool)] = [(.any, row.any), (.major, row.major), (.minor, row.minor), (.digest, row.digest)]
        for (granularity, isNeeded) in expected { #expect(history.isNeeded(for: text, granularity) == isNeeded, "\(granularity)") }
    }

    private static let versions: [String?] = [nil, "1.0.0", "1.0.1", "1.1.0", "2.0.0-rc.1", "2.0.0", "3.0.0"]

    private func acceptance(_ version: String?, _ text: String) -> Acceptance {
        Acceptance(identifier: "eula", version: version.flatMap { SemanticVersion($0) }, digest: sha256(text), date: Date())
    }

    /// Accepts each subset of the versions in their own wording, and shows each version in its own or another wording.
    @Test(arguments: [false, true])
    func `T13: every history, shown text, and granularity follows the law, below the floor and otherwise`(isBelowFloor: Bool) {
        for subset in 0..<(1 << Self.versions.count) {
            let accepted = Self.versions.indices.filter { subset & 1 << $0 != 0 }
            var history = AcceptanceHistory()
            for index in accepted.shuffled() { history.add(acceptance(Self.versions[index], "wording \(index)")) }
            for (shown, version) in Self.versions.enumerated() {
                for wording in ["wording \(shown)", "another wording"] {
                    var text = VersionedText(identifier: "eula", text: wording, version: version.flatMap { SemanticVersion($0) })
                    text.isBelowFloor = isBelowFloor
                    let isSameWording = accepted.contains(shown) && wording != "another wording"
                    // The versions are in ascending order, and the unversioned text comes first.
                    let sameOrHigher = shown > 0 && accepted.contains { $0 >= shown }
                    let higher = shown > 0 && accepted.contains { $0 > shown }
                    let sameMajor = shown > 0 && accepted.contains { $0 > 0 && Self.versions[$0]?.first == version?.first }
                    let sameMinor = shown > 0 && accepted.contains { $0 > 0 && Self.versions[$0]?.prefix(3) == version?.prefix(3) }
                    let covered: [(Acceptance.Granularity, Bool)] = [
                        (.any, sameOrHigher || isSameWording), (.major, sameOrHigher || sameMajor || isSameWording),
                        (.minor, sameOrHigher || sameMinor || isSameWording), (.digest, isSameWording || (isBelowFloor && higher)),
                    ]
                    for (granularity, isCovered) in covered {
                        #expect(
                            history.isNeeded(for: text, granularity) == !isCovered,
                            "accepted \(accepted), shown \(shown), “\(wording)”, \(granularity)")
                    }
                }
            }
        }
    }

    @Test func `T13: the newest acceptance is that of the highest version, and the last one among equals`() {
        var history = AcceptanceHistory()
        #expect(history.newest() == nil)
        for (version, text) in [(nil, "a"), ("2.0.0", "b"), ("1.0.0", "c"), ("2.0.0", "d"), (nil, "e"), ("2.0.0+7", "f"), ("2.0.0", "b")] {
            history.add(acceptance(version, text))
        }
        #expect(history.newest()?.digest == sha256("b") && history.newest()?.version?.description == "2.0.0")
        #expect(history.all.count == 6)
        var unversioned = AcceptanceHistory()
        for text in ["a", "b"] { unversioned.add(acceptance(nil, text)) }
        #expect(unversioned.newest()?.digest == sha256("b"))
        #expect(!unversioned.isNeeded(for: VersionedText(identifier: "eula", text: "a", version: nil), .digest))
    }

    @Test func `T13: an acceptance of an unverified text covers no other wording of its version, and other versions as before`() {
        func needs(_ history: AcceptanceHistory, _ version: String, _ text: String) -> [Bool] {
            [.any, .major, .minor, .digest].map {
                history.isNeeded(for: VersionedText(identifier: "eula", text: text, version: SemanticVersion(version)), $0)
            }
        }
        var history = AcceptanceHistory()
        var unverified = acceptance("2.0.0", "old")
        unverified.isVerified = false
        history.add(unverified)
        #expect(needs(history, "2.0.0", "new") == [true, true, true, true])
        #expect(needs(history, "2.0.0", "old") == [false, false, false, false])
        #expect(needs(history, "1.9.0", "new") == [false, false, false, true])
        #expect(needs(history, "2.0.1", "new") == [true, false, false, true])
        // A verified acceptance of the same wording stays one, in any order.
        for order in [[true, false], [false, true]] {
            var history = AcceptanceHistory()
            for isVerified in order {
                unverified.isVerified = isVerified
                history.add(unverified)
            }
            #expect(history.all.count == 1 && needs(history, "2.0.0", "new") == [false, false, false, true])
        }
    }

    @Test func `T13: a saved acceptance keeps its properties, and one without verification counts as verified`() throws {
        var saved = acceptance("2.0.0", "old")
        saved.isVerified = false
        let bytes = try JSONEncoder().encode(saved)
        #expect(try JSONDecoder().decode(Acceptance.self, from: bytes) == saved)
        let earlier = String(decoding: bytes, as: UTF8.self).replacing(/,?"isVerified":false/, with: "").replacing("{,", with: "{")
        #expect(try JSONDecoder().decode(Acceptance.self, from: Data(earlier.utf8)).isVerified)
    }
}
