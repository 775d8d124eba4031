import Foundation
import Testing

@testable import TextStore

struct SemanticVersionTests {
    /// Versions of section 11 of the specification and beyond, in ascending order.
    private static let ascending = [
        "0.0.0-0", "0.0.0", "0.0.1", "0.9.0", "0.10.0", "1.0.0--", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta",
        "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.0.1", "2.0.0", "2.1.0", "2.1.1", "18446744073709551614.0.0",
        "18446744073709551615.0.0", "18446744073709551616.0.0", "99999999999999999999.0.0", "100000000000000000000.0.0",
    ]

    @Test func `T6: versions are ordered by precedence, with numbers of any length`() throws {
        let versions = try Self.ascending.map { try SemanticVersion(parsing: $0) }
        for (left, lower) in versions.enumerated() {
            for (right, higher) in versions.enumerated() {
                #expect((lower < higher) == (left < right), "\(lower) < \(higher)")
                #expect((lower == higher) == (left == right), "\(lower) == \(higher)")
            }
        }
        #expect(Set(versions).count == versions.count)
    }

    @Test func `T6: build metadata is kept and does not affect the order`() throws {
        let left = try SemanticVersion(parsing: "1.0.0-rc.1+build.5"), right = try SemanticVersion(parsing: "1.0.0-rc.1+7")
        #expect(left == right && left.hashValue == right.hashValue && !left.isIdentical(to: right))
        #expect(left.buildMetadata == "build.5" && left.preRelease == "rc.1")
    }

    @Test func `T6: the lenient mode keeps the spelling and compares numerically`() throws {
        let odd = try SemanticVersion(parsing: "1.0.001", mode: .lenient)
        #expect(odd.description == "1.0.001" && odd == SemanticVersion("1.0.1"))
        #expect(try odd < SemanticVersion(parsing: "1.0.2"))
        #expect(try SemanticVersion(parsing: "v2", mode: .lenient) == SemanticVersion("2.0.0"))
        #expect(try JSONDecoder().decode([SemanticVersion].self, from: JSONEncoder().encode([odd]))[0].isIdentical(to: odd))
    }

    @Test(arguments: [
        "", " ", "1", "1.2", "1.2.3.4", "v1.2.3", "01.2.3", "1.02.3", "1.2.03", "-1.0.0", "1.-2.3", "1.0.0-", "1.0.0-alpha..1", "1.0.0-01",
        "1.0.0+", "1.0.0+a..b", "1.0.0 ", " 1.0.0", "1.0.0\n", "1.0.0-ä", "१.0.0", "1.0.0-a_b", "latest", "1,0,0", "0x1.0.0", "1.0.0\0",
    ])
    func `T6: a malformed version is refused with a reason`(text: String) {
        #expect(SemanticVersion(text) == nil)
        let malformed = #expect(throws: SemanticVersion.Malformed.self) { try SemanticVersion(parsing: text) }
        #expect(malformed?.reason.isEmpty == false)
    }
}
