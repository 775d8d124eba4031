/// A store of lists that are fetched page by page, forwards and, with a `TwoWayPaginationFetcher`, backwards.
///
/// ```swift
/// let repos = PaginationStore(cacher: MemoryCacher<String, [Repo]>(), fetcher: RepoFetcher())
///
/// for await state in repos["apple"].publish() { render(state) }
/// await repos["apple"].requestNextData()
/// ```
///
/// All that is said of ``Store`` holds here too; the content of a key is the list as far as it is loaded.
public final class PaginationStore<Param: Hashable & Sendable, Element: Sendable>: Sendable {
    @usableFromInline let lists: Store<Param, [Element]>

    /// Makes a store.
    ///
    /// - Parameters:
    ///   - cacher: Where lists are kept, with the keys of their next pages; give each store one of its own.
    ///   - fetcher: Where pages come from; with a one-way fetcher there is never a previous page.
    ///   - identity: What makes two elements the same, so that one that comes again replaces the one that is there.
    ///   - policy: What the store does of its own accord.
    ///   - time: Where time comes from; a test gives a ``ManualTime``.
    ///   - scope: A group of stores that are cleared together.
    ///   - onEvent: Gets everything that happens, outside all locks; it must be quick.
    @inlinable
    public convenience init(
        cacher: some Cacher<Param, [Element]>, fetcher: some PaginationFetcher<Param, Element>,
        identity: ElementIdentity<Element> = .automatic, policy: StorePolicy = .default, time: some TimeSource = .system,
        scope: CacheScope? = nil, onEvent: (@Sendable (_ event: StoreEvent<Param>) -> Void)? = nil
    ) {
        self.init(of: cacher, fetcher, identity: identity, policy: policy, time: time, scope: scope, onEvent: onEvent)
    }

    /// Makes a store of elements that are known by their `id`.
    ///
    /// As the other one, for the same arguments; that the compiler sees here what elements are makes putting pages together faster.
    ///
    /// - Parameters:
    ///   - cacher: Where lists are kept, with the keys of their next pages; give each store one of its own.
    ///   - fetcher: Where pages come from; with a one-way fetcher there is never a previous page.
    ///   - identity: What makes two elements the same, so that one that comes again replaces the one that is there.
    ///   - policy: What the store does of its own accord.
    ///   - time: Where time comes from; a test gives a ``ManualTime``.
    ///   - scope: A group of stores that are cleared together.
    ///   - onEvent: Gets everything that happens, outside all locks; it must be quick.
    @inlinable
    public convenience init(
        cacher: some Cacher<Param, [Element]>, fetcher: some PaginationFetcher<Param, Element>,
        identity: ElementIdentity<Element> = .id, policy: StorePolicy = .default, time: some TimeSource = .system,
        scope: CacheScope? = nil, onEvent: (@Sendable (_ event: StoreEvent<Param>) -> Void)? = nil
    ) where Element: Identifiable, Element: SendableMetatype {
        self.init(of: cacher, fetcher, identity: identity, policy: policy, time: time, scope: scope, onEvent: onEvent)
    }

    @inlinable
    init(
        of cacher: some Cacher<Param, [Element]>, _ fetcher: some PaginationFetcher<Param, Element>, identity: ElementIdentity<Element>,
        policy: StorePolicy, time: some TimeSource, scope: CacheScope?, onEvent: (@Sendable (_ event: StoreEvent<Param>) -> Void)?
    ) {
        lists = Store(
            cacher: cacher, respond: fetcher.boxed(), policy: policy, time: time, scope: scope,
            list: identity.rules(isTwoWay: fetcher is any TwoWayPaginationFetcher).boxed(), onEvent: onEvent)
    }

    /// The handle on one list; it is the key and one reference, free to make and to throw away.
    @inlinable
    public subscript(param: Param) -> PaginationStoreFlowable<Param, Element> {
        PaginationStoreFlowable(list: lists[param])
    }

    /// Fetches the first pages of lists in the background for later use, a few at a time; returns at once.
    ///
    /// The rules are those of ``Store/prefetch(_:)``.
    ///
    /// - Parameter params: The keys of the lists.
    /// - Returns: A handle that cancels the lists that still wait.
    @inlinable
    @discardableResult
    public func prefetch(_ params: some Sequence<Param>) -> Prefetching {
        lists.prefetch(params)
    }

    /// Says of all lists that fit that they are out of date; those that are wanted are fetched at once.
    ///
    /// - Parameter fits: Whether a key is meant; called outside all locks.
    /// - Throws: ``StoreError/Code/cannotEnumerate`` where the cacher cannot list its keys; live keys are invalidated all the same.
    public func invalidate(where fits: @Sendable (_ param: Param) -> Bool) async throws {
        try await lists.invalidate(where: fits)
    }

    /// Forgets all lists, in memory and in the cacher; those that are wanted are fetched anew.
    ///
    /// - Throws: ``StoreError/Code/cacherFailed`` where the cacher could not remove its records.
    public func clear() async throws {
        try await lists.clear()
    }

    /// Waits until the cacher has everything that was accepted before: for a program that is about to end.
    ///
    /// See ``Store/waitUntilSaved()``.
    ///
    /// - Throws: ``StoreError/Code/cacherFailed`` where the cacher failed; `CancellationError`.
    public func waitUntilSaved() async throws {
        try await lists.waitUntilSaved()
    }

    /// Fetches observed lists at each element of a sequence, as a plain store does.
    ///
    /// See ``Store/revalidate(on:)``.
    ///
    /// - Parameter trigger: The sequence; what its elements are does not matter.
    /// - Returns: What ends the trigger before its time.
    @discardableResult
    public func revalidate(on trigger: some AsyncSequence & Sendable) -> RevalidationTrigger {
        lists.revalidate(on: trigger)
    }
}

extension PaginationStore where Param == UnitParam {
    /// The handle on the only list.
    @inlinable
    public var flowable: PaginationStoreFlowable<UnitParam, Element> { self[UnitParam()] }
}
