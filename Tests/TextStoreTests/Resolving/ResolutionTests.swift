import Testing

@testable import TextStore

/// T1, T3, T7: the pure decisions, as tables.
struct ResolutionTests {
    struct Row: Sendable, CustomStringConvertible {
        var cache: String?, bundle: String?
        var choice: VersionedText.Origin?
        var description: String { "cache \(cache ?? "none") bundle \(bundle ?? "none")" }
    }

    /// `-` stands for an unversioned text, `nil` for a missing one.
    @Test(arguments: [
        Row(cache: "1.0.0", bundle: "1.0.0", choice: .cache), Row(cache: "1.0.0", bundle: "2.0.0", choice: .bundle),
        Row(cache: "2.0.0", bundle: "1.5.0", choice: .cache), Row(cache: "-", bundle: "0.0.0-0", choice: .bundle),
        Row(cache: "0.0.0-0", bundle: "-", choice: .cache), Row(cache: "-", bundle: "-", choice: .cache),
        Row(cache: "2.0.0-rc.1", bundle: "2.0.0", choice: .bundle), Row(cache: "1.0.0+2", bundle: "1.0.0+9", choice: .cache),
        Row(cache: nil, bundle: "-", choice: .bundle), Row(cache: "-", bundle: nil, choice: .cache),
        Row(cache: nil, bundle: nil, choice: nil),
    ])
    func `T1: the latest version wins, among equals the most local, and an unversioned text is the lowest`(row: Row) {
        #expect(Resolution.choice(cached: row.cache.map { rank($0) }, bundled: row.bundle.map { rank($0) }) == row.choice)
    }

    @Test(
        arguments: [
            (["1.0.0", "1.0.0"], ["2.0.0", "1.0.0"], true), (["1.0.0", "1.0.0"], ["1.0.0", "1.0.0"], false),
            (["1.0.0", "2.0.0"], ["2.0.0", "1.0.0"], false), (["1.0.0", "1.0.0"], ["2.0.0", nil], false),
            (["1.0.0", "1.0.0"], ["2.0.0", "3.0.0"], true),
        ] as [([String], [String?], Bool)])
    func `T7: a bundled set replaces a cached one only if no text is older and one is newer`(
        cached: [String], bundled: [String?], expected: Bool
    ) {
        let pairs = zip(cached, bundled).map { (cached: rank($0), bundled: $1.map { rank($0) }) }
        #expect(Resolution.prefersBundledSet(pairs) == expected)
    }

    @Test func `T3: a floor rises, reports each rise once, and falls only with a later rollback`() throws {
        var floors = Floors()
        let reported = floors.activated("eula", rank: rank("1.0.0"), digest: digest("a"))
        let first = try #require(reported)
        #expect(first.isFirstInstallation && first.from == nil)
        let reportedAgain = floors.activated("eula", rank: rank("2.0.0"), digest: digest("b"))
        let second = try #require(reportedAgain)
        #expect(!second.isFirstInstallation && second.from == SemanticVersion("1.0.0") && second.textChanged)
        for (version, text) in [("2.0.0", "b"), ("1.5.0", "c")] {
            let increase = floors.activated("eula", rank: rank(version), digest: digest(text))
            #expect(increase == nil)
        }
        #expect(floors.texts["eula"]?.rank == rank("2.0.0") && floors.texts["eula"]?.digest == digest("b"))

        let floor = try #require(floors.texts["eula"])
        let same = VersionManifest.Entry(version: try SemanticVersion(parsing: "2.0.0"), isRollback: true)
        #expect(floor.rankOfOffered(same, edition: Edition(revision: 8)) == floor.rank)
        let old = VersionManifest.Entry(version: try SemanticVersion(parsing: "1.0.0"), isRollback: true)
        #expect(floor.rankOfOffered(old, edition: nil) < floor.rank)
        #expect(floor.rankOfOffered(old, edition: Edition()) < floor.rank)
        let back = floor.rankOfOffered(old, edition: Edition(revision: 8))
        #expect(back > floor.rank)
        let increase = floors.activated("eula", rank: back, digest: digest("a"))
        #expect(increase == nil)
        let after = try #require(floors.texts["eula"])
        #expect(after.rankOfBundled(SemanticVersion("1.5.0"), edition: nil) < after.rank)
        #expect(after.rankOfBundled(SemanticVersion("2.0.0"), edition: nil) < after.rank)
        #expect(after.rankOfBundled(SemanticVersion("2.0.1"), edition: nil) > after.rank)
    }

    @Test func `T3: merging two floors keeps the higher one of each text`() {
        var one = Floors(), other = Floors()
        _ = one.activated("eula", rank: rank("2.0.0"), digest: digest("a"))
        _ = other.activated("eula", rank: rank("1.0.0"), digest: digest("b"))
        _ = other.activated("privacy", rank: rank("3.0.0"), digest: digest("c"))
        other.edition = Edition(revision: 4)
        one.formMaximum(other)
        #expect(
            one.texts["eula"]?.rank == rank("2.0.0") && one.texts["privacy"]?.rank == rank("3.0.0") && one.edition == Edition(revision: 4))
    }

    private func rank(_ text: String) -> Rank { Rank(version: text == "-" ? nil : SemanticVersion(text)) }
}
