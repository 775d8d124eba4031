/// Looks at a request, or changes it, just before it goes on the wire.
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
/// The route of the request and its tags are ``HTTPRequest/route`` and ``HTTPRequest/tags``:
///
/// ```swift
/// struct ScreenField: RequestInterceptor {
///     func intercept(_ request: inout HTTPRequest) async throws {
///         if let screen = request.tags[ScreenName.self] { try request.fields.set("X-ScreenName", screen) }
///     }
/// }
/// ```
///
/// Interceptors run once for each attempt, in the order in which they were added, the first one outermost; they see the credentials that
/// go with the request. What a redirect leads to is derived from what they made, so that nothing is added behind it for another origin.
public protocol RequestInterceptor: Sendable {
    /// Changes the request, or throws to keep it from being sent.
    ///
    /// - Throws: Anything; the caller gets it as the underlying error of ``RemoteError/Code/interceptorFailed``.
    func intercept(_ request: inout HTTPRequest) async throws
}

/// Looks at a response, or changes it, before the call concludes anything from it.
///
/// Interceptors run for each response but redirects that are followed, in the reverse of the order in which they were added.
public protocol ResponseInterceptor: Sendable {
    /// Changes the response, or throws to make it a failure.
    ///
    /// - Parameters:
    ///   - response: The response. The body of a streamed one still arrives (``HTTPResponse/Body/data`` is `nil`); an interceptor leaves it
    ///     alone or replaces it.
    ///   - request: The request of the response, as it was sent, with its route and tags.
    /// - Throws: Anything; a ``RemoteError`` reaches the caller as it is, another error as the underlying error of
    ///   ``RemoteError/Code/interceptorFailed``.
    func intercept(_ response: inout HTTPResponse, to request: HTTPRequest) async throws
}
