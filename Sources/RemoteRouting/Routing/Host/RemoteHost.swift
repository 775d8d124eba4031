public import Foundation
public import RemoteHTTP
public import StoreCore

/// A client of one API that sends routes and returns decoded values.
///
/// ```swift
/// let api = RemoteHost("api.example.com")  // https unless said otherwise
/// let user: User = try await api.send("/users/\(id)")
/// let hits: [Repo] = try await api.send(
///     "/search", parameters: ["q": text, "page": 2])
/// let bytes = try await api.data(for: Route(path: "/avatar.png"))
/// ```
///
/// A host is a value. Copies with other settings share connections, credentials and the limits on concurrent exchanges and streams.
///
/// The host follows redirects and retries transient failures where repeating the request is safe. Deadlines and limits bound every call;
/// see ``timeouts``, ``limits`` and ``retry``.
///
/// <doc:DescribingRoutes> begins with a host and its routes.
public struct RemoteHost: Sendable {
    /// The scheme, the host, the port and the base path of the API.
    public var configuration: HostConfiguration
    /// The header fields of every request unless its route replaces them; initially `User-Agent`. The parser adds `Accept`.
    public var defaults: Headers
    /// The style of lists and dates among parameters.
    public var parameterStyle = ParameterStyle()
    /// The deadlines of an exchange and its parts; a `nil` part has no deadline. A route may override them.
    public var timeouts = RouteOptions.Timeouts(head: .seconds(30), idle: .seconds(30), overall: .seconds(120))
    /// The limits on response sizes and concurrent exchanges.
    public var limits: HostLimits {
        didSet {
            if limits.concurrentExchanges != oldValue.concurrentExchanges { gate = Permits(limits.concurrentExchanges) }
            if limits.concurrentStreams != oldValue.concurrentStreams { streamGate = Permits(limits.concurrentStreams) }
        }
    }
    /// The policy for retrying transient failures, applied only where repeating the request is safe.
    public var retry = RetryPolicy.exponential(attempts: 3)
    /// The statuses, methods and errors that are worth another attempt.
    public var retryRules = RetryRules()
    /// Whether credentials may be sent to another machine without encryption.
    ///
    /// Credentials are the fields that an authorization and ``cookies`` write, and all fields that ``ExchangeLog`` redacts. Requests to
    /// this machine need encryption too if a proxy on another machine receives them.
    public var allowsInsecureCredentials = false
    /// The jar that stores and sends cookies; `nil`, the default, ignores cookies.
    ///
    /// ```swift
    /// let api = RemoteHost("api.example.com").with { $0.cookies = jar }
    /// ```
    ///
    /// Several hosts may share a jar. Each request and each hop of a redirect gets its own cookies, after the request interceptors ran. A
    /// `Cookie` field of the caller replaces the jar's and is dropped at the first redirect. Over plain http to another machine, a request
    /// with cookies throws ``RemoteError/Code/insecureCredentials`` unless ``allowsInsecureCredentials`` is set.
    public var cookies: CookieJar?
    /// The trust requirements of the host's connections, beyond the system's defaults.
    ///
    /// ```swift
    /// let api = RemoteHost("intranet.example.com").with {
    ///     $0.tls.authorities = authorities
    /// }
    /// ```
    public var tls: TLSOptions {
        get { connection.tls }
        set { connection.tls = newValue }
    }
    /// The proxy of the host's connections; the system's by default.
    ///
    /// ```swift
    /// let inside = api.with { $0.proxy = .http("proxy.example.com", port: 3128) }
    /// ```
    public var proxy: ProxyOptions {
        get { connection.proxy }
        set { connection.proxy = newValue }
    }
    /// Whether the host uses HTTP/2 if the server offers it; true by default.
    ///
    /// ``CurlTransport`` uses HTTP/2 over TLS, with libcurl 7.88, or 8.3 or newer, for responses that are not streamed. A transport that
    /// cannot turn it off, such as ``URLSessionTransport``, throws ``RemoteError/Code/unsupported`` if this is false.
    public var allowsHTTP2: Bool {
        get { connection.allowsHTTP2 }
        set { connection.allowsHTTP2 = newValue }
    }
    /// The path of the Unix domain socket that replaces TCP; `nil`, the default, uses TCP.
    ///
    /// ```swift
    /// let docker = RemoteHost("http://localhost/v1.43").with {
    ///     $0.unixSocketPath = "/var/run/docker.sock"
    /// }
    /// ```
    ///
    /// The name of the host is sent as usual, but is not looked up. Hosts with different paths share no connections. Redirects to other
    /// origins use TCP. ``CurlTransport`` connects to Unix domain sockets; other transports throw ``RemoteError/Code/unsupported``. A path
    /// that does not fit, of more than 107 bytes on Linux, is ``RemoteError/Code/invalidSocketPath``.
    public var unixSocketPath: String? {
        get { connection.unixSocketPath }
        set { connection.unixSocketPath = newValue }
    }
    package var connection = ConnectionOptions()
    /// Creates the decoder of JSON responses.
    public var makeDecoder: @Sendable () -> JSONDecoder = { JSONDecoder() }
    /// The parser of responses; `nil`, the default, decodes JSON and returns `Data` unchanged.
    ///
    /// JSON is decoded with ``makeDecoder``. A route may have its own parser: ``RouteOptions/parser``.
    public var parser: (any ResponseParser)?
    /// Creates the encoder of JSON bodies.
    public var makeEncoder: @Sendable () -> JSONEncoder = { JSONEncoder() }
    /// The transport that sends the requests.
    ///
    /// By default all hosts share one transport: a ``CurlTransport`` on Linux if libcurl 7.66 or newer can be loaded, otherwise a
    /// ``URLSessionTransport``. Its description names the transport and the reason:
    ///
    /// ```swift
    /// // Prints “libcurl 7.88.1”, or “URLSession (libcurl.so.4 cannot be loaded)”.
    /// print(api.transport)
    /// ```
    public var transport: any Transport
    /// The clock of deadlines, retries and dates; tests pass a `ManualTime`.
    public var time: any TimeSource
    package var authorization: Authorization?
    /// The interceptors of requests, outermost first.
    var requestInterceptors: [any RequestInterceptor] = []
    /// The interceptors of responses; the last one runs first.
    var responseInterceptors: [any ResponseInterceptor] = []
    package var log: ExchangeLog?

