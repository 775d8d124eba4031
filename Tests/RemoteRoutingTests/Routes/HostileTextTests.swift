import Foundation
import Testing
import Trials

@testable import RemoteHTTP
@testable import RemoteRouting

/// Texts that are meant to do harm.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct HostileTextTests {
    /// Whether an operation takes linear time; a quadratic one takes many times this.
    ///
    /// Counts the processor time of this thread, because on the real clock a busy machine would be slow too.
    private func isQuick(_ operation: () -> Void) -> Bool {
        var (start, end) = (timespec(), timespec())
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start)
        operation()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end)
        return end.tv_sec - start.tv_sec < 4
    }

    @Test(arguments: [
        "\u{FF0E}\u{FF0E}", "\u{2024}\u{2024}", "..\u{FF0F}x", "\u{2215}..\u{2215}", ".\u{338}.", "\u{301}", "..\u{200D}", "\u{2025}",
        "\u{29F5}..\u{29F5}", "%c0%ae%c0%ae", "%u002e%u002e", "..%00", "..;", ";..", "\u{1F469}\u{200D}\u{1F4BB}",
    ])
    func `H2: lookalikes of dots and slashes are encoded and stay in one segment`(value: String) throws {
        let path = try ("/a/\(value)/b" as RoutePath).encoded()
        #expect(path.utf8.split(separator: UInt8(ascii: "/")).count == 3)
        #expect(path.utf8.allSatisfy { $0 < 0x80 })
        #expect(path.removingPercentEncoding == "/a/\(value)/b")
    }

    @Test(arguments: [
        ("/v1", "//x"), ("/v1/", "/../x"), ("/v1/.", "/x"), ("/v1//", "/x"), ("v1", "/x"), ("/v1?a", "/x"), ("/v1", "x"), ("//evil", "/x"),
        ("/v1/%2e", "/x"), ("/v1\\", "/x"),
    ])
    func `H2: the same rules apply to a base path`(base: String, path: String) throws {
        let builder = RequestBuilder(origin: try WebOrigin(scheme: .https, host: "a.example"), basePath: RoutePath(stringLiteral: base))
        #expect(throws: RouteFault.self) { try builder.request(for: Route(path: RoutePath(stringLiteral: path))) }
    }

    @Test func `H2: a value that is escaped ten thousand times is checked in linear time`() throws {
        let value = "%" + String(repeating: "25", count: 10_000) + "2e"
        var code: RouteFault.Code?
        #expect(
            isQuick {
                do { _ = try ("/a/\(value)" as RoutePath).encoded() } catch { code = (error as? RouteFault)?.code }
            })
        #expect(code == .dotSegment)
    }

    @Test(arguments: [
        ("%2e", true), ("%25%32%65", true), ("%%32%65", true), ("%2%65", true), ("%2", false), ("%", false), ("%%2e", false),
        ("%2e%2", false),
        ("%252e%2525252E", true), ("%2e%2e%2e", false), ("%25", false), ("a%2e", false), ("%zz", false), ("%25zz", false),
    ])
    func `H2: dot segments are found under any number of encodings`(segment: String, stands: Bool) {
        #expect(PathCheck.standsForDots(Array(segment.utf8)[...]) == stands)
    }

    @Test func `H9: fields full of open quotes are parsed in linear time`() throws {
        let text = "a=\"" + String(repeating: "\\\"", count: 20_000)
        var fields = HTTPFields()
        try fields.append("Link", "<x>; " + text)
        try fields.append("Cache-Control", text)
        #expect(isQuick { _ = LinkHeader(fields) })
        #expect(isQuick { _ = CacheControl(fields) })
    }

    @Test(arguments: ["text/plain; a=\"x\r\nEvil: y\"", "text/plain; a=\"\n\"", "text/plain; a=\"\u{0}\"", "text/plain; a=\"\\\r\""])
    func `H3: a media type with a control character is invalid`(text: String) {
        #expect(MimeType(rawValue: text) == nil)
    }

    @Test func `H1: a long query is encoded completely, including NUL`() throws {
        let long = String(repeating: "\u{0}+ \u{1F469}", count: 20_000)
        let query = try #require(try PairEncoder(style: ParameterStyle()).query(of: ["q": long]))
        #expect(query.utf8.count == 2 + 20_000 * (3 + 3 + 3 + 12))
        #expect(query.removingPercentEncoding == "q=" + long)
    }
}
