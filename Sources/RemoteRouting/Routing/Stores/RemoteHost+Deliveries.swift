public import RemoteHTTP
internal import StoreCore
public import StoreOutbox

extension RemoteHost {
    /// Creates the `perform` of an outbox's command: a route that is sent under the command's identity.
    ///
    /// ```swift
    /// await outbox.register(
    ///     Like.self, patching: posts, at: \.post,
    ///     patch: { _, post in post.isLiked = true },
    ///     perform: api.delivery { Blog.like($0.post) })
    /// ```
    ///
    /// The identity is the `Idempotency-Key` of every attempt, so a server that honors the key performs the command once. The body of a
    /// successful response is ignored. The outbox makes all attempts: the host's ``retry`` does not apply, so that `Retry-After` and the
    /// delays between attempts survive a restart. The article on errors and retries lists the failures that are permanent.
    ///
    /// - Parameters:
    ///   - route: Returns the route of a command.
    ///   - explaining: Returns the text of a failure, which the outbox keeps as the last error of the command; `nil` for the description of
    ///     the error. By default always `nil`, because texts of a server may be secrets.
    /// - Returns: A closure that throws ``RemoteError``. Canceling its task ends the exchange on the wire.
    public func delivery<Value: Command>(
        _ route: @escaping @Sendable (_ command: Value) -> some Routable,
        explaining: @escaping @Sendable (_ failure: RemoteError) -> String? = { _ in nil }
    ) -> @Sendable (_ command: Value, _ delivery: Delivery) async throws -> Void {
        { [host = withoutRetries] command, delivery in
            try await host.explained(explaining) { try await host.send(route(command), idempotencyKey: delivery.id) }
        }
    }

    /// Creates the `perform` of an outbox's command: a route that is sent under the command's identity, and a decoded response.
    ///
    /// ```swift
    /// await outbox.register(
    ///     Like.self, patching: posts, at: \.post,
    ///     patch: { _, post in post.isLiked = true },
    ///     perform: api.delivery(returning: Post.self) { Blog.like($0.post) })
    /// ```
    ///
    /// If the outbox patches a store of this type, the response replaces the content and the patch. A response that cannot be decoded is a
    /// permanent failure, although the server has performed the command.
    ///
    /// - Parameters:
    ///   - type: The type to decode.
    ///   - route: Returns the route of a command.
    ///   - explaining: Returns the text of a failure; by default `nil`, for the description of the error.
    /// - Returns: A closure that throws ``RemoteError``. Canceling its task ends the exchange on the wire.
    public func delivery<Value: Command, Content: Decodable & Sendable & SendableMetatype>(
        returning type: Content.Type, _ route: @escaping @Sendable (_ command: Value) -> some Routable,
        explaining: @escaping @Sendable (_ failure: RemoteError) -> String? = { _ in nil }
    ) -> @Sendable (_ command: Value, _ delivery: Delivery) async throws -> Content {
        { [host = withoutRetries] command, delivery in
            try await host.explained(explaining) { try await host.send(route(command), idempotencyKey: delivery.id, as: type) }
        }
    }

    /// Creates the `perform` of a command that creates an entity: the response contains the entity with its key.
    ///
    /// ```swift
    /// await outbox.register(
    ///     CreatePost.self, creating: posts, at: \.id,
    ///     content: { Post(id: $0.id) },
    ///     perform: api.delivery(creating: Post.self, key: \.id) { _ in
    ///         Blog.newPost
    ///     })
    /// ```
    ///
    /// - Parameters:
    ///   - type: The type of the entity.
    ///   - key: Returns the key that the server has assigned.
    ///   - route: Returns the route of a command.
    ///   - explaining: Returns the text of a failure; by default `nil`, for the description of the error.
    /// - Returns: A closure that throws ``RemoteError``. Canceling its task ends the exchange on the wire.
    public func delivery<Value: Command, Key: Hashable & Sendable, Content: Decodable & Sendable & SendableMetatype>(
        creating type: Content.Type, key: @escaping @Sendable (_ entity: Content) -> Key,
        _ route: @escaping @Sendable (_ command: Value) -> some Routable,
        explaining: @escaping @Sendable (_ failure: RemoteError) -> String? = { _ in nil }
    ) -> @Sendable (_ command: Value, _ delivery: Delivery) async throws -> Created<Key, Content> {
        let perform = delivery(returning: type, route, explaining: explaining)
        return { command, delivery in
            let entity = try await perform(command, delivery)
            return Created(key(entity), content: entity)
        }
    }

    /// The same host without retries, because the outbox or the store makes all attempts.
    var withoutRetries: RemoteHost { with { $0.retry = .never } }

    private func explained<Result: Sendable>(
        _ explaining: (RemoteError) -> String?, _ send: () async throws -> Result
    ) async throws -> Result {
        do {
            return try await send()
        } catch var error as RemoteError {
            error.explanation = explaining(error)
            throw error
        }
    }
}
