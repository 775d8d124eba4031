/// How an engine asks its origin.
///
/// A closure and not a protocol, as for the memory in front: it is compiled in the module that makes the store and knows all types.
@usableFromInline
typealias Respond<Param: Hashable & Sendable, Content: Sendable> =
    @Sendable (_ request: OriginRequest<Param>) async throws -> OriginResponse<Content>

extension Uniform {
    /// A user's origin as the engine sees it.
    @inlinable
    static func respond<Param, Value>(_ origin: some Origin<Param, Value>) -> Respond<Key, Content> {
        { request in
            let response =
                switch request {
                case .content(let key, let validator):
                    try await origin.respond(to: .content(key.value(as: Param.self), revalidating: validator))
                case .page(let direction, let page, let key):
                    try await origin.respond(to: .page(direction, key: page, key.value(as: Param.self)))
                }
            let result: FetchResult<Content> =
                switch response.result {
                case .modified(let value, let freshness, let validator): .modified(Content(value), freshness, validator)
                case .notModified(let freshness): .notModified(freshness)
                }
            return OriginResponse(result, nextKey: response.nextKey, prevKey: response.prevKey)
        }
    }

    /// A user's way to put pages together as the engine sees it.
    @inlinable
    static func merge<Value: Sendable>(_ merge: @escaping PageMerge<Value>) -> PageMerge<Content> {
        { list, page, direction, index in
            var replaced: Value?
            list.change(as: Value.self) { replaced = merge(&$0, page.value(as: Value.self), direction, &index) }
            return replaced.map { Content($0) }
        }
    }
}
