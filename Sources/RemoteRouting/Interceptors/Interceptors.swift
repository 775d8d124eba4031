public import Foundation

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
/// Interceptors run once for each attempt, in the order in which they were added, the first one outermost; they see the credentials that
/// go with the request. What a redirect leads to is derived from what they made, so that nothing is added behind it for another origin.
public protocol RequestInterceptor: Sendable {
    /// Changes the request, or throws to keep it from being sent.
    ///
    /// - Throws: Anything; the caller gets it as the underlying error of ``RemoteError/Code/interceptorFailed``.
    func intercept(_ request: inout HTTPRequest) async throws
}

/// Looks at an answer, or changes it, before anything is concluded from it.
///
/// Interceptors run for each answer that is not a redirect that is followed, in the reverse of the order in which they were added.
public protocol ResponseInterceptor: Sendable {
    /// Changes the answer, or throws to make it a failure.
    ///
    /// - Parameters:
    ///   - response: The answer; of one that is streamed the body is empty, and what is put there is not used.
    ///   - request: What it answers, as it was sent.
    /// - Throws: Anything; a ``RemoteError`` reaches the caller as it is, another error as the underlying error of
    ///   ``RemoteError/Code/interceptorFailed``.
    func intercept(_ response: inout HTTPAnswer, to request: HTTPRequest) async throws
}

/// An answer with its whole body.
public struct HTTPAnswer: Hashable, Sendable {
    /// Status, fields, and who answered.
    public var head: HTTPHead
    /// The body, unpacked.
    public var body: Data

    /// Makes an answer.
    public init(head: HTTPHead, body: Data = Data()) {
        self.head = head
        self.body = body
    }
}
