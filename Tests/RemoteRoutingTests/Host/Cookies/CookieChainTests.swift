import Foundation
import LoopbackOrigin
import StoreCore
import Testing
import Trials

@testable import RemoteHTTP
@testable import RemoteRouting

/// Generated redirect chains over several origins, compared with an independent model.
///
/// For credentials, an origin is a scheme, a host and a port. Cookies do not isolate by port (RFC 6265, section 8.5), so their boundary is
/// the host: `127.0.0.1` and `localhost`, each at three ports.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct CookieChainTests {
    private struct Place: Hashable, Sendable {
        var host: String
        var port: UInt16
        var authority: String { "\(host):\(port)" }
    }

    /// A stop of a chain: its place, the cookie that its response sets, and the status that leads to the next stop.
    private struct Stop: Sendable {
        var place: Place
        var sameSite: String?
        var status: Int
    }

    private struct Seen: Hashable, Sendable {
        var method: String
        var authority: String?
        var cookie: String?
        var authorization: String?
        var apiKey: String?
    }

    private struct Chain: Sendable {
        let number: Int
        let isPost: Bool
        let ownCookie: String?
        let stops: [Stop]

        init(_ number: Int, among places: [Place]) {
            var chance = SplitMix(seed: number)
            self.number = number
            isPost = chance.below(4) == 0
            ownCookie = chance.below(4) == 0 ? "own=secret" : nil
            let attributes = [nil, "", "; SameSite=None; Secure", "; SameSite=Lax", "; SameSite=Strict"]
            var stops: [Stop] = []
            for _ in 0..<2 + chance.below(5) {
                // A third of the hops stay at the same place, so that chains within one origin and within one host are common.
                let stays = chance.below(3) == 0
                let place = places[chance.below(places.count)]
                stops.append(
                    Stop(
                        place: stays ? stops.last?.place ?? place : place, sameSite: attributes[chance.below(attributes.count)],
                        status: [301, 302, 303, 307, 308][chance.below(5)]))
            }
            self.stops = stops
        }

        func response(at index: Int) -> LoopbackOrigin.Response {
            let stop = stops[index]
            var response = LoopbackOrigin.Response.text("end")
            if index + 1 < stops.count {
                response = .redirect(to: "http://\(stops[index + 1].place.authority)/\(number)/\(index + 1)", status: stop.status)
            }
            // The value names the host that set the cookie.
            return stop.sameSite.map { response.setting("Set-Cookie", to: "c\(index)=\(stop.place.host)\($0)") } ?? response
        }

        /// The expected requests, computed by a model that shares no code with the jar.
        var expected: [Seen] {
            var method = isPost ? "POST" : "GET"
            return stops.indices.map { index in
                if index > 0, method == "POST", [301, 302, 303].contains(stops[index - 1].status) { method = "GET" }
                let place = stops[index].place
                let isFirstOrigin = stops[...index].allSatisfy { $0.place == stops[0].place }
                let isOneSite = stops[...index].allSatisfy { $0.place.host == place.host }
                let cookies = stops[..<index].indices.filter { earlier in
                    guard stops[earlier].place.host == place.host, let sameSite = stops[earlier].sameSite else { return false }
                    switch sameSite {
                    case "; SameSite=None; Secure": return true
                    case "; SameSite=Strict": return isOneSite
                    default: return isOneSite || method == "GET"
                    }
                }.map { "c\($0)=\(place.host)" }.joined(separator: "; ")
                return Seen(
                    method: method, authority: place.authority,
                    cookie: index == 0 && ownCookie != nil ? ownCookie : cookies.isEmpty ? nil : cookies,
                    authorization: isFirstOrigin ? "Bearer secret" : nil, apiKey: isFirstOrigin ? "secret" : nil)
            }
        }
    }

    private final class Ring: Sendable {
        let origins: [LoopbackOrigin]
        let transport: any Transport
        /// The started chains by number, with the requests that the origins received for each.
        private let chains: WatchedState<[Int: (chain: Chain, seen: [Seen])]>

        init(_ transport: any Transport) throws {
            let chains = WatchedState<[Int: (chain: Chain, seen: [Seen])]>([:])
            self.chains = chains
            self.transport = transport
            origins = try (0..<3).map { _ in
                try LoopbackOrigin { request in
                    let numbers = request.path.split(separator: "/").compactMap { Int($0) }
                    guard numbers.count == 2, let chain = chains.read({ $0[numbers[0]]?.chain }), numbers[1] < chain.stops.count
                    else { return .notFound(for: request) }
                    let headers = request.headers
                    let seen = Seen(
                        method: request.method.rawValue, authority: headers["Host"], cookie: headers["Cookie"],
                        authorization: headers["Authorization"], apiKey: headers["X-API-Key"])
                    chains.update { $0[numbers[0]]?.seen.append(seen) }
                    return chain.response(at: numbers[1])
                }
            }
        }

        /// Sends the first request of a chain, and compares the requests that the origins received with the model.
        func follow(_ number: Int) async throws {
            let places = origins.flatMap { origin in ["127.0.0.1", "localhost"].map { Place(host: $0, port: origin.port) } }
            let chain = Chain(number, among: places)
            chains.update { $0[number] = (chain, []) }
            let jar = CookieJar()
            let first = chain.stops[0].place
            let host = RemoteHost(HostConfiguration(first.host, scheme: .http, port: Int(first.port)), transport: transport).with {
                $0.cookies = jar
                $0.retry = .never
                $0.timeouts = .untilHang
                $0.defaults.append("X-API-Key", "secret")
            }.authorized(by: .bearer("secret"))
            let path: RoutePath = "/\(number)/0"
            var route = chain.isPost ? Route(path: path, method: .post, parameters: ["a": 1]) : Route(path: path)
            if let cookie = chain.ownCookie { route.headers.append("Cookie", cookie) }
            #expect(try await host.data(for: route) == Data("end".utf8), "seed \(number)")
            #expect(chains.read { $0[number]?.seen } == chain.expected, "seed \(number)")
            #expect(try await jar.cookies().allSatisfy { $0.value == $0.domain }, "seed \(number)")
        }
    }

    @Test(arguments: RealTransport.available)
    func `H4, W12: no cookie leaves its host and no credential its origin in random redirect chains`(_ transport: RealTransport)
        async throws
    {
        let ring = try Ring(transport.make())
        // `URLSession` takes ten times the processor time, which would delay all other tests.
        let numbers = transport == .curl ? seeds(1_000, quick: 64, sanitized: 200) : seeds(100, quick: 8, sanitized: 20)
        try await atOnce(8) { worker in for number in numbers where number % 8 == worker { try await ring.follow(number) } }
    }
}

