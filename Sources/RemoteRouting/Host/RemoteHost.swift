public import Foundation
public import StoreCore

/// A client of one API: sends routes to it and gives back decoded values.
///
/// ```swift
/// let api = RemoteHost("api.example.com")                                   // https unless said otherwise
/// let user: User = try await api.send("/users/\(id)")
/// let hits: [Repo] = try await api.send("/search", parameters: ["q": text, "page": 2])
/// let bytes = try await api.data(for: Route(path: "/avatar.png"))
/// ```
///
/// A value: copies with other settings stand side by side and share connections, credentials and the limit on concurrent exchanges.
/// Redirects are followed, failures that pass are tried again where that is safe, and everything has a deadline and a limit; see
/// ``timeouts``, ``limits`` and ``retry``.
public struct RemoteHost: Sendable {
    /// Where the API stands.
    public var configuration: HostConfiguration
    /// The fields of every request, unless its route says otherwise; `User-Agent` and `Accept` are there from the beginning.
    public var defaults: Headers
    /// How lists and dates are written among parameters.
    public var parameterStyle = ParameterStyle()
    /// How long an exchange and its parts may take; `nil` parts wait for ever. A route may say otherwise.
    public var timeouts = RouteOptions.Timeouts(head: .seconds(30), idle: .seconds(30), overall: .seconds(120))
    /// How much the host may send, and how much is asked of it at once.
    public var limits: HostLimits {
        didSet {
            guard limits.concurrentExchanges != oldValue.concurrentExchanges else { return }
            gate = ExchangeGate(limit: limits.concurrentExchanges)
        }
    }
    /// How often a failure that passes is tried again, and when; only where sending twice is safe.
    public var retry = RetryPolicy.exponential(attempts: 3)
    /// Whether credentials may travel without encryption to another machine.
    ///
    /// Credentials are the fields that an authorization, interceptors and ``cookies`` write, and all fields that ``ExchangeLog`` never shows.
    public var allowsInsecureCredentials = false
    /// The cookies that the host keeps and sends; `nil`, the default, keeps and sends none.
    ///
    /// ```swift
    /// let api = RemoteHost("api.example.com").with { $0.cookies = jar }
    /// ```
    ///
    /// Several hosts may share a jar. Each request and each hop of a redirect gets its own cookies, after the request interceptors ran. A
    /// `Cookie` field of the caller replaces the jar's and ends at the first redirect. Over plain http to another machine, a request with
    /// cookies throws ``RemoteError/Code/insecureCredentials`` unless ``allowsInsecureCredentials`` is set.
    public var cookies: CookieJar?
    /// The trust that is demanded of the host's connections, beyond the system's defaults.
    ///
    /// ```swift
    /// let api = RemoteHost("intranet.example.com").with { $0.tls.authorities = authorities }
    /// ```
    public var tls: TLSOptions {
        get { connection.tls }
        set { connection.tls = newValue }
    }
    /// The proxy that the host's connections go through; the system's by default.
    ///
    /// ```swift
    /// let inside = api.with { $0.proxy = .http("proxy.example.com", port: 3128) }
    /// ```
    public var proxy: ProxyOptions {
        get { connection.proxy }
        set { connection.proxy = newValue }
    }
    /// Whether HTTP/2 is used where the server offers it; true by default.
    ///
    /// ``CurlTransport`` uses it over TLS, with libcurl 7.88 or newer, for responses that are not streamed. A transport that cannot do
    /// without it, as ``URLSessionTransport``, throws ``RemoteError/Code/unsupported`` where this is false.
    public var allowsHTTP2: Bool {
        get { connection.allowsHTTP2 }
        set { connection.allowsHTTP2 = newValue }
    }
    /// The demands on the host's connections.
    package var connection = ConnectionOptions()
    /// Makes the decoder of JSON responses.
    public var makeDecoder: @Sendable () -> JSONDecoder = { JSONDecoder() }
    /// The parser of responses; `nil`, the default, decodes JSON and takes `Data` as it came.
    ///
    /// JSON is decoded with ``makeDecoder``. A route may have a parser of its own: ``RouteOptions/parser``.
    public var parser: (any ResponseParser)?
    /// Makes the encoder for bodies.
    public var makeEncoder: @Sendable () -> JSONEncoder = { JSONEncoder() }
    /// The transport that sends the requests.
    ///
    /// By default all hosts share one: on Linux a ``CurlTransport`` where libcurl 7.66 or newer can be loaded, and otherwise a
    /// ``URLSessionTransport``. Its description says which one it is, and why:
    ///
    /// ```swift
    /// print(api.transport)        // libcurl 7.88.1, or: URLSession (libcurl.so.4 cannot be loaded)
    /// ```
    public var transport: any Transport
    /// What time is taken from.
    public var time: any TimeSource
    /// How requests say who asks; `nil` sends no credentials.
    package var authorization: Authorization?
    /// Who looks at requests, outermost first.
    package var requestInterceptors: [any RequestInterceptor] = []
    /// Who looks at answers; the last one sees them first.
    package var responseInterceptors: [any ResponseInterceptor] = []
    /// Who is told of every exchange; `nil` for nobody.
    package var log: ExchangeLog?

