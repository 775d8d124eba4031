internal import Testing

@Suite struct ChangelogTests {
    /// The kinds of changes in the order of Keep a Changelog.
    private static let kinds = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]

    @Test func `the changelog is ready for a release`() {
        #expect(Self.faults(of: Documentation.text(of: "CHANGELOG.md")) == [])
    }

    @Test(arguments: [
        ("## [0.1.0] - 2026-01-31\n### Added\n- A.", "the first section is not [Unreleased]"),
        ("## [Unreleased]\n## [0.1.0]\n### Added\n- A.", "[0.1.0] has no date"),
        ("## [Unreleased]\n### Fixed\n- A.\n### Added\n- B.", "the kinds of [Unreleased] are not in order: Fixed, Added"),
        ("## [Unreleased]\n### Added\n- A.\n### Added\n- B.", "the kinds of [Unreleased] are not in order: Added, Added"),
        ("## [Unreleased]\n### News\n- A.", "the kinds of [Unreleased] are not in order: News"),
        ("## [Unreleased]\n### Added\n### Fixed\n- A.", "Added of [Unreleased] is empty"),
        ("## [Unreleased]\n## [0.1.0] - 2026-01-31\n## [0.2.0] - 2026-02-28", "the versions are not in order: 0.1.0, 0.2.0"),
    ])
    func `a fault of the headings is found`(text: String, fault: String) {
        #expect(Self.faults(of: text) == [fault])
    }

    /// Returns the faults of a changelog's headings.
    private static func faults(of text: String) -> [String] {
        var faults: [String] = []
        var versions: [[Int]] = []
        let sections = text.split(separator: "\n## ").dropFirst(text.hasPrefix("## ") ? 0 : 1)
        for (index, section) in sections.enumerated() {
            let heading = section.drop { "# ".contains($0) }.prefix { $0 != "\n" }
            let name = heading.prefix { $0 != " " }
            if index == 0, heading != "[Unreleased]" { faults.append("the first section is not [Unreleased]") }
            if let version = name.wholeMatch(of: /\[(\d+)\.(\d+)\.(\d+)\]/) {
                versions.append([version.1, version.2, version.3].compactMap { Int($0) })
                if heading.wholeMatch(of: /\S+ - \d{4}-\d{2}-\d{2}/) == nil { faults.append("\(name) has no date") }
            }
            let parts = section.split(separator: "\n### ").dropFirst()
            let found = parts.map { String($0.prefix { $0 != "\n" }) }
            let places = found.map { kinds.firstIndex(of: $0) ?? -1 }
            if places.contains(-1) || zip(places, places.dropFirst()).contains(where: { $0 >= $1 }) {
                faults.append("the kinds of \(name) are not in order: \(found.joined(separator: ", "))")
            }
            for (kind, part) in zip(found, parts) where !part.contains("\n- ") { faults.append("\(kind) of \(name) is empty") }
        }
        if zip(versions, versions.dropFirst()).contains(where: { !$1.lexicographicallyPrecedes($0) }) {
            let names = versions.map { $0.map(String.init).joined(separator: ".") }
            faults.append("the versions are not in order: \(names.joined(separator: ", "))")
        }
        return faults
    }
}
