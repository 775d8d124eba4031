internal import Foundation
public import RemoteHTTP
public import StoreCore

/// The credentials that requests carry.
///
/// ```swift
/// let tokens = Authorization.bearer(saved) { current, unauthenticated in
///     try await unauthenticated.send(
///         TokenRoute.refresh(token: current.refreshToken))
/// }
/// let api = RemoteHost("api.example.com").authorized(by: tokens)
/// ```
///
/// On a 401, a bearer token is refreshed once for all requests that failed with it. Each of these requests is then sent once more.
///
/// A refused refresh stays failed until ``RefreshingTokens/replace(by:)`` or ``RefreshingTokens/keep(_:)`` supplies a new token. A transient
/// failure fails only the requests that waited for the refresh; a later 401 tries again. Failed connections, refused certificates, deadlines,
/// 429, failures of the server (500 to 599 except 501 and 505) or of a shared place, 403 and 413 with `Retry-After`, and errors that are
/// transient by `FailureAdvising` count as transient.
///
/// A 403 never starts a refresh. Neither does a 401 of another origin that a redirect led to.
///
/// <doc:Authorizing> explains refreshes, sign-in and sign-out.
public struct Authorization: Sendable {
    /// Writes credentials into a request's header and returns their generation. Without `waits`, the last token is written, even if its
    /// refresh is running or was refused.
    let apply: @Sendable (inout HTTPFields, _ waits: Bool) async throws -> Int
    let renew: @Sendable (_ generation: Int, RemoteHost) async throws -> Renewal

    enum Renewal: Sendable {
        case impossible
        case refreshed
        /// Another process has saved the successor. It may be old, so the server may reject it as well.
        case taken
    }

    /// A name and a password (RFC 7617).
    ///
    /// - Parameters:
    ///   - user: The name, without a colon.
    ///   - password: The password.
    public static func basic(user: String, password: String) -> Authorization {
        custom { fields in
            guard !user.utf8.contains(UInt8(ascii: ":")) else {
                throw RouteFault(.invalidOption, in: "credentials", "a name with a colon cannot be sent (RFC 7617 §2); use another user")
            }
            try fields.set("Authorization", "Basic \(Data("\(user):\(password)".utf8).base64EncodedString())")
        }
    }

    /// A token that does not change (RFC 6750).
    public static func bearer(_ token: String) -> Authorization {
        custom { try $0.set("Authorization", "Bearer \(token)") }
    }

    /// Header fields of your own, such as an API key.
    ///
    /// - Parameter write: Writes the fields. If it throws, the request is not sent.
    public static func custom(_ write: @escaping @Sendable (inout HTTPFields) async throws -> Void) -> Authorization {
        Authorization(
            apply: { fields, _ in
                try await write(&fields)
                return 0
            },
            renew: { _, _ in .impossible })
    }

    /// A token that can be refreshed.
    ///
    /// - Parameter tokens: The token and the closure that refreshes it.
    public static func bearer<Token: BearerToken>(_ tokens: RefreshingTokens<Token>) -> Authorization {
        let keeper = tokens.keeper
        return Authorization(
            apply: { fields, waits in
                let (token, generation) = waits ? try await keeper.credential() : (keeper.current, 0)
                try fields.set("Authorization", "Bearer \(token.accessToken)")
                return generation
            },
            renew: { generation, host in
                let (_, next) = try await keeper.successor(of: generation, at: host)
                return keeper.isTaken(next) ? .taken : .refreshed
            })
    }

    /// A token that can be refreshed.
    ///
    /// - Parameters:
    ///   - token: The initial token.
    ///   - scope: A group of stores. Closing it ends the use of the token; see ``RefreshingTokens``.
    ///   - onRefresh: Called with each new token, to save it.
    ///   - refresh: Fetches a successor of the current token, through the same host without credentials.
    public static func bearer<Token: BearerToken>(
        _ token: Token, scope: CacheScope? = nil, onRefresh: @escaping @Sendable (Token) -> Void = { _ in },
        refresh: @escaping @Sendable (_ current: Token, _ unauthenticated: RemoteHost) async throws -> Token
    ) -> Authorization {
        .bearer(RefreshingTokens(token, scope: scope, onRefresh: onRefresh, refresh: refresh))
    }
}

