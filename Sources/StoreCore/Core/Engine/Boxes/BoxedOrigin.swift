/// The engine's request for content and pages from its origin.
///
/// A closure instead of a protocol: it is compiled in the module that creates the store and knows all types.
@usableFromInline
typealias Respond = @Sendable (_ request: OriginRequest<BoxedKey>) async throws -> Fetched<BoxedContent>

extension Origin {
    /// The engine's view of the origin.
    @inlinable
    func boxed() -> Respond {
        // A single call of the origin: any further code here would enlarge the frame of each fetch.
        { request in Fetched(try await respond(to: request.unboxed())) { BoxedContent($0) } }
    }
}

/// The store's question to its origin about a saved version.
@usableFromInline
typealias Accept<Param> = @Sendable (_ validator: Validator, _ param: Param) async -> Bool

extension Origin {
    /// The cacher's view of the origin.
    @inlinable
    func acceptance() -> Accept<Param> {
        { validator, param in await accepts(validator, param: param) }
    }
}

extension OriginRequest<BoxedKey> {
    @inlinable
    func unboxed<Value>() -> OriginRequest<Value> {
        switch self {
        case .content(let key, let validator): .content(key.value(as: Value.self), revalidating: validator)
        case .page(let direction, let page, let key): .page(direction, key: page, key.value(as: Value.self))
        }
    }
}

extension ListRules where Content: Sendable {
    /// The engine's view of the rules.
    @inlinable
    func boxed() -> ListRules<BoxedContent> {
        ListRules<BoxedContent>(
            merge: { list, page, direction, index in
                var replaced: Content?
                list.change(as: Content.self) { replaced = merge(&$0, page.value(as: Content.self), direction, &index) }
                return replaced.map { BoxedContent($0) }
            },
            count: { count($0.value(as: Content.self)) },
            resize: { sizes, old, new in resize(sizes, old.value(as: Content.self), new.value(as: Content.self)) },
            drop: { list, number, direction in
                var dropped: Content?
                list.change(as: Content.self) { dropped = drop(&$0, number, direction) }
                return dropped.map { BoxedContent($0) }
            },
            isTwoWay: isTwoWay, window: window)
    }
}
