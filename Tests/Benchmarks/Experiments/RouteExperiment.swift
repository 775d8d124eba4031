internal import Foundation
internal import RemoteRouting

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

extension Experiment {
    /// Compares a route that is built, checked, and encoded with the same request made by hand without checks.
    static var routes: [Experiment] {
        [
            Experiment(.wire, "route", "a route built and encoded") { scale in
                let times = scale.times(20_000, quick: 2_000)
                let builder = RequestBuilder(
                    origin: try WebOrigin(scheme: .https, host: "api.example.com"), basePath: "/v1",
                    defaults: ["User-Agent": "Storehouse", "Accept": "application/json"])
                return [
                    .mutex { [try timed(times) { blackHole(try requestByHand(of: $0)) }] },
                    .storehouse { [try timed(times) { blackHole(try builder.request(for: SearchRoute(page: $0))) }] },
                ]
            }
        ]
    }

    /// Measures the time per call, in nanoseconds.
    private static func timed(_ count: Int, _ body: (_ number: Int) throws -> Void) throws -> Double {
        let watch = Stopwatch()
        for number in 0..<count { try body(number) }
        return watch.nanoseconds / Double(count)
    }

    private static func requestByHand(of page: Int) throws -> URLRequest {
        var components = URLComponents()
        components.scheme = "https"
        components.host = "api.example.com"
        components.path = "/v1/orgs/\(SearchRoute.name)/repos"
        components.queryItems = [
            URLQueryItem(name: "q", value: SearchRoute.text), URLQueryItem(name: "page", value: String(page)),
            URLQueryItem(name: "per_page", value: "50"),
        ]
        guard let url = components.url else { throw URLError(.badURL) }
        var request = URLRequest(url: url)
        request.httpMethod = "GET"
        request.setValue("Storehouse", forHTTPHeaderField: "User-Agent")
        request.setValue("application/json", forHTTPHeaderField: "Accept")
        request.setValue("en", forHTTPHeaderField: "Accept-Language")
        return request
    }
}

/// A route with the same address and fields as the handwritten request.
private struct SearchRoute: Routable {
    static let name = "Ada Lovelace"
    static let text = "analytical engine & looms"

    var page: Int

    var path: RoutePath { "/orgs/\(SearchRoute.name)/repos" }
    var query: Parameters { ["q": SearchRoute.text, "page": page, "per_page": 50] }
    var headers: Headers { ["Accept-Language": "en"] }
}
