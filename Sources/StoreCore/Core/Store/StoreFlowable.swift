/// The handle on one key of a store, which a repository passes to screens and view models.
///
/// ```swift
/// func user(_ id: User.ID) -> StoreFlowable<User.ID, User> { users[id] }
/// ```
///
/// <doc:GettingStarted> shows each call, and <doc:ChangingData> explains the changes.
public struct StoreFlowable<Param: Hashable & Sendable, Content: Sendable>: Sendable {
    @usableFromInline let store: Store<Param, Content>

    /// The key of the data that this handle reads and changes.
    public let param: Param

    @inlinable
    init(store: Store<Param, Content>, param: Param) {
        self.store = store
        self.param = param
    }

    @inlinable package var engine: StoreEngine { store.engine }
    @inlinable var key: BoxedKey { BoxedKey(param) }

    // MARK: Reading

    /// Returns the states of the data over time, for observation with `for await`.
    ///
    /// When an iterator joins, the store fetches content that is missing or expired, and retries a failed fetch.
    ///
    /// - Parameter forceRefresh: Whether each iterator fetches when it joins, regardless of the cache.
    /// - Returns: A sequence that ends when the store is closed; each of its iterators is an observer. Inside the fetcher of this key it
    ///   ends at once.
    @inlinable
    public func publish(forceRefresh: Bool = false) -> LoadingStateSequence<Content> {
        LoadingStateSequence(engine: engine, key: key, forceRefresh: forceRefresh)
    }

    /// Returns the data, valid at this moment.
    ///
    /// A hit in memory does not suspend. Otherwise the call waits for the cacher and, if necessary, for one fetch that all callers share.
    ///
    /// - Parameter source: The sources that the call may use.
    /// - Returns: The data, including pending optimistic changes, as observers see it.
    /// - Throws: The fetcher's error; for `.cache`, ``StoreError/Code/noValidCache`` with the stale content, or the cacher's error;
    ///   `CancellationError` as soon as the task is canceled, without effect on a fetch that other callers wait for;
    ///   ``StoreError/Code/reentrantFetch`` inside a fetcher, if this call and that fetch would wait for each other.
    @inlinable
    public func requireData(from source: GettingFrom = .both) async throws -> Content {
        if source == .both, let content = store.hit(param) { return content }
        return try content(of: await engine.requireContent(key, from: source))
    }

    @usableFromInline
    func content(of result: CallerResult<BoxedContent>) throws -> Content {
        switch result {
        case .content(let content):
            return content.value(as: Content.self)
        case .failure(var error as StoreError):
            if let stale = error.staleContent as? BoxedContent { error.staleContent = stale.value(as: Content.self) }
            throw error
        case .failure(let error):
            throw error
        case .cancelled:
            throw CancellationError()
        case .done, .page, .outdated:
            preconditionFailure("a caller for content received another kind of result")
        }
    }

    /// Returns the data, valid at this moment, or `nil` after any error.
    ///
    /// - Parameter source: The sources that the call may use.
    /// - Returns: The data; `nil` after any error and after cancellation.
    public func getData(from source: GettingFrom = .both) async -> Content? {
        // The caller asked for `nil` in place of the error.
        try? await requireData(from: source)
    }

    // MARK: Keeping the data fresh

    /// Fetches the data if it is missing or expired, or if its last fetch failed, and waits for the fetch.
    ///
    /// After a failed fetch, the method fetches even valid content, so that a retry button clears the error. While
    /// ``StorePolicy/errorExpiry`` holds, it returns without a fetch; ``refresh()`` fetches even then.
    ///
    /// The method never throws: observers see how the fetch ended. It returns at once when the task is canceled, and inside the fetcher of
    /// this key, where it cannot wait.
    public func validate() async {
        _ = await engine.request(key, .freshness)
    }

    /// Fetches the data regardless of the cache, or joins a running fetch.
    ///
    /// Returns when the result is saved, or when the fetch has failed, which observers see. Returns at once inside the fetcher of this key,
    /// where it cannot wait.
    public func refresh() async {
        _ = await engine.request(key, .refresh)
    }

    /// Marks the data as out of date; it is fetched at once if the key is wanted, otherwise by the next call.
    ///
    /// Returns when the record is saved as out of date. The stale content and the origin's validator are kept.
    public func invalidate() async {
        await engine.invalidate(key)
    }

    // MARK: Changing

    /// Sets the data; every observer sees it, and waiting callers receive it.
    ///
    /// A running fetch is canceled and its result dropped; a fetch started by ``refresh()`` begins again. Returns when this data or newer
    /// data is saved, or when the save has failed, which the store reports as an event.
    ///
    /// - Parameter content: The data, dated now and without a validator; `nil` has the same effect as ``clear()``.
    @inlinable
    public func update(_ content: Content?) async {
        let saving = engine.set(content.map { BoxedContent($0) }, ofKeyWithHash: param.hashValue) { [param] key in
            key.value(as: Param.self) == param
        } makeKey: { [param] in
            BoxedKey(param)
        }
        if let saving { await saving.end() }
    }

    /// Changes the data in place.
    ///
    /// - Parameter transform: Changes the newest accepted data, without pending optimistic changes. The store calls it outside all locks,
    ///   and again if the data was replaced meanwhile, so it must have no side effects.
    /// - Returns: `true` if the change was made, even if the save failed or the task was canceled meanwhile. Another user of a shared
    ///   cacher may supersede such a change; the store reports that as ``StoreEventKind/droppedUnsaved``. `false` if there was no data, or
    ///   if the task was canceled first; `Task.isCancelled` distinguishes the two.
    /// - Throws: The error that `transform` throws; the data is then unchanged.
    @discardableResult
    public func update(_ transform: (_ content: inout Content) throws -> Void) async rethrows -> Bool {
        try await engine.update(key) { content in try content.change(as: Content.self, transform) }
    }

    /// Removes the data; it is fetched at once if the key is wanted, and otherwise no fetch runs.
    ///
    /// Returns when the record is removed, or when newer data is saved.
    public func clear() async {
        await engine.write(key) { machine, transition in machine.cleared(&transition) }
    }

    // MARK: Saving

    /// Waits until the cacher has saved everything accepted for this key so far.
    ///
    /// Calls that change the data already wait for their save. Use this method for data fetched for `requireData()` or an observer, or to
    /// retry a failed save at once. See ``Store/waitUntilSaved()``.
    ///
    /// - Throws: ``StoreError/Code/cacherFailed`` if the cacher failed; the data stays in the store. `CancellationError` as soon as the
    ///   task is canceled; the save is not affected.
    public func waitUntilSaved() async throws {
        try await engine.waitUntilSaved(key)
    }
}

/// The source of a one-shot call's data.
public enum GettingFrom: Hashable, Sendable, CaseIterable {
    /// Valid content from the cache; otherwise from the origin.
    case both
    /// The origin. The call joins a running fetch of the current epoch.
    case origin
    /// The cache only, and only if its content is valid.
    case cache
}
