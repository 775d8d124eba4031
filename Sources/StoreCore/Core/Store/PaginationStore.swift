/// A store of lists that are fetched page by page: forward and, with a `TwoWayPaginationFetcher`, backward.
///
/// ```swift
/// let repos = PaginationStore(
///     cacher: MemoryCacher<String, [Repo]>(), fetcher: RepoFetcher())
///
/// for await state in repos["apple"].publish() { render(state) }
/// await repos["apple"].requestNextData()
/// ```
///
/// The rules of ``Store`` apply here too. The content of a key is the part of the list that is loaded.
///
/// <doc:Paginating> explains pages, repeated elements and refreshing.
public final class PaginationStore<Param: Hashable & Sendable, Element: Sendable>: Sendable {
    @usableFromInline package let lists: Store<Param, [Element]>

    /// Creates a store of lists from a cacher and a fetcher.
    ///
    /// - Parameters:
    ///   - cacher: The storage for lists and their page keys; give each store its own cacher.
    ///   - fetcher: The source of pages; with a one-way fetcher there is never a previous page.
    ///   - identity: The rule that decides when a new element replaces an older one.
    ///   - links: The places at which the content shows entities of other stores; see ``EntityLink``.
    ///   - policy: The rules for retries, intervals and other automatic behavior.
    ///   - time: The source of time; tests pass a ``ManualTime``.
    ///   - scope: A group of stores that are cleared together.
    ///   - name: The name of the store in its events, and on disk for the lanes of an ``Outbox``; never change it.
    ///   - onEvent: Receives every event, outside all locks; it must return quickly.
    @inlinable
    public convenience init(
        cacher: some Cacher<Param, [Element]>, fetcher: some PaginationFetcher<Param, Element>,
        links: [EntityLink<[Element]>] = [], identity: ElementIdentity<Element> = .automatic, policy: StorePolicy = .default,
        time: some TimeSource = .system,
        scope: CacheScope? = nil, name: String = "", onEvent: (@Sendable (_ event: StoreEvent<Param>) -> Void)? = nil
    ) {
        self.init(
            of: cacher, fetcher, links: links, identity: identity, policy: policy, time: time, scope: scope, name: name, onEvent: onEvent)
    }

    /// Creates a store of elements that are identified by their `id`.
    ///
    /// This initializer differs from the other one only in speed: the compiler knows the element type here, so merging pages is faster.
    ///
    /// - Parameters:
    ///   - cacher: The storage for lists and their page keys; give each store its own cacher.
    ///   - fetcher: The source of pages; with a one-way fetcher there is never a previous page.
    ///   - identity: The rule that decides when a new element replaces an older one.
    ///   - links: The places at which the content shows entities of other stores; see ``EntityLink``.
    ///   - policy: The rules for retries, intervals and other automatic behavior.
    ///   - time: The source of time; tests pass a ``ManualTime``.
    ///   - scope: A group of stores that are cleared together.
    ///   - name: The name of the store in its events, and on disk for the lanes of an ``Outbox``; never change it.
    ///   - onEvent: Receives every event, outside all locks; it must return quickly.
    @inlinable
    public convenience init(
        cacher: some Cacher<Param, [Element]>, fetcher: some PaginationFetcher<Param, Element>,
        links: [EntityLink<[Element]>] = [], identity: ElementIdentity<Element> = .id, policy: StorePolicy = .default,
        time: some TimeSource = .system,
        scope: CacheScope? = nil, name: String = "", onEvent: (@Sendable (_ event: StoreEvent<Param>) -> Void)? = nil
    ) where Element: Identifiable, Element: SendableMetatype {
        self.init(
            of: cacher, fetcher, links: links, identity: identity, policy: policy, time: time, scope: scope, name: name, onEvent: onEvent)
    }

