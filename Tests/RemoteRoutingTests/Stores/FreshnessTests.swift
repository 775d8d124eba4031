import Foundation
import StoreCore
import Testing

@testable import RemoteRouting

struct FreshnessTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var section: String
        var lines: [(String, String)]
        var expected: Freshness
        var requestedBefore = 0.0

        var testDescription: String { "\(section): \(lines)" }

        init(_ section: String, _ lines: [(String, String)], _ expected: Freshness, requestedBefore: Double = 0) {
            (self.section, self.lines, self.expected, self.requestedBefore) = (section, lines, expected, requestedBefore)
        }
    }

    /// Sun, 06 Nov 1994 08:49:37 GMT
    private static let now = Date(timeIntervalSince1970: 784_111_777)
    private static func date(_ offset: Double) -> String { HTTPDate.format(now.addingTimeInterval(offset)) }
    private static func cc(_ value: String) -> (String, String) { ("Cache-Control", value) }
    private static func fresh(_ seconds: Int) -> Freshness { .fresh(for: .seconds(seconds)) }
    private static let mustAsk = Freshness(lifetime: .zero, mustRevalidate: true)
    private static let neverSaved = Freshness(lifetime: .zero, mustRevalidate: true, storage: .forbidden)

    static let cases: [Case] = [
        // Lifetimes
        Case("RFC 9111 §4.2", [], .unspecified),
        Case("RFC 9111 §4.2.1", [cc("max-age=60")], fresh(60)),
        Case("RFC 9111 §4.2.1 max-age overrides Expires", [cc("max-age=60"), ("Expires", date(600)), ("Date", date(0))], fresh(60)),
        Case("RFC 9111 §4.2.1 Expires", [("Expires", date(600)), ("Date", date(0))], fresh(600)),
        Case("RFC 9111 §5.3 Expires without Date", [("Expires", date(600))], fresh(600)),
        Case("RFC 9111 §5.3 Expires 0", [("Expires", "0")], fresh(0)),
        Case("RFC 9111 §5.3 Expires -1", [("Expires", "-1")], fresh(0)),
        Case("RFC 9111 §5.3 Expires in the past", [("Expires", date(-5)), ("Date", date(0))], fresh(0)),
        Case("RFC 9111 §4.2.1 two Expires", [("Expires", date(600)), ("Expires", date(700))], fresh(0)),
        Case("RFC 9111 §5.2.2.10 s-maxage is for shared caches", [cc("s-maxage=600")], .unspecified),
        Case("RFC 9111 §5.2.2.10 s-maxage does not override max-age", [cc("s-maxage=600, max-age=5")], fresh(5)),
        Case("RFC 9111 §5.2.2.7 private allows a private cache", [cc("private, max-age=5")], fresh(5)),
        Case("RFC 9111 §5.2.2.9 public gives no lifetime", [cc("public")], .unspecified),
        Case("RFC 9111 §4.2.1 equal duplicates", [cc("max-age=5"), cc("max-age=5")], fresh(5)),
        Case("RFC 9111 §4.2.1 contradictory duplicates", [cc("max-age=5"), cc("max-age=6")], fresh(0)),
        Case("RFC 9111 §4.2.1 invalid max-age with a valid Expires", [cc("max-age=x"), ("Expires", date(600))], fresh(0)),
        Case("RFC 9111 §1.2.2 overflow", [cc("max-age=18446744073709551616")], fresh(2_147_483_648)),
        Case("RFC 9111 §4.2.2 no heuristics", [("Last-Modified", date(-1_000_000)), ("Date", date(0))], .unspecified),
        Case("RFC 8246 immutable gives no lifetime", [cc("immutable")], .unspecified),
        Case("RFC 8246 immutable does not change the lifetime", [cc("max-age=5, immutable")], fresh(5)),
        // Age
        Case("RFC 9111 §4.2.3 Age", [cc("max-age=60"), ("Age", "20")], fresh(40)),
        Case("RFC 9111 §4.2.3 apparent age", [cc("max-age=60"), ("Date", date(-20))], fresh(40)),
        Case("RFC 9111 §4.2.3 the larger age", [cc("max-age=60"), ("Date", date(-20)), ("Age", "30")], fresh(30)),
        Case("RFC 9111 §4.2.3 a Date in the future does not make the age negative", [cc("max-age=60"), ("Date", date(20))], fresh(60)),
        Case("RFC 9111 §4.2.3 response delay", [cc("max-age=60"), ("Age", "10")], fresh(45), requestedBefore: 5),
        Case("RFC 9111 §4.2.3 response delay without Age", [cc("max-age=60")], fresh(55), requestedBefore: 5),
        Case("RFC 9111 §5.1 first of several ages", [cc("max-age=60"), ("Age", "10, 50")], fresh(50)),
        Case("RFC 9111 §5.1 invalid age", [cc("max-age=60"), ("Age", "-5")], fresh(60)),
        Case("RFC 9111 §5.1 overflowing age", [cc("max-age=60"), ("Age", "99999999999999999999")], fresh(0)),
        Case("RFC 9111 §4.2 stale on arrival", [cc("max-age=60"), ("Age", "70")], fresh(0)),
        Case("RFC 9110 §6.6.1 invalid Date", [cc("max-age=60"), ("Date", "yesterday")], fresh(60)),
        Case("RFC 9111 §5.3 Expires counts from Date", [("Expires", date(50)), ("Date", date(-20))], fresh(50)),
        // Mandatory revalidation
        Case("RFC 9111 §5.2.2.4 no-cache", [cc("no-cache")], mustAsk),
        Case("RFC 9111 §5.2.2.4 no-cache overrides max-age", [cc("max-age=60, no-cache")], mustAsk),
        Case("RFC 9111 §5.2.2.4 no-cache with field names applies to the response", [cc("no-cache=\"Set-Cookie\", max-age=60")], mustAsk),
        Case("RFC 9111 §5.2.2.5 no-store", [cc("no-store")], neverSaved),
        Case("RFC 9111 §5.2.2.5 no-store overrides max-age", [cc("max-age=60, NO-STORE")], neverSaved),
        Case(
            "RFC 9111 §4.1 more fields than a record keeps",
            [cc("max-age=60"), ("Vary", (0...64).map { "X-\($0)" }.joined(separator: ","))], mustAsk),
        Case("RFC 9111 §4.1 Vary *", [cc("max-age=60"), ("Vary", "*")], mustAsk),
        Case("RFC 9111 §4.1 Vary * among others", [cc("max-age=60"), ("Vary", "Accept, *")], mustAsk),
        Case("RFC 9111 §4.1 Vary by a field that the host changes", [cc("max-age=60"), ("Vary", "Accept"), ("Vary", "X-User")], mustAsk),
        Case("RFC 9111 §4.1 Vary by credentials", [cc("max-age=60"), ("Vary", "authorization")], mustAsk),
        Case(
            "RFC 9111 §4.1 Vary by fields that are the same for all users",
            [cc("max-age=60"), ("Vary", "Accept, Accept-Encoding, Cookie")], fresh(60)),
        // Stale windows
        Case(
            "RFC 9111 §5.2.2.2 must-revalidate", [cc("max-age=60, must-revalidate")],
            Freshness(lifetime: .seconds(60), mustRevalidate: true)),
        Case("RFC 9111 §5.2.2.2 must-revalidate without a lifetime", [cc("must-revalidate")], Freshness(mustRevalidate: true)),
        Case("RFC 9111 §5.2.2.8 proxy-revalidate is for shared caches", [cc("max-age=60, proxy-revalidate")], fresh(60)),
        Case(
            "RFC 5861 both windows", [cc("max-age=60, stale-while-revalidate=10, stale-if-error=20")],
            Freshness(lifetime: .seconds(60), staleWhileRevalidate: .seconds(10), staleIfError: .seconds(20))),
        Case(
            "RFC 5861 invalid windows are zero", [cc("stale-while-revalidate=x, stale-if-error")],
            Freshness(staleWhileRevalidate: .zero, staleIfError: .zero)),
        Case(
            "RFC 5861 a response that arrives stale has used part of its windows",
            [cc("max-age=60, stale-while-revalidate=10, stale-if-error=20"), ("Age", "75")],
            Freshness(lifetime: .zero, staleWhileRevalidate: .zero, staleIfError: .seconds(5))),
    ]

    private func exchange(_ lines: [(String, String)]) throws -> CachedExchange {
        var response = HTTPFields()
        for (name, value) in lines { try response.append(name, value) }
        return CachedExchange(
            request: try fields(["Authorization": "secret", "X-User": "7"]), response: response, requestedAt: FreshnessTests.now,
            respondedAt: FreshnessTests.now, changingFields: ["x-user"])
    }

    @Test(arguments: cases)
    func `H9: header fields determine the freshness`(_ example: Case) throws {
        var exchange = try exchange(example.lines)
        exchange.requestedAt -= example.requestedBefore
        #expect(Freshness(of: exchange) == example.expected)
    }

    @Test func `H9: a request with no-store forbids storing its response`() throws {
        var exchange = try exchange([FreshnessTests.cc("max-age=60")])
        exchange.request = try fields(["Cache-Control": "no-store"])
        #expect(Freshness(of: exchange) == FreshnessTests.neverSaved)
        exchange.request = HTTPFields()
        exchange.policy = .neverStore
        #expect(Freshness(of: exchange) == FreshnessTests.neverSaved)
    }

    @Test func `H9: ignoreLifetimes leaves lifetimes to the cacher and obeys no-store`() throws {
        var exchange = try exchange([FreshnessTests.cc("max-age=60, must-revalidate")])
        exchange.policy = .ignoreLifetimes
        #expect(Freshness(of: exchange) == .unspecified)
        exchange.response = try fields(["Cache-Control": "no-store"])
        #expect(Freshness(of: exchange) == Freshness(storage: .forbidden))
    }

    // MARK: Validators

    @Test(arguments: [
        (#""a""#, true), (#"W/"a""#, true), (#""""#, true), (#""a b""#, false), ("a", false), ("*", false), (#"w/"a""#, false),
        (#""a"b""#, false), (#"""#, false), ("W/", false), (#""ä""#, true), (#""a", "b""#, false),
    ])
    func `H9: a valid entity tag is stored verbatim, and an invalid tag is ignored`(text: String, isValid: Bool) throws {
        let validator = Validator(of: try fields(["ETag": text]), now: FreshnessTests.now)
        #expect(validator?.entityTag == (isValid ? text : nil))
    }

    @Test func `H9: a modification date is a validator, and repeated fields are ignored`() throws {
        let date = FreshnessTests.date(-5)
        #expect(Validator(of: try fields(["Last-Modified": date]), now: FreshnessTests.now) == Validator(lastModified: date))
        #expect(Validator(of: try fields(["Last-Modified": "today"]), now: FreshnessTests.now) == nil)
        let two = try fields(["Last-Modified": date, "last-modified": FreshnessTests.date(-9)])
        #expect(Validator(of: two, now: FreshnessTests.now) == nil)
        #expect(
            Validator(of: try fields(["ETag": #""a""#, "etag": #""b""#, "Last-Modified": date]), now: FreshnessTests.now)
                == Validator(lastModified: date))
    }

    @Test func `H9: a valid validator adds conditions, and a damaged validator adds none`() {
        var headers: Headers = [:]
        let date = FreshnessTests.date(-5)
        let damaged = Validator(entityTag: "a\r\nX: y", lastModified: "*")
        let isConditional = headers.append(conditionsOf: damaged, now: FreshnessTests.now)
        #expect(!isConditional && headers.lines.isEmpty)
        let isNowConditional = headers.append(conditionsOf: Validator(entityTag: #"W/"a""#, lastModified: date), now: FreshnessTests.now)
        #expect(isNowConditional)
        #expect(headers == ["If-None-Match": #"W/"a""#, "If-Modified-Since": date])
    }
}