/// Compares the jar with an independent implementation: Python's `http.cookiejar`, with its policy for host-only cookies.
///
/// The generated histories avoid the cases in which Python deviates from RFC 6265bis (draft 07 and later):
///
/// - Python accepts `Secure` cookies over http, and lets http overwrite them. The RFC aborts both. The histories therefore use a name either
///   with or without `Secure`.
/// - Python removes a cookie when any host expires it, before it looks at the domain. The RFC ignores a cookie of another domain entirely.
/// - Python uses the first attribute of a name, the RFC the last one.
/// - Python rejects a cookie with an invalid `Max-Age`. The RFC ignores the attribute.
/// - Python uses `Path=x` unchanged. The RFC uses the default path instead of a path without a leading slash.
/// - Python treats a line without an equals sign as a name, the RFC as a value.
/// - Python rejects an empty `Domain` and a `Domain` without a dot. The RFC ignores an empty `Domain`.
/// - Python lets an IP address share cookies. The RFC limits domains to host names.
/// - Python supports neither prefixes nor `SameSite` nor limits.
/// - Python interprets two-digit years as the nearest year, the RFC as one from 1970 to 2069.
/// - Python sorts by path and then by domain, the RFC by creation time. The test compares cookies as sets, and the lengths of their paths in
///   order.
struct CookiePythonTests {
    /// Reads histories of `[seconds, URL, line]`; for each empty line, prints the cookies of a request.
    private static let script = """
        import json, sys, email.message, urllib.request, http.cookiejar as jars
        clock = [0.0]
        jars.time.time = lambda: clock[0]
        class Response:
            def __init__(self, line):
                self.message = email.message.Message()
                self.message['Set-Cookie'] = line
            def info(self): return self.message
        for steps in json.load(sys.stdin):
            jar = jars.CookieJar(jars.DefaultCookiePolicy(strict_ns_domain=jars.DefaultCookiePolicy.DomainStrictNonDomain))
            for seconds, address, line in steps:
                clock[0] = float(seconds)
                request = urllib.request.Request(address)
                if line: jar.extract_cookies(Response(line), request)
                else:
                    jar.add_cookie_header(request)
                    print(json.dumps(request.get_header('Cookie', '')))
        """