    /// Creates a store of two-way lists that hold a limited number of pages.
    ///
    /// A one-way list cannot have a window, because its dropped pages could not be requested again.
    ///
    /// - Parameters:
    ///   - cacher: The storage for lists and their page keys; give each store its own cacher.
    ///   - fetcher: The source of pages. Each page needs the key of the page before it and of the page after it.
    ///   - paging: The window: the number of pages that a list holds.
    ///   - identity: The rule that decides when a new element replaces an older one.
    ///   - links: The places at which the content shows entities of other stores; see ``EntityLink``.
    ///   - policy: The rules for retries, intervals and other automatic behavior.
    ///   - time: The source of time; tests pass a ``ManualTime``.
    ///   - scope: A group of stores that are cleared together.
    ///   - name: The name of the store in its events, and on disk for the lanes of an ``Outbox``; never change it.
    ///   - onEvent: Receives every event, outside all locks; it must return quickly.
    @inlinable
    public convenience init(
        cacher: some Cacher<Param, [Element]>, fetcher: some TwoWayPaginationFetcher<Param, Element>, paging: PagingPolicy,
        links: [EntityLink<[Element]>] = [], identity: ElementIdentity<Element> = .automatic, policy: StorePolicy = .default,
        time: some TimeSource = .system,
        scope: CacheScope? = nil, name: String = "", onEvent: (@Sendable (_ event: StoreEvent<Param>) -> Void)? = nil
    ) {
        self.init(
            of: cacher, fetcher, paging: paging, links: links, identity: identity, policy: policy, time: time, scope: scope, name: name,
            onEvent: onEvent)
    }

    @inlinable
    init(
        of cacher: some Cacher<Param, [Element]>, _ fetcher: some PaginationFetcher<Param, Element>, paging: PagingPolicy? = nil,
        links: [EntityLink<[Element]>], identity: ElementIdentity<Element>, policy: StorePolicy, time: some TimeSource, scope: CacheScope?,
        name: String, onEvent: (@Sendable (_ event: StoreEvent<Param>) -> Void)?
    ) {
        lists = Store(
            cacher: cacher, respond: fetcher.boxed(), accept: fetcher.acceptance(), links: links, policy: policy, time: time, scope: scope,
            list: identity.rules(isTwoWay: fetcher is any TwoWayPaginationFetcher, paging: paging).boxed(), name: name,
            onEvent: onEvent)
    }

    /// The handle on one list. It holds the key and one reference, so it costs nothing to create or discard.
    @inlinable
    public subscript(param: Param) -> PaginationStoreFlowable<Param, Element> {
        PaginationStoreFlowable(list: lists[param])
    }

    /// Fetches the first pages of lists in the background, a few at a time; returns at once.
    ///
    /// The rules of ``Store/prefetch(_:)`` apply.
    ///
    /// - Parameter params: The keys of the lists.
    /// - Returns: A handle that cancels the lists still in the queue.
    @inlinable
    @discardableResult
    public func prefetch(_ params: some Sequence<Param>) -> Prefetching {
        lists.prefetch(params)
    }

    /// Marks all matching lists as out of date; wanted lists are fetched at once.
    ///
    /// - Parameter fits: Returns whether a key matches; called outside all locks.
    /// - Throws: ``StoreError/Code/cannotEnumerate`` if the cacher cannot list its keys, and the other errors of
    ///   ``Store/invalidate(where:)``; live keys are invalidated even then.
    public func invalidate(where fits: @Sendable (_ param: Param) -> Bool) async throws {
        try await lists.invalidate(where: fits)
    }

    /// Removes all lists from memory and from the cacher; wanted lists are fetched again.
    ///
    /// - Throws: ``StoreError/Code/cacherFailed`` if the cacher could not remove its records.
    public func clear() async throws {
        try await lists.clear()
    }

    /// Waits until the cacher has saved everything accepted so far; call it before the program ends.
    ///
    /// See ``Store/waitUntilSaved()``.
    ///
    /// - Throws: ``StoreError/Code/cacherFailed`` if the cacher failed; `CancellationError` if the task is canceled.
    public func waitUntilSaved() async throws {
        try await lists.waitUntilSaved()
    }

    /// Ends all work of the store for good, for example when the user signs out.
    ///
    /// See ``Store/close(clearing:)``.
    ///
    /// - Parameter clearing: Whether the cacher is emptied. Otherwise the call first saves everything accepted so far.
    /// - Throws: ``StoreError/Code/cacherFailed`` if the cacher failed; `CancellationError` if the task is canceled.
    public func close(clearing: Bool = false) async throws {
        try await lists.close(clearing: clearing)
    }

    /// Fetches observed lists at each element of a sequence.
    ///
    /// See ``Store/revalidate(on:)``.
    ///
    /// - Parameter trigger: The sequence; the values of its elements do not matter.
    /// - Returns: A handle that ends the trigger.
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
