/// The object that a repository keeps: one kind of data, its cacher, its fetcher, and the engine between them.
///
/// ```swift
/// let users = Store(cacher: MemoryCacher<User.ID, User>(expiry: .after(.seconds(30 * 60))), fetcher: UserFetcher())
///
/// for await state in users[id].publish() { render(state) }        // observe
/// let user = try await users[id].requireData()                    // one shot
/// await users[id].update { $0.name = "Ada" }                      // all observers see it
/// ```
///
/// A store does nothing until it is asked. Keep one store for each kind of data: two stores over one cacher share records, but neither
/// fetches nor observers. A store is freed when nobody holds it, observes it or waits for it.
public final class Store<Param: Hashable & Sendable, Content: Sendable>: Sendable {
    /// The memory that a hit is answered from without asking the engine; `nil` where there is none, or where events are reported.
    @usableFromInline let front: MemoryTable<Param, Content>?
    @usableFromInline let clock: HitClock
    @usableFromInline let engine: StoreEngine

    /// Makes a store.
    ///
    /// - Parameters:
    ///   - cacher: Where content is kept; give each store one of its own.
    ///   - fetcher: Where content comes from: a ``Fetcher``, a ``RevalidatingFetcher``, or any other ``Origin``.
    ///   - policy: What the store does of its own accord.
    ///   - time: Where time comes from; a test gives a ``ManualTime``.
    ///   - scope: A group of stores that are cleared together.
    ///   - onEvent: Gets everything that happens, outside all locks, on whatever thread it happens; it must be quick. With it, a hit
    ///     takes the way through the engine, so that it can be reported.
    @inlinable
    public convenience init(
        cacher: some Cacher<Param, Content>, fetcher: some Origin<Param, Content>, policy: StorePolicy = .default,
        time: some TimeSource = .system, scope: CacheScope? = nil, onEvent: (@Sendable (_ event: StoreEvent<Param>) -> Void)? = nil
    ) {
        self.init(
            cacher: cacher, respond: fetcher.boxed(), policy: policy, time: time, scope: scope, list: nil, onEvent: onEvent)
    }

    /// Makes a store of content that may be put together from pages.
    @usableFromInline
    init(
        cacher: some Cacher<Param, Content>, respond: @escaping Respond, policy: StorePolicy,
        time: some TimeSource, scope: CacheScope?, list: ListRules<BoxedContent>?,
        onEvent: (@Sendable (_ event: StoreEvent<Param>) -> Void)?
    ) {
        let fronted = cacher as? any FrontedCacher<Param, Content>
        let backing = fronted == nil ? cacher : fronted?.behind
        engine = StoreEngine(
            respond: respond, front: fronted?.front,
            backing: backing.map { BoxedCacher(cacher: $0) }, expiry: cacher.expiry, policy: policy, time: time,
            list: list, onEvent: Self.listener(onEvent))
        front = onEvent == nil ? fronted?.table : nil
        clock = HitClock(time)
        scope?.add(engine)
    }

    private static func listener(
        _ onEvent: (@Sendable (StoreEvent<Param>) -> Void)?
    ) -> (@Sendable (StoreEvent<BoxedKey>) -> Void)? {
        guard let onEvent else { return nil }
        return { onEvent(StoreEvent(number: $0.number, param: $0.param?.value(as: Param.self), kind: $0.kind)) }
    }

    /// Makes a store whose fetcher is a closure.
    ///
    /// - Parameters:
    ///   - cacher: Where content is kept; give each store one of its own.
    ///   - policy: What the store does of its own accord.
    ///   - time: Where time comes from; a test gives a ``ManualTime``.
    ///   - scope: A group of stores that are cleared together.
    ///   - onEvent: Gets everything that happens.
    ///   - fetch: Gets the content for a key.
    @inlinable
    public convenience init(
        cacher: some Cacher<Param, Content>, policy: StorePolicy = .default, time: some TimeSource = .system,
        scope: CacheScope? = nil, onEvent: (@Sendable (_ event: StoreEvent<Param>) -> Void)? = nil,
        fetch: @escaping @Sendable (_ param: Param) async throws -> Content
    ) {
        self.init(
            cacher: cacher, fetcher: ClosureFetcher(fetch), policy: policy, time: time, scope: scope, onEvent: onEvent)
    }

    /// The handle on one key; it is the key and one reference, free to make and to throw away.
    @inlinable
    public subscript(param: Param) -> StoreFlowable<Param, Content> {
        StoreFlowable(store: self, param: param)
    }