/// A token that requests carry as `Authorization: Bearer`.
///
/// <doc:Authorizing> shows such a type.
public protocol BearerToken: Sendable {
    /// The token as it appears in the header.
    var accessToken: String { get }
}

/// A token that can be refreshed; hosts that share it also share its refreshes.
///
/// With a `CacheScope`, a refresh ends with the scope:
///
/// - `close()` cancels a running refresh, drops its result, and returns when the refresh has ended. Each later request fails with
///   ``RemoteError/Code/refreshFailed`` and the underlying error `StoreError.Code.closed`. A command of an outbox then stays pending.
/// - `close(clearing: true)` also removes the token from the place that processes share.
/// - `clear()` drops the result of a running refresh. Requests that wait for it fail as if it had been canceled. The token stays in use
///   until ``replace(by:)`` or ``keep(_:)``.
///
/// A refresh may call `close()` itself. The call then does not wait for that refresh.
///
/// <doc:Authorizing> shows how to refresh, replace and share tokens.
public struct RefreshingTokens<Token: BearerToken>: Sendable {
    let keeper: CredentialKeeper<Token>

    /// Creates the holder of a token.
    ///
    /// - Parameters:
    ///   - token: The initial token.
    ///   - scope: A group of stores. Closing it ends the use of the token.
    ///   - onRefresh: Called with each new token, to save it.
    ///   - refresh: Fetches a successor of the current token, through the same host without credentials.
    public init(
        _ token: Token, scope: CacheScope? = nil, onRefresh: @escaping @Sendable (Token) -> Void = { _ in },
        refresh: @escaping @Sendable (_ current: Token, _ unauthenticated: RemoteHost) async throws -> Token
    ) {
        keeper = CredentialKeeper(token, scope: scope, onRefresh: onRefresh, refresh: refresh)
    }

    /// Creates the holder of a token that several processes share, such as an app and its extensions.
    ///
    /// ```swift
    /// let tokens = RefreshingTokens(
    ///     saved,
    ///     keptIn: FileCacher(directory: sharedDirectory, sharing: .processes)
    /// ) { current, unauthenticated in
    ///     try await unauthenticated.send(
    ///         "/tokens", method: .post,
    ///         parameters: ["refresh": current.refreshToken])
    /// }
    /// ```
    ///
    /// After a 401, one process refreshes the token under a lease. The others wait, read the place again, and use its token. A token
    /// that was rotated is therefore never refreshed twice. The first request reads the place; its token takes precedence over `token`.
    ///
    /// - Parameters:
    ///   - token: The token until the place has one.
    ///   - place: The shared place; each process has a cacher of its own. Tokens are secrets, so restrict access to the place.
    ///   - name: The name of the token in the place.
    ///   - leaseDuration: The time after which another process may refresh if this one has not finished; longer than a refresh takes.
    ///   - scope: A group of stores. Closing it ends the use of the token.
    ///   - refresh: Fetches a successor of the current token, through the same host without credentials.
    public init(
        _ token: Token, keptIn place: some SharedCacher<String, Token>, as name: String = "token", leaseDuration: Duration = .seconds(180),
        scope: CacheScope? = nil,
        refresh: @escaping @Sendable (_ current: Token, _ unauthenticated: RemoteHost) async throws -> Token
    ) {
        let place = CredentialPlace(cacher: place, name: name, leaseDuration: leaseDuration) { $0.accessToken == $1.accessToken }
        keeper = CredentialKeeper(token, in: place, scope: scope, onRefresh: { _ in }, refresh: refresh)
    }

    /// The token in use: the initial one, or the last that replaced it.
    public var current: Token { keeper.current }

    /// Replaces the token, for example after the user signs in, and clears a failed refresh. Does nothing if the scope is closed.
    ///
    /// A token that several processes share is replaced in this process only, which then refreshes the new one alone; call ``keep(_:)`` for
    /// all of them.
    public func replace(by token: Token) { keeper.replace(by: token) }

    /// Replaces the token after the user signs in, and saves it in the shared place.
    ///
    /// The other processes read it after their next 401, or at their next request after a refused refresh. A refresh for the former user is canceled, and saves nothing.
    ///
    /// - Throws: Any error of the place; this process has the new token even then. `StoreError.Code.closed` if the scope is closed.
    public func keep(_ token: Token) async throws { try await keeper.keep(token) }
}
