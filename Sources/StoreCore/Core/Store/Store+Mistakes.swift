// Declarations that exist only for their messages: the compiler chooses them for calls that are mistakes, and names the remedy. The
// documentation does not show them.
// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

@_documentation(visibility: internal)
extension Store {
    @available(
        *, unavailable,
        message: "pass the closure after the parentheses, Store(cacher: …) { key in … }, or a value of a type that conforms to Fetcher"
    )
    public convenience init(
        cacher: some Cacher<Param, Content>, fetcher: @escaping @Sendable (_ param: Param) async throws -> Content,
        policy: StorePolicy = .default, time: some TimeSource = .system, scope: CacheScope? = nil, name: String = ""
    ) { fatalError() }

    @available(*, unavailable, message: "content belongs to a key: store[key].publish()")
    public func publish(forceRefresh: Bool = false) -> LoadingStateSequence<Content> { fatalError() }

    @available(*, unavailable, message: "content belongs to a key: store[key].requireData()")
    public func requireData() async throws -> Content { fatalError() }

    @available(*, unavailable, message: "content belongs to a key: store[key].getData()")
    public func getData() async -> Content? { fatalError() }

    @available(*, unavailable, message: "content belongs to a key: store[key].update(content)")
    public func update(_ content: Content) async { fatalError() }
}

@_documentation(visibility: internal)
extension Store where Param == UnitParam {
    @available(*, unavailable, message: "the only key has a handle: store.flowable.publish()")
    public func publish(forceRefresh: Bool = false) -> LoadingStateSequence<Content> { fatalError() }

    @available(*, unavailable, message: "the only key has a handle: store.flowable.requireData()")
    public func requireData() async throws -> Content { fatalError() }

    @available(*, unavailable, message: "the only key has a handle: store.flowable.getData()")
    public func getData() async -> Content? { fatalError() }

    @available(*, unavailable, message: "the only key has a handle: store.flowable.update(content)")
    public func update(_ content: Content) async { fatalError() }
}

@_documentation(visibility: internal)
extension PaginationStore {
    @available(
        *, unavailable,
        message: "pass PaginationClosureFetcher { key, nextKey in … }, or a value of a type that conforms to PaginationFetcher"
    )
    public convenience init(
        cacher: some Cacher<Param, [Element]>,
        fetcher: @escaping @Sendable (_ param: Param, _ nextKey: String?) async throws -> Page<Element>,
        policy: StorePolicy = .default, time: some TimeSource = .system, scope: CacheScope? = nil, name: String = ""
    ) { fatalError() }

    @available(*, unavailable, message: "a list belongs to a key: store[key].publish()")
    public func publish(forceRefresh: Bool = false) -> LoadingStateSequence<[Element]> { fatalError() }

    @available(*, unavailable, message: "a list belongs to a key: store[key].requireData()")
    public func requireData() async throws -> [Element] { fatalError() }
}

@_documentation(visibility: internal)
extension PaginationStore where Param == UnitParam {
    @available(*, unavailable, message: "the only list has a handle: store.flowable.publish()")
    public func publish(forceRefresh: Bool = false) -> LoadingStateSequence<[Element]> { fatalError() }

    @available(*, unavailable, message: "the only list has a handle: store.flowable.requireData()")
    public func requireData() async throws -> [Element] { fatalError() }
}

@_documentation(visibility: internal)
extension Store where Content == Void {
    // Deprecated, because the compiler prefers an available initializer to an unavailable one.
    @available(
        *, deprecated,
        message: "the closure returns no content; name the type of a response that it sends for: let user: User = try await api.send(…)"
    )
    @inlinable
    public convenience init(
        cacher: some Cacher<Param, Void>, policy: StorePolicy = .default, time: some TimeSource = .system,
        scope: CacheScope? = nil, name: String = "", onEvent: (@Sendable (_ event: StoreEvent<Param>) -> Void)? = nil,
        fetch: @escaping @Sendable (_ param: Param) async throws -> Void
    ) {
        self.init(
            cacher: cacher, fetcher: ClosureFetcher(fetch), policy: policy, time: time, scope: scope, name: name, onEvent: onEvent)
    }
}

@_documentation(visibility: internal)
extension StoreFlowable {
    @available(
        *, unavailable,
        message: "a mutation needs the request that changes the origin: mutate { … } perform: { … }; for a local change, call update { … }"
    )
    public func mutate(optimistically patch: @escaping @Sendable (_ content: inout Content) -> Void) async throws { fatalError() }
}

@_documentation(visibility: internal)
extension PaginationStoreFlowable {
    @available(
        *, unavailable,
        message: "a mutation needs the request that changes the origin: mutate { … } perform: { … }; for a local change, call update { … }"
    )
    public func mutate(optimistically patch: @escaping @Sendable (_ elements: inout [Element]) -> Void) async throws { fatalError() }
}

@_documentation(visibility: internal)
@available(*, unavailable, message: "an expiry needs a unit: .after(.seconds(60))")
extension Expiry: ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral {
    public init(integerLiteral value: Int) { fatalError() }
    public init(floatLiteral value: Double) { fatalError() }
}