    /// Fetches keys in the background for later use, a few at a time; returns at once.
    ///
    /// ```swift
    /// let prefetching = users.prefetch(ids)
    /// prefetching.cancel()                              // keys that still wait are not fetched
    /// ```
    ///
    /// - Keys wait in one queue of the store, in the order given; ``StorePolicy/prefetchWidth`` of them are fetched at a time.
    /// - A key whose content is valid is skipped, also after a failed fetch; so is a key that `prefetch` is fetching already.
    /// - A caller or observer of a key that waits does not wait behind the queue: the key is fetched at once, and later skipped or joined.
    /// - A fetch that has begun counts as wanted by a caller until it ends. A failure is visible to observers, and the next key follows.
    /// - ``clear()`` drops the queue and the fetches; ``StoreFlowable/clear()`` does so for its key. Invalidating fetches the key again.
    /// - The queue does not keep the store alive: when the store is freed, the keys that wait are dropped.
    ///
    /// Cost for the caller: constant for an array, one pass over any other sequence.
    ///
    /// - Parameter params: The keys.
    /// - Returns: A handle that cancels the keys that still wait.
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

    /// Says of all keys that fit that their content is out of date; those that are wanted are fetched at once.
    ///
    /// Returns when all of them are saved as out of date. Cost: one listing of the cacher and one load and save of each key that fits.
    ///
    /// - Parameter fits: Whether a key is meant; called outside all locks.
    /// - Throws: ``StoreError/Code/cannotEnumerate`` where the cacher cannot list its keys; live keys are invalidated all the same.
    public func invalidate(where fits: @Sendable (_ param: Param) -> Bool) async throws {
        try await engine.invalidate { fits($0.value(as: Param.self)) }
    }

    /// The keys that may have content, valid or not; whoever reads one may find that it has none.
    ///
    /// - Throws: ``StoreError/Code/cannotEnumerate`` where the cacher cannot list its keys, and whatever it throws while listing.
    package func keys() async throws -> [Param] {
        try await engine.allKeys().map { $0.value(as: Param.self) }
    }

    /// Forgets everything, in memory and in the cacher; keys that are wanted are fetched anew.
    ///
    /// It is a barrier: saves that began before it have ended when the cacher is emptied, and those that come after it wait.
    ///
    /// - Throws: ``StoreError/Code/cacherFailed`` where the cacher could not remove its records. This store shows none of them again, but
    ///   another one, or the next start, may: clear again. `CancellationError` if the task is canceled; the store is cleared all the same,
    ///   and only the wait for the cacher is cut short.
    public func clear() async throws {
        try await engine.clearAll()
    }

    /// Waits until the cacher has everything that was accepted before: for a program that is about to end.
    ///
    /// Content is shown before it is saved, and `requireData()` and observers do not wait for that. This waits for each record and each
    /// removal that is under way, for a ``clear()`` too, and lets the cacher try again, at once, what it has failed to take so far. It waits
    /// neither for fetches and mutations that have still to succeed, nor for what is accepted later, except where that is saved in the
    /// place of an older record. Cost: one look at each live key; nothing with a ``MemoryCacher``, which has nothing to save.
    ///
    /// - Throws: ``StoreError/Code/cacherFailed`` where the cacher failed, once everything else is saved; what it did not take stays in the
    ///   store, so wait again when the cause is gone. `CancellationError` as soon as the task is cancelled, which does no save any harm.
    public func waitUntilSaved() async throws {
        try await engine.waitUntilSaved()
    }

    /// Fetches observed keys at each element of a sequence: the network is back, the app is in front, a timer ticks.
    ///
    /// Bursts coalesce: a fetch that runs is joined, and between the end of a fetch and the next one lies
    /// ``StorePolicy/minimumInterval``. An error or the end of the sequence ends this trigger and nothing else.
    ///
    /// - Parameter trigger: The sequence; what its elements are does not matter.
    /// - Returns: What ends the trigger before its time.
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

/// A running prefetch of a store; it goes on when this value is dropped.
public struct Prefetching: Sendable {
    private let end: @Sendable () -> Void

    init(end: @escaping @Sendable () -> Void) {
        self.end = end
    }

    /// Drops the keys that still wait; fetches that have begun go on to their end.
    public func cancel() { end() }
}

/// A running trigger of a store; letting go of it does not end it.
public struct RevalidationTrigger: Sendable {
    private let end: @Sendable () -> Void

    init(end: @escaping @Sendable () -> Void) {
        self.end = end
    }

    /// Ends the trigger.
    public func cancel() { end() }
}
