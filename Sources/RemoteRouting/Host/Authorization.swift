internal import Foundation

/// How requests say who asks.
///
/// ```swift
/// let tokens = Authorization.bearer(saved) { current, unauthenticated in
///     try await unauthenticated.send(TokenRoute.refresh(token: current.refreshToken))
/// }
/// let api = RemoteHost("api.example.com").authorized(by: tokens)
/// ```
///
/// On a 401 a bearer token is refreshed once, however many requests fail together; each of them is sent once more. A refresh that is
/// refused stays failed until ``RefreshingTokens/replace(by:)`` brings a token that was got otherwise. One that fails on its way (no
/// network, a deadline, 429, 503, or what is transient by its `FailureAdvising`) fails the requests that waited for it, and the 401 of
/// a later request tries again. A 403 never refreshes, nor does the 401 of another origin that a redirect led to.
public struct Authorization: Sendable {
    /// Writes credentials into a request's header, and tells which generation they are.
    let apply: @Sendable (inout HTTPFields) async throws -> Int
    /// Gets the successor of a generation, where there can be one.
    let renew: @Sendable (_ generation: Int, RemoteHost) async throws -> Bool

    /// A name and a password, as RFC 7617 has them.
    ///
    /// - Parameters:
    ///   - user: The name; it must have no colon.
    ///   - password: The password.
    public static func basic(user: String, password: String) -> Authorization {
        custom { fields in
            guard !user.contains(":") else {
                throw RouteFault(.invalidOption, in: "credentials", "a user's name with a colon cannot be sent (RFC 7617 §2)")
            }
            try fields.set("Authorization", "Basic \(Data("\(user):\(password)".utf8).base64EncodedString())")
        }
    }

    /// A token that does not change (RFC 6750).
    public static func bearer(_ token: String) -> Authorization {
        custom { try $0.set("Authorization", "Bearer \(token)") }
    }

    /// Fields of your own, such as an API key.
    ///
    /// - Parameter write: Writes the fields; its error keeps the request from being sent.
    public static func custom(_ write: @escaping @Sendable (inout HTTPFields) async throws -> Void) -> Authorization {
        Authorization(
            apply: { fields in
                try await write(&fields)
                return 0
            },
            renew: { _, _ in false })
    }

    /// A token that can be refreshed.
    ///
    /// - Parameter tokens: The token and how to get the next.
    public static func bearer<Token: BearerToken>(_ tokens: RefreshingTokens<Token>) -> Authorization {
        let keeper = tokens.keeper
        return Authorization(
            apply: { fields in
                let (token, generation) = try await keeper.credential()
                try fields.set("Authorization", "Bearer \(token.accessToken)")
                return generation
            },
            renew: { generation, host in try await keeper.successor(of: generation, at: host) != nil })
    }

    /// A token that can be refreshed.
    ///
    /// - Parameters:
    ///   - token: The token to begin with.
    ///   - onRefresh: Called with each new token, to save it.
    ///   - refresh: Gets a new token in the place of the current one, on the same host without credentials.
    public static func bearer<Token: BearerToken>(
        _ token: Token, onRefresh: @escaping @Sendable (Token) -> Void = { _ in },
        refresh: @escaping @Sendable (_ current: Token, _ unauthenticated: RemoteHost) async throws -> Token
    ) -> Authorization {
        .bearer(RefreshingTokens(token, onRefresh: onRefresh, refresh: refresh))
    }
}

/// What a bearer token is made of.
public protocol BearerToken: Sendable {
    /// What goes into the header.
    var accessToken: String { get }
}

/// A token and how to get the next; the same one may be used by several hosts, and is then refreshed once for all of them.
public struct RefreshingTokens<Token: BearerToken>: Sendable {
    let keeper: CredentialKeeper<Token>

    /// Makes the holder of a token.
    ///
    /// - Parameters:
    ///   - token: The token to begin with.
    ///   - onRefresh: Called with each new token, to save it.
    ///   - refresh: Gets a new token in the place of the current one, on the same host without credentials.
    public init(
        _ token: Token, onRefresh: @escaping @Sendable (Token) -> Void = { _ in },
        refresh: @escaping @Sendable (_ current: Token, _ unauthenticated: RemoteHost) async throws -> Token
    ) {
        keeper = CredentialKeeper(token, onRefresh: onRefresh, refresh: refresh)
    }

    /// The token in use.
    public var current: Token { keeper.current }

    /// Takes a token that was got otherwise, as by signing in; a failed refresh is forgotten.
    public func replace(by token: Token) { keeper.replace(by: token) }
}
