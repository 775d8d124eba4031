import Foundation
import StoreCore
import Testing

@testable import TextStore

struct ManifestTests {
    private func json(_ text: String, depth: Int = 16) -> Result<JSONValue, JSONValue.Malformed> {
        Array(text.utf8).withUnsafeBufferPointer { bytes in
            Result { () throws(JSONValue.Malformed) in try JSONValue.read(bytes, depth: depth) }
        }
    }

    @Test(arguments: [
        "", "nonsense", "[]", "null", "1", "\"eula\"", "{", "{\"eula\":\"1.0.0\"", "{\"eula\":\"1.0.0\"} x", "<html></html>", "\u{FEFF}{",
        #"{"texts":{},"texts":{}}"#, #"{"revision":1.5,"texts":{}}"#, #"{"revision":"1","texts":{}}"#, #"{"expires":"soon","texts":{}}"#,
        String(repeating: #"{"a":"#, count: 100_000), String(repeating: "[", count: 1_000_000),
    ])
    func `T6: malformed bytes are refused as a manifest, with the reason`(text: String) {
        let error = #expect(throws: TextStoreError.self) { try VersionManifest(parsing: Data(text.utf8), limit: 2_000_000) }
        #expect(error?.code == .malformedManifest)
    }

    @Test(arguments: [
        "-", "01", "1.", "1.e1", "1e", "1e+", "1E-", ".5", "+1", "1x", "tru", "nul", "falsy", "[1", "[1,]", "[,]", "{\"a\"}", "{\"a\":}",
        "{a:1}",
        "{\"a\":1,}", "\"", "\"\u{1}\"", #""\x""#, #""\u12""#, #""\u12G4""#, #""\ud800""#, #""\ud800\u0041""#, #""\udc00""#, #""\ud83d\u""#,
        "1 2", "",
    ])
    func `T6: malformed JSON is refused`(text: String) {
        #expect(throws: JSONValue.Malformed.self) { try json(text).get() }
    }

    @Test(arguments: 1...4)
    func `T6: JSON is parsed up to the depth limit and no deeper`(depth: Int) throws {
        func nested(_ arrays: Int) -> String { String(repeating: "[", count: arrays) + "1" + String(repeating: "]", count: arrays) }
        _ = try json(nested(depth - 1), depth: depth).get()
        #expect(throws: JSONValue.Malformed.self) { try json(nested(depth), depth: depth).get() }
    }

    @Test func `T6: entries that differ in one field are unequal`() throws {
        let version = try SemanticVersion(parsing: "1.0.0+a")
        let entry = VersionManifest.Entry(version: version)
        let others: [VersionManifest.Entry] = [
            .init(version: try SemanticVersion(parsing: "1.0.0+b")), .init(version: version, url: "a"),
            .init(version: version, sha256: "a"),
            .init(version: version, length: 1), .init(version: version, group: "a"), .init(version: version, isRollback: true),
        ]
        #expect(entry == VersionManifest.Entry(version: version))
        for other in others { #expect(entry != other) }
    }

    @Test func `T6: JSON keeps numbers and members as written`() throws {
        let text = #" {"a":[-0, 10.50e+3,1E-2, 0.0],"b":{},"a":[ ],"\ud83d\ude00\n\/\"\\\b\f\r\tA\u00e9":[true,false,null]} "#
        let expected = JSONValue.object([
            .init(name: "a", value: .array([.number("-0"), .number("10.50e+3"), .number("1E-2"), .number("0.0")])),
            .init(name: "b", value: .object([])), .init(name: "a", value: .array([])),
            .init(name: "😀\n/\"\\\u{8}\u{C}\r\tAé", value: .array([.bool(true), .bool(false), .null])),
        ])
        #expect(try json(text, depth: 3).get() == expected)
    }

    @Test func `T5: a manifest of 50 MB is refused before it is parsed`() {
        let error = #expect(throws: TextStoreError.self) { try VersionManifest(parsing: Data(count: 50_000_000)) }
        #expect(error?.code == .tooLarge)
    }

    @Test(arguments: [
        "1", "1.5", "null", "true", "[]", "{}", #"{"version":1}"#, #""01.2.3""#, #""1.2""#, #""v1.2.3""#, #""1.0.0-alpha..1""#,
        #""-1.0.0""#,
        #""""#, #"{"version":"1.0.0","sha256":"abc"}"#, #"{"version":"1.0.0","length":-1}"#, #"{"version":"1.0.0","length":"9"}"#,
        #"{"version":"1.0.0","rollback":true}"#, #"{"version":"1.0.0","group":""}"#, #"{"version":"1.0.0","version":"2.0.0"}"#,
        #""1.0.0","bad":"2.0.0""#,
    ])
    func `T6: an entry that is malformed or listed twice is reported and does not affect the others`(value: String) throws {
        let manifest = try VersionManifest(parsing: Data(#"{"texts":{"a":"1.0.0","bad":\#(value),"z":"99999999999999999999.0.0"}}"#.utf8))
        #expect(manifest.entries.keys.sorted() == ["a", "z"])
        #expect(manifest.problems.map(\.identifier) == ["bad"])
        #expect(manifest.problems[0].refusal.description.contains("bad"))
    }

    @Test func `T6: a pre-release is accepted only on request`() throws {
        let manifest = try VersionManifest(parsing: Data(#"{"eula":"2.0.0-rc.1","privacy":"1.0.0"}"#.utf8))
        #expect(manifest.taken(by: VersionSource()).entries.keys.sorted() == ["privacy"])
        #expect(manifest.taken(by: VersionSource(preReleases: .allowed)) == manifest)
    }

    @Test func `T9: a manifest is due after its interval or back-off`() {
        var policy = TextStorePolicy(checkInterval: .seconds(60))
        policy.backOff = .exponential(base: .seconds(5), cap: .seconds(18))
        let start = Date(timeIntervalSince1970: 1_000_000)
        var record = ManifestRecord(url: "")
        #expect(record.isDue(at: start))
        record.succeeded(at: start, policy)
        #expect(!record.isDue(at: start + 59) && record.isDue(at: start + 60))
        #expect(record.isDue(at: start - 365 * 86_400), "the clock was set back")
        let failure = TextStoreError(.unreachable, "")
        for pause in [5.0, 10, 18, 18] {
            record.failed(failure, at: start, policy)
            #expect(!record.isDue(at: start + pause - 1) && record.isDue(at: start + pause))
        }
        record.failed(TextStoreError(.unexpectedStatus, "", retryAfter: .seconds(100)), at: start, policy)
        #expect(!record.isDue(at: start + 99) && record.isDue(at: start + 100))
        record.succeeded(at: start, policy)
        #expect(record.failures == 0)
    }

    // MARK: Dates in the format of RFC 3339

    private func expiry(_ date: String) throws(TextStoreError) -> Date? {
        try VersionManifest(parsing: Data(#"{"expires":"\#(date)","texts":{}}"#.utf8)).expires
    }

    @Test(arguments: [
        ("1985-04-12T23:20:50.52Z", 482_196_050.52), ("1996-12-19T16:39:57-08:00", 851_042_397), ("1990-12-31T23:59:60Z", 662_688_000),
        ("1990-12-31T15:59:60-08:00", 662_688_000), ("1937-01-01T12:00:27.87+00:20", -1_041_337_172.13),
        ("2030-01-01t00:00:00z", 1_893_456_000), ("2030-01-01t00:00:00Z", 1_893_456_000), ("2030-01-01T00:00:00z", 1_893_456_000),
        ("2030-01-01T00:00:00-00:00", 1_893_456_000), ("2030-01-01T05:30:00+05:30", 1_893_456_000),
        ("2029-12-31T00:01:00-23:59", 1_893_456_000), ("2030-01-01T00:00:00.000000000000000000000000Z", 1_893_456_000),
        ("2000-02-29T00:00:00Z", 951_782_400), ("1970-01-01T00:00:00Z", 0), ("0000-01-01T00:00:00Z", -62_167_219_200),
        ("0001-01-01T00:00:00Z", -62_135_596_800), ("9999-12-31T23:59:59Z", 253_402_300_799), ("2016-12-31T23:59:60.5Z", 1_483_228_800.5),
        ("1972-06-30T23:59:60Z", 78_796_800), ("2026-11-22T10:00:00.0987654321Z", 1_795_341_600.098_765_432_1),
    ])
    func `T9: an expiry in RFC 3339 format is parsed`(text: String, seconds: Double) throws {
        let date = try #require(try expiry(text))
        #expect(abs(date.timeIntervalSince1970 - seconds) < 0.000_001, "\(date.timeIntervalSince1970)")
    }

    @Test(arguments: [
        "", "soon", "2030-01-01", "2030-01-01T00:00:00", "2030-01-01 00:00:00Z", "2030-1-1T00:00:00Z", "2030-13-01T00:00:00Z",
        "2030-00-01T00:00:00Z", "2030-01-00T00:00:00Z", "2030-01-32T00:00:00Z", "2030-04-31T00:00:00Z", "2029-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z", "2030-01-01T24:00:00Z", "2030-01-01T00:60:00Z", "2030-01-01T00:00:61Z", "2030-01-01T00:00:60Z",
        "2030-06-15T23:59:60Z", "1990-12-31T23:59:60-08:00", "2030-01-01T00:00Z", "2030-01-01T00:00:00.Z", "2030-01-01T00:00:00,5Z",
        "2030-01-01T00:00:00+0100", "2030-01-01T00:00:00+24:00", "2030-01-01T00:00:00+01:60", "2030-01-01T00:00:00+1:00",
        "10000-01-01T00:00:00Z", "-001-01-01T00:00:00Z", "+2030-01-01T00:00:00Z", "2030-01-01T00:00:00Z ", " 2030-01-01T00:00:00Z",
        "2030-01-01T00:00:00ZZ", "２０３０-01-01T00:00:00Z", "2030-01-01T00:00:00\\u00B5Z", "2026-11-22T10:00:00.9:Z",
    ])
    func `T9: an expiry that RFC 3339 forbids makes the manifest malformed`(text: String) {
        let error = #expect(throws: TextStoreError.self) { try expiry(text) }
        #expect(error?.code == .malformedManifest)
    }
}
