public import RemoteHTTP

/// Inspects or changes a request just before it is sent.
///
/// ```swift
/// struct Trace: RequestInterceptor {
///     func intercept(_ request: inout HTTPRequest) async throws {
///         try request.fields.set("X-Trace", UUID().uuidString)
///     }
/// }
/// ```
/// ```swift
/// let api = RemoteHost("api.example.com").intercepting(requests: Trace())
/// ```
///
/// `HTTPRequest.route` and `HTTPRequest.tags` describe the route behind the request:
///
/// ```swift
/// struct ScreenField: RequestInterceptor {
///     func intercept(_ request: inout HTTPRequest) async throws {
///         if let screen = request.tags[ScreenName.self] {
///             try request.fields.set("X-ScreenName", screen)
///         }
///     }
/// }
/// ```
///
/// Interceptors run once per attempt, and again after a refresh of the credentials, in the order in which they were added. They see the
/// credentials of the request. A redirected request derives from their result, so interceptors do not run again for another origin.
///
/// <doc:Intercepting> explains interceptors and tags.
public protocol RequestInterceptor: Sendable {
    /// Changes the request, or throws to prevent it from being sent.
    ///
    /// - Throws: Any error. A ``RemoteError`` reaches the caller, or leads to another attempt if ``RemoteError/isRetryable`` is `true`, its
    ///   call has made one attempt only, and the request may be repeated. Any other error becomes the underlying error of
    ///   ``RemoteError/Code/interceptorFailed``.
    func intercept(_ request: inout HTTPRequest) async throws
}

/// Inspects or changes a response before the call evaluates it.
///
/// Interceptors run for each response except followed redirects, in reverse order of their addition.
///
/// <doc:Intercepting> explains interceptors and tags.
public protocol ResponseInterceptor: Sendable {
    /// Changes the response, or throws to turn it into a failure.
    ///
    /// - Parameters:
    ///   - response: The response. A streamed body still arrives (``HTTPResponse/Body/data`` is `nil`); an interceptor may replace it but
    ///     must not read it. The body of an error has at most 64 KiB.
    ///   - request: The request as it was sent, with its route and tags.
    /// - Throws: Any error. A ``RemoteError`` reaches the caller, or leads to another attempt if ``RemoteError/isRetryable`` is `true`, its
    ///   call has made one attempt only, and the request may be repeated. Any other error becomes the underlying error of
    ///   ``RemoteError/Code/interceptorFailed``.
    func intercept(_ response: inout HTTPResponse, to request: HTTPRequest) async throws
}