    var gate: Permits
    /// The permits of streams, which may last as long as their readers want.
    var streamGate: Permits
    let recent = RecentExchanges()
    /// Draws the random part of the delay between attempts.
    package var random: @Sendable () -> Double = { Double.random(in: 0..<1) }

    /// Creates a client.
    ///
    /// - Parameters:
    ///   - configuration: The location of the API; a literal is a host, a host with its port, or an address with a base path.
    ///   - transport: The transport that sends the requests; by default all hosts share one.
    ///   - limits: The limits on response sizes and concurrent exchanges.
    ///   - time: The source of time.
    public init(
        _ configuration: HostConfiguration, transport: (any Transport)? = nil, limits: HostLimits = HostLimits(),
        time: any TimeSource = .system
    ) {
        self.configuration = configuration
        self.transport = transport ?? SystemTransport.shared
        self.limits = limits
        self.time = time
        gate = Permits(limits.concurrentExchanges)
        streamGate = Permits(limits.concurrentStreams)
        defaults = ["User-Agent": "Storehouse"]
    }

    /// Returns a copy that sends credentials, except with routes whose `requiresAuth` is false.
    public func authorized(by authorization: Authorization) -> RemoteHost {
        with { $0.authorization = authorization }
    }

    /// A copy without credentials, except its cookies.
    public var unauthenticated: RemoteHost { with { $0.authorization = nil } }

    /// Returns a copy with one more request interceptor, inside the others.
    public func intercepting(requests interceptor: some RequestInterceptor) -> RemoteHost {
        with { $0.requestInterceptors.append(interceptor) }
    }

    /// Returns a copy with one more response interceptor, inside the others.
    public func intercepting(responses interceptor: some ResponseInterceptor) -> RemoteHost {
        with { $0.responseInterceptors.append(interceptor) }
    }

    /// Returns a copy that logs every exchange.
    public func logging(to log: ExchangeLog) -> RemoteHost {
        with { $0.log = log }
    }

    /// Returns a copy with other settings.
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