    @Test(.enabled(if: !ChildProcess.pythons.isEmpty, "python3 is not installed"))
    func `W12: cookies agree with Python's over generated histories`() async throws {
        var random = SplitMix(seed: 20_260_712)
        let histories = (0..<rounds(300, quick: 30)).map { _ in random.history() }
        let python = try #require(ChildProcess.pythons.first)
        let input = try JSONEncoder().encode(histories)
        let output = try await onOwnThread { try ChildProcess.output(of: python, ["-c", Self.script], input: input) }
        let lines = try #require(output).split(separator: UInt8(ascii: "\n"))
        var results = lines.makeIterator()
        var sent = 0
        for (number, history) in histories.enumerated() {
            var bench = CookieBench(shared: SplitMix.shared)
            for step in history {
                bench.now = Date(timeIntervalSince1970: try #require(Double(step[0])))
                guard step[2].isEmpty else {
                    try bench.set(step[2], at: step[1])
                    continue
                }
                let result = results.next()
                let line = try #require(result)
                let expected = try JSONDecoder().decode(String.self, from: Data(line))
                let own = try bench.sent(to: step[1]) ?? ""
                let same = pairs(own).sorted() == pairs(expected).sorted()
                #expect(same, "history \(number): \(step[1]) gets “\(own)” instead of Python's “\(expected)”: \(history)")
                // The value contains the path.
                #expect(pairs(own).map(pathLength) == pairs(expected).map(pathLength))
                sent += pairs(own).count
            }
        }
        let rest = results.next()
        #expect(rest == nil)
        // Guards against histories without cookies, which would agree trivially.
        #expect(sent > histories.count * 5)
    }

    private func pairs(_ header: String) -> [String] { header.isEmpty ? [] : header.components(separatedBy: "; ") }

    private func pathLength(_ pair: String) -> Int { pair.drop { $0 != "/" }.prefix { $0 != "|" }.count }
}

extension SplitMix {
    fileprivate static let shared: Set<String> = ["shop.example", "a.shop.example", "example.org"]
    private static let hosts = [
        "shop.example", "a.shop.example", "b.a.shop.example", "x.shop.example", "www.example.org", "evilshop.example",
    ]
    private static let paths = ["/", "/x", "/x/", "/x/y", "/xy", "/x/y/z"]

    private mutating func one(of texts: [String]) -> String { texts[below(texts.count)] }

    private mutating func spelled(_ text: String) -> String {
        switch below(3) {
        case 0: text.lowercased()
        case 1: text.uppercased()
        default: text
        }
    }

    fileprivate mutating func history() -> [[String]] {
        var now = 1_000_000_000
        return (0..<60).map { index in
            now += below(4) * 5
            let isSecure = below(2) == 0
            let address = "\(isSecure ? "https" : "http")://\(one(of: Self.hosts))\(one(of: Self.paths))\(below(4) == 0 ? "?q=/x/y" : "")"
            return ["\(now)", address, below(2) == 0 ? "" : line(index, address, isSecure: isSecure, now: now)]
        }
    }

    private mutating func line(_ index: Int, _ address: String, isSecure: Bool, now: Int) -> String {
        let marksSecure = isSecure && below(3) == 0
        let path = below(3) == 0 ? nil : one(of: Self.paths)
        let blank = one(of: ["", " ", "  "])
        let request = CookieRequest(URL(string: address) ?? URL(filePath: "/"))
        let name = (marksSecure ? "s" : "n") + "\(below(3))"
        var attributes: [String] = []
        if let path { attributes.append("\(spelled("Path"))=\(path)") }
        if marksSecure { attributes.append(spelled("Secure")) }
        let domain = below(2) == 0 ? one(of: Self.shared.sorted()) : nil
        if let domain { attributes.append("\(spelled("Domain"))=\(below(2) == 0 ? "." : "")\(spelled(domain))") }
        let isOwn = domain.map { CookieMatch.host(request?.host ?? "", matches: $0) } ?? true
        if isOwn, below(3) == 0 { attributes.append("\(spelled("Max-Age"))=\([0, -1, 5, 20, 100][below(5)])") }
        if isOwn, below(3) == 0 {
            let date = HTTPDateText.format(Date(timeIntervalSince1970: Double(now + [-100, 0, 10, 100_000][below(4)])), form: below(3))
            attributes.append("\(spelled("Expires"))=\(date)")
        }
        if below(4) == 0 { attributes.append(one(of: ["HttpOnly", "Unknown", "x=y", ""])) }
        attributes.shuffle(using: &self)
        let value = "\(path ?? request?.defaultPath ?? "/")|\(index)\(one(of: ["", "=", "\"q\"", "a b", ","]))"
        return (["\(name)\(blank)=\(blank)\(value)"] + attributes).joined(separator: "\(blank);\(blank)")
    }
}

private enum HTTPDateText {
    static func format(_ date: Date, form: Int) -> String {
        let text = HTTPDate.format(date)
        let words = text.split(separator: " ")
        return switch form {
        case 0: text
        case 1: "\(words[0]) \(words[1])-\(words[2])-\(words[3]) \(words[4]) GMT"
        default: "Sunday, \(words[1])-\(words[2])-\(words[3].suffix(2)) \(words[4]) GMT"
        }
    }
}
