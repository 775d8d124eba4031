import Foundation
import LoopbackOrigin
import StoreCore
import Testing
import Trials

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

    /// A request as an origin receives it.
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

    /// The origins, and the chains that run through them.
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
        try await withThrowingTaskGroup(of: Void.self) { group in
            for worker in 0..<8 { group.addTask { for number in numbers where number % 8 == worker { try await ring.follow(number) } } }
            try await group.waitForAll()
        }
    }
}
