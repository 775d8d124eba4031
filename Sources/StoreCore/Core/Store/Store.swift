/// One kind of data with its cacher, its fetcher, and the engine between them; the object that a repository keeps.
///
/// ```swift
/// let users = Store(
///     cacher: MemoryCacher<User.ID, User>(expiry: .after(.seconds(30 * 60))),
///     fetcher: UserFetcher())
///
/// for await state in users[id].publish() { render(state) }  // observe
/// let user = try await users[id].requireData()              // one shot
/// await users[id].update { $0.name = "Ada" }                // observers see it
/// ```
///
/// A store does no work before the first call. Keep one store for each kind of data: two stores over one cacher share records, but neither
/// fetches nor observers. A store stays alive while a reference, an observer or a caller holds it.
///
/// <doc:GettingStarted> builds a store and uses each of its calls.
public final class Store<Param: Hashable & Sendable, Content: Sendable>: Sendable {
    /// The memory that serves hits without the engine; `nil` if the cacher has none, or if the store reports events.
    @usableFromInline let front: MemoryTable<Param, Content>?
    /// The memory that serves hits of linked content, as long as its entities have not changed; `nil` for any other store.
    @usableFromInline let linkedFront: MemoryTable<Param, Content>?
    /// The memory of the cacher, also for a store that reports events; `nil` if the cacher has none.
    let memory: MemoryTable<Param, Content>?
    @usableFromInline let clock: HitClock
    @usableFromInline package let engine: StoreEngine

    /// Creates a store from a cacher and a fetcher.
    ///
    /// - Parameters:
    ///   - cacher: The storage for content; give each store its own cacher.
    ///   - fetcher: The source of content: a ``Fetcher``, a ``RevalidatingFetcher``, a ``LiveFetcher``, or any other ``Origin``.
    ///   - links: The places at which the content shows entities of other stores; see ``EntityLink``.
    ///   - policy: The rules for retries, intervals and other automatic behavior.
    ///   - time: The source of time; tests pass a ``ManualTime``.
    ///   - scope: A group of stores that are cleared together.
    ///   - name: The name of the store in its events, and on disk for the lanes of an ``Outbox``; never change it, and give no other store the
    ///     same name.
    ///   - onEvent: Receives every event, outside all locks and on any thread; it must return quickly. With a listener, hits go through the
    ///     engine, so that they can be reported.
    @inlinable
    public convenience init(
        cacher: some Cacher<Param, Content>, fetcher: some Origin<Param, Content>, links: [EntityLink<Content>] = [],
        policy: StorePolicy = .default, time: some TimeSource = .system, scope: CacheScope? = nil, name: String = "",
        onEvent: (@Sendable (_ event: StoreEvent<Param>) -> Void)? = nil
    ) {
        self.init(
            cacher: cacher, respond: fetcher.boxed(), accept: fetcher.acceptance(), follow: fetcher.boxedStreams(), links: links,
            policy: policy, time: time, scope: scope, list: nil, name: name, onEvent: onEvent)
    }

    /// Creates a store whose content may consist of pages.
    @usableFromInline
    init(
        cacher: some Cacher<Param, Content>, respond: @escaping Respond, accept: @escaping Accept<Param>, follow: Follow? = nil,
        links: [EntityLink<Content>], policy: StorePolicy, time: some TimeSource, scope: CacheScope?, list: ListRules<BoxedContent>?,
        name: String = "",
        onEvent: (@Sendable (_ event: StoreEvent<Param>) -> Void)?
    ) {
        let fronted = cacher as? any FrontedCacher<Param, Content>
        let backing = fronted == nil ? cacher : fronted?.behind
        var listener: (@Sendable (StoreEvent<BoxedKey>) -> Void)?
        if let onEvent {
            listener = { onEvent(StoreEvent(number: $0.number, param: $0.param?.value(as: Param.self), kind: $0.kind, store: name)) }
        }
        engine = StoreEngine(
            respond: respond, follow: follow, front: fronted?.front,
            backing: backing.map { BoxedCacher(cacher: $0, accept: accept) }, expiry: cacher.expiry, policy: policy, time: time,
            list: list, name: name, links: links.map(\.rules), scope: scope, onEvent: listener)
        memory = fronted?.table
        memory?.isFilledByStore.withLock { $0 = true }
        front = onEvent == nil && links.isEmpty ? memory : nil
        linkedFront = onEvent == nil && !links.isEmpty ? memory : nil
        clock = HitClock(time)
        guard let scope else { return }
        scope.add(engine, running: engine.fetches.running)
        if scope.isClosed { engine.shut() }
    }

