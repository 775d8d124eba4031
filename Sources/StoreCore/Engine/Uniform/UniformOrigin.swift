extension Uniform {
    /// A user's origin as the engine sees it.
    struct Origin<Param: Hashable & Sendable, Value: Sendable>: StoreCore.Origin {
        let origin: any StoreCore.Origin<Param, Value>

        func respond(to request: OriginRequest<Key>) async throws -> OriginResponse<Content> {
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
    static func merge<Value: Sendable>(_ merge: PageMerge<Value>?) -> PageMerge<Content>? {
        guard let merge else { return nil }
        return { list, page, direction, index in
            var replaced: Value?
            list.change(as: Value.self) { replaced = merge(&$0, page.value(as: Value.self), direction, &index) }
            return replaced.map { Content($0) }
        }
    }
}
