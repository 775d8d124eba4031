import Foundation
import Testing

@testable import TextStore

struct AcceptanceTests {
    typealias Row = (accepted: String?, shown: String?, isSameText: Bool, any: Bool, major: Bool, minor: Bool, digest: Bool)

    @Test(
        arguments: [
            ("1.0.0", "1.0.0", true, false, false, false, false), ("1.0.0", "1.0.0", false, false, false, false, true),
            ("1.0.0", "1.0.1", true, true, false, false, false), ("1.0.0", "1.1.0", false, true, false, true, true),
            ("1.9.0", "2.0.0", true, true, true, true, false), (nil, "1.0.0", true, false, false, false, false),
            (nil, "1.0.0", false, true, true, true, true), ("1.0.0", nil, false, true, true, true, true),
            ("2.0.0", "1.0.0", false, true, true, true, true), ("1.0.0+1", "1.0.0+2", true, false, false, false, false),
        ] as [Row])
    func `T13 what must be accepted again`(row: Row) {
        let text = VersionedText(identifier: "eula", text: "new", version: row.shown.flatMap { SemanticVersion($0) })
        let acceptance = Acceptance(
            identifier: "eula", version: row.accepted.flatMap { SemanticVersion($0) },
            digest: row.isSameText ? text.digest : sha256("old"), date: Date())
        let expected: [(Acceptance.Granularity, Bool)] = [(.any, row.any), (.major, row.major), (.minor, row.minor), (.digest, row.digest)]
        for (granularity, isNeeded) in expected { #expect(acceptance.isOutdated(by: text, granularity) == isNeeded, "\(granularity)") }
    }
}