    /// Creates a store whose fetcher is a closure.
    ///
    /// - Parameters:
    ///   - cacher: The storage for content; give each store its own cacher.
    ///   - links: The places at which the content shows entities of other stores; see ``EntityLink``.
    ///   - policy: The rules for retries, intervals and other automatic behavior.
    ///   - time: The source of time; tests pass a ``ManualTime``.
    ///   - scope: A group of stores that are cleared together.
    ///   - name: The name of the store in its events, and on disk for the lanes of an ``Outbox``; never change it, and give no other store the
    ///     same name.
    ///   - onEvent: Receives every event, outside all locks and on any thread; it must return quickly.
    ///   - fetch: Fetches the content of a key.
    @inlinable
    public convenience init(
        cacher: some Cacher<Param, Content>, links: [EntityLink<Content>] = [], policy: StorePolicy = .default,
        time: some TimeSource = .system, scope: CacheScope? = nil, name: String = "",
        onEvent: (@Sendable (_ event: StoreEvent<Param>) -> Void)? = nil,
        fetch: @escaping @Sendable (_ param: Param) async throws -> Content
    ) {
        self.init(
            cacher: cacher, fetcher: ClosureFetcher(fetch), links: links, policy: policy, time: time, scope: scope, name: name,
            onEvent: onEvent)
    }

    /// Returns valid content from memory, without the engine; `nil` for linked content of which an entity has changed since.
    @inlinable
    func hit(_ param: Param) -> Content? {
        front?.validContent(of: param, by: clock)
            ?? linkedFront?.validContent(of: param, by: clock, reconciledWith: engine.entityChanges)
    }

    /// The handle on one key. It holds the key and one reference, so it costs nothing to create or discard.
    @inlinable
    public subscript(param: Param) -> StoreFlowable<Param, Content> {
        StoreFlowable(store: self, param: param)
    }

    /// Fetches keys in the background for later use, a few at a time; returns at once.
    ///
    /// ```swift
    /// let prefetching = users.prefetch(ids)
    /// prefetching.cancel()  // keys that still wait are not fetched
    /// ```
    ///
    /// - Keys wait in one queue of the store, in the order given. ``StorePolicy/prefetchWidth`` of them are fetched at a time.
    /// - A key with valid content is skipped, even after a failed fetch. A key that `prefetch` is already fetching is skipped too.
    /// - A caller or observer never waits for the queue: its key is fetched at once. The queue later skips that key or joins its fetch.
    /// - A running prefetch counts as a caller until it ends. A failure is visible to observers, and the next key follows.
    /// - ``clear()`` drops the queue and its fetches. ``StoreFlowable/clear()`` drops the fetch of its key, and no key in the queue.
    ///   Invalidation fetches the key again.
    /// - The queue does not retain the store: when the store is released, the keys in the queue are dropped.
    ///
    /// Cost for the caller: constant for an array, one pass over any other sequence.
    ///
    /// - Parameter params: The keys.
    /// - Returns: A handle that cancels the keys still in the queue.
    @inlinable
    @discardableResult
    public func prefetch(_ params: some Sequence<Param>) -> Prefetching {
        prefetch(keys: Array(params))
    }

    @usableFromInline
    func prefetch(keys params: [Param]) -> Prefetching {
        let batch = PrefetchBatch(count: params.count) { BoxedKey(params[$0]) }
        engine.prefetch(batch)
        return Prefetching { batch.cancel() }
    }

    /// Marks the content of all matching keys as out of date; wanted keys are fetched at once.
    ///
    /// Returns when all of them are saved as out of date. Cost: one listing of the cacher, and one load and one save for each matching key.
    ///
    /// - Parameter fits: Returns whether a key matches; called outside all locks.
    /// - Throws: ``StoreError/Code/cannotEnumerate`` if the cacher cannot list its keys, the error of a failed listing, and
    ///   `CancellationError` if the task is canceled before the listing ends; live keys are invalidated even then.
    public func invalidate(where fits: @Sendable (_ param: Param) -> Bool) async throws {
        try await engine.invalidate { fits($0.value(as: Param.self)) }
    }