    var gate: ExchangeGate
    /// Draws the waits between attempts.
    package var random: @Sendable () -> Double = { Double.random(in: 0..<1) }

    /// Makes a client.
    ///
    /// - Parameters:
    ///   - configuration: Where the API stands; a literal is a host, a host with its port, or an address with a base path.
    ///   - transport: What sends the requests; by default all hosts share one.
    ///   - limits: How much the host may send, and how much is asked of it at once.
    ///   - time: What time is taken from.
    public init(
        _ configuration: HostConfiguration, transport: (any Transport)? = nil, limits: HostLimits = HostLimits(),
        time: any TimeSource = .system
    ) {
        self.configuration = configuration
        self.transport = transport ?? RemoteHost.sharedTransport
        self.limits = limits
        self.time = time
        gate = ExchangeGate(limit: limits.concurrentExchanges)
        defaults = ["User-Agent": "Storehouse"]
    }

    /// The same client with credentials.
    public func authorized(by authorization: Authorization) -> RemoteHost {
        with { $0.authorization = authorization }
    }

    /// The same client without credentials, except its cookies.
    public var unauthenticated: RemoteHost { with { $0.authorization = nil } }

    /// The same client with one more interceptor of requests, inside the others.
    public func intercepting(requests interceptor: some RequestInterceptor) -> RemoteHost {
        with { $0.requestInterceptors.append(interceptor) }
    }

    /// The same client with one more interceptor of answers, inside the others.
    public func intercepting(responses interceptor: some ResponseInterceptor) -> RemoteHost {
        with { $0.responseInterceptors.append(interceptor) }
    }

    /// The same client, which tells of every exchange.
    public func logging(to log: ExchangeLog) -> RemoteHost {
        with { $0.log = log }
    }

    /// The same client with other settings.
    ///
    /// ```swift
    /// let patient = api.with { $0.timeouts.head = .seconds(120) }
    /// ```
    public func with(_ change: (inout RemoteHost) -> Void) -> RemoteHost {
        var copy = self
        change(&copy)
        return copy
    }
}

extension RemoteHost {
    /// The transport of all hosts that are given none, so that they share connections.
    private static let sharedTransport: any Transport = defaultTransport()

    /// Makes the transport that suits the system.
    ///
    /// - Parameter path: The libcurl to load; `nil` for the system's.
    static func defaultTransport(libcurl path: String? = nil) -> any Transport {
        #if os(Linux)
        do {
            return try CurlTransport(width: 256, path: path)
        } catch {
            let reason = (error as? TransportFailure)?.message ?? "\(error)"
            return URLSessionTransport(becauseOf: reason)
        }
        #else
        return URLSessionTransport()
        #endif
    }
}
