internal import Foundation
internal import StoreCore

/// One call as it is wanted: a route as a request, where it goes, and what is taken for an answer.
struct RouteSending: Sendable {
    /// How the body of a success is wanted.
    enum Delivery: Sendable {
        /// All of it, within the limit.
        case whole
        /// Piece by piece.
        case stream
    }

    /// An answer of success.
    final class Outcome: Sendable {
        let response: RemoteResponse<Void>
        /// The whole body; empty where it is streamed.
        let body: Data
        /// The body still coming, where that was wanted.
        let stream: HTTPReplyBody?
        /// What was sent last, with everything that interceptors and redirects made of it.
        let request: HTTPRequest

        init(response: RemoteResponse<Void>, body: Data, stream: HTTPReplyBody?, request: HTTPRequest) {
            self.response = response
            self.body = body
            self.stream = stream
            self.request = request
        }
    }

    var host: RemoteHost
    var request: HTTPRequest
    let options: RouteOptions
    var started: MonotonicInstant
    /// Told of the bytes sent.
    var onSent: (@Sendable (_ sent: Int64, _ total: Int64?) -> Void)?
    /// How many bytes a streamed answer may have.
    var streamBytes = Int.max
    /// Other statuses that are answers and no failures.
    var acceptedStatuses: Set<Int> = []

    /// Builds the request.
    ///
    /// - Throws: ``RemoteError`` of the stage ``RemoteError/Stage/build``.
    init(_ route: some Routable, at host: RemoteHost) throws(RemoteError) {
        self.host = host
        options = route.options
        started = host.time.now
        do throws(RouteFault) {
            var defaults: Headers = ["Accept": "application/json, */*;q=0.1"]
            defaults.append(contentsOf: host.defaults)
            let builder = RequestBuilder(
                origin: try host.configuration.origin(), basePath: host.configuration.basePath, defaults: defaults,
                parameterStyle: host.parameterStyle, makeJSONEncoder: host.makeEncoder)
            request = try builder.request(for: route)
        } catch {
            let operation = "\(route.method.rawValue) \(host.configuration.name)"
            throw RemoteError(.build, .invalidRoute, operation: operation, error.refusal, underlyingError: error)
        }
        if options.isConditional { acceptedStatuses.insert(304) }
    }

    var timeouts: RouteOptions.Timeouts {
        let own = options.timeouts
        let ours = host.timeouts
        return RouteOptions.Timeouts(
            head: own.head ?? ours.head, idle: own.idle ?? ours.idle, attempt: own.attempt ?? ours.attempt,
            overall: own.overall ?? ours.overall)
    }

    /// Sends until there is a success, or a failure that is final.
    func run(_ delivery: Delivery) async throws -> Outcome {
        try await RouteCall(self, delivery).run()
    }

    func isSuccess(_ status: Int) -> Bool {
        (200..<300).contains(status) || acceptedStatuses.contains(status)
    }
}
