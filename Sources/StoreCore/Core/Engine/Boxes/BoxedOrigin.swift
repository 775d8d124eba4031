/// The engine's request for content and pages from its origin.
///
/// A closure instead of a protocol: it is compiled in the module that creates the store and knows all types.
@usableFromInline
typealias Respond = @Sendable (_ request: OriginRequest<BoxedKey>) async throws -> Fetched<BoxedContent>

extension Origin {
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

/// The engine's connection to an origin that pushes: runs until the stream ends, or until `accept` returns `false`.
///
/// The next value is taken after `accept` has returned, so no buffer lies between the origin and the engine (L7).
@usableFromInline
typealias Follow =
    @Sendable (
        _ key: BoxedKey, _ last: Validator?, _ accept: @escaping @Sendable (LiveValue<BoxedContent>) -> Bool
    ) async throws -> Void

extension Origin {
    /// The engine's view of the origin's streams; `nil` if the origin does not push.
    ///
    /// Found at run time, so that generic code that knows only an `Origin` does not lose them.
    @inlinable
    func boxedStreams() -> Follow? {
        (self as? any LiveFetcher<Param, Content>)?.boxedValues()
    }
}

extension LiveFetcher {
    @inlinable
    func boxedValues() -> Follow {
        { key, last, accept in
            for try await value in values(param: key.value(as: Param.self), after: last) {
                guard accept(value.live.boxed()) else { return }
            }
        }
    }
}

extension LiveValue {
    @inlinable
    func boxed() -> LiveValue<BoxedContent> {
        switch self {
        case .content(let content, let validator): .content(BoxedContent(content), validator)
        case .change(let change, let validator): .change({ $0.change(as: Content.self) { change(&$0) } }, validator)
        case .current: .current
        }
    }
}
