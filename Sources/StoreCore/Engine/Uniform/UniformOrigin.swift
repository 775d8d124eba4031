/// How an engine asks its origin.
///
/// A closure and not a protocol, as for the memory in front: it is compiled in the module that makes the store and knows all types.
@usableFromInline
typealias Respond<Param: Hashable & Sendable, Content: Sendable> =
    @Sendable (_ request: OriginRequest<Param>) async throws -> Fetched<Content>

extension Uniform {
    /// A user's origin as the engine sees it.
    @inlinable
    static func respond<Param, Value>(_ origin: some Origin<Param, Value>) -> Respond<Key, Content> {
        // One call of the origin, and all else in functions of its own: what is made here stands in the frame of each fetch.
        { request in Fetched(try await origin.respond(to: typed(request))) { Content($0) } }
    }

    @inlinable
    static func typed<Param>(_ request: OriginRequest<Key>) -> OriginRequest<Param> {
        switch request {
        case .content(let key, let validator): .content(key.value(as: Param.self), revalidating: validator)
        case .page(let direction, let page, let key): .page(direction, key: page, key.value(as: Param.self))
        }
    }

    /// A user's list as the engine sees it.
    @inlinable
    static func list<Value: Sendable>(_ rules: ListRules<Value>) -> ListRules<Content> {
        ListRules(
            merge: { list, page, direction, index in
                var replaced: Value?
                list.change(as: Value.self) { replaced = rules.merge(&$0, page.value(as: Value.self), direction, &index) }
                return replaced.map { Content($0) }
            },
            count: { rules.count($0.value(as: Value.self)) },
            resize: { sizes, old, new in rules.resize(sizes, old.value(as: Value.self), new.value(as: Value.self)) },
            isTwoWay: rules.isTwoWay)
    }
}