    /// The keys that may have content, valid or not. A key may have lost its content by the time it is read.
    package func keys() async throws -> [Param] {
        try await engine.allKeys().map { $0.value(as: Param.self) }
    }

    /// Removes all content from memory and from the cacher; wanted keys are fetched again.
    ///
    /// The call is a barrier: the cacher is emptied after all earlier saves have ended, and later saves wait for it.
    ///
    /// - Throws: ``StoreError/Code/cacherFailed`` if the cacher could not remove its records. This store never shows those records again,
    ///   but another store, or the next launch, may; call `clear()` again. `CancellationError` if the task is canceled; the store is
    ///   cleared even then, and only the wait for the cacher ends early.
    public func clear() async throws {
        try await engine.clearAll()
    }

    /// Waits until the cacher has saved everything accepted so far; call it before the program ends.
    ///
    /// The store shows content before it saves it, and `requireData()` and observers do not wait for the save. This method waits for each
    /// running save, removal and ``clear()``, and retries failed saves at once. It does not wait for running fetches and mutations. It
    /// waits for content accepted later only if that content is saved in place of an older record. Cost: one look at each live key; nothing
    /// with a ``MemoryCacher``, which has nothing to save.
    ///
    /// - Throws: ``StoreError/Code/cacherFailed`` if the cacher failed, after all other records are saved. The unsaved records stay in the
    ///   store, so call the method again once the cause is fixed. `CancellationError` as soon as the task is canceled; no save is affected.
    public func waitUntilSaved() async throws {
        try await engine.waitUntilSaved()
    }

    /// Ends all work of the store for good, for example when the user signs out.
    ///
    /// The observations end. Each later call that needs the store fails with ``StoreError/Code/closed``; methods that cannot throw do
    /// nothing. Running fetches are canceled, and their results are dropped. The memory of the cacher is emptied. The call returns when
    /// nothing runs; from then on, the store changes no file.
    ///
    /// A fetcher that ignores its cancellation delays the call, unless it makes the call itself. The `perform` of a running mutation
    /// belongs to its caller: it continues, and its result is not kept.
    ///
    /// - Parameter clearing: Whether the cacher is emptied. Otherwise the call first saves everything accepted so far.
    /// - Throws: ``StoreError/Code/cacherFailed`` if the cacher failed, after everything has ended. `CancellationError` if the task is
    ///   canceled, and ``StoreError/Code/reentrantFetch`` inside a call of the store's own cacher or of ``Origin/accepts(_:param:)``; the store
    ///   is closed even then, and only the wait ends early. Call the method again to wait.
    public func close(clearing: Bool = false) async throws {
        try await engine.close(clearing: clearing)
    }

    /// Fetches observed keys at each element of a sequence, such as network changes, app activations or a timer.
    ///
    /// Bursts coalesce: an element joins a running fetch, and at least ``StorePolicy/minimumInterval`` passes between the end of a fetch
    /// and the next one. An error or the end of the sequence ends only this trigger.
    ///
    /// - Parameter trigger: The sequence; the values of its elements do not matter.
    /// - Returns: A handle that ends the trigger.
    @discardableResult
    public func revalidate(on trigger: some AsyncSequence & Sendable) -> RevalidationTrigger {
        engine.addTrigger(trigger)
    }
}

extension Store where Param == UnitParam {
    /// The handle on the only key.
    @inlinable
    public var flowable: StoreFlowable<UnitParam, Content> { self[UnitParam()] }
}

/// A running prefetch of a store. The prefetch continues if this value is discarded.
///
/// <doc:RefreshingAndExpiring> shows how to prefetch keys.
public struct Prefetching: Sendable {
    let end: @Sendable () -> Void

    /// Drops the keys still in the queue; running fetches continue to their end.
    public func cancel() { end() }
}

/// A running trigger of a store. The trigger continues if this value is discarded.
///
/// <doc:RefreshingAndExpiring> shows how to fetch when the network returns.
public struct RevalidationTrigger: Sendable {
    let end: @Sendable () -> Void

    /// Ends the trigger for good; fetches that it has started continue to their end.
    public func cancel() { end() }
}
