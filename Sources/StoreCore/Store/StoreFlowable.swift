/// The handle on one key of a store: what a repository hands to those who show and change the data.
///
/// ```swift
/// func user(_ id: User.ID) -> StoreFlowable<User.ID, User> { users[id] }
/// ```
public struct StoreFlowable<Param: Hashable & Sendable, Content: Sendable>: Sendable {
    @usableFromInline let store: Store<Param, Content>

    /// The key.
    public let param: Param

    @inlinable
    init(store: Store<Param, Content>, param: Param) {
        self.store = store
        self.param = param
    }

    @inlinable var engine: StoreEngine { store.engine }
    @inlinable var key: BoxedKey { BoxedKey(param) }

    // MARK: Reading

    /// The states of the data over time, to be observed with `for await`.
    ///
    /// Content that is missing or has expired is fetched when an iterator joins, and so is a key whose last fetch failed.
    ///
    /// - Parameter forceRefresh: Whether each iterator fetches when it joins, whatever the cache holds.
    /// - Returns: A sequence that never ends by itself; each of its iterators is an observer. Inside the fetcher of this key it ends at once.
    @inlinable
    public func publish(forceRefresh: Bool = false) -> LoadingStateSequence<Content> {
        LoadingStateSequence(engine: engine, key: key, forces: forceRefresh)
    }

    /// The data, valid at this moment.
    ///
    /// A hit in memory does not suspend; everything else waits for the cacher and, where needed, for one fetch that all callers share.
    ///
    /// - Parameter source: Where the data may come from.
    /// - Returns: The data; with pending optimistic changes, as observers see it.
    /// - Throws: What the fetcher threw; ``StoreError/Code/noValidCache`` for `.cache`, with the stale content; `CancellationError` as
    ///   soon as the task is cancelled, which does the fetch no harm while others wait for it; ``StoreError/Code/reentrantFetch`` inside a
    ///   fetcher, if this call and that fetch would wait for each other.
    @inlinable
    public func requireData(from source: GettingFrom = .both) async throws -> Content {
        if source == .both, let content = store.front?.validContent(of: param, by: store.clock) { return content }
        return try content(of: await engine.answer(key, from: source))
    }

    @usableFromInline
    func content(of answer: CallerAnswer<BoxedContent>) throws -> Content {
        switch answer {
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
            preconditionFailure("a caller for content was answered with something else")
        }
    }

    /// The data, valid at this moment, or nothing: `requireData(from:)` for callers who do not care why.
    ///
    /// - Parameter source: Where the data may come from.
    /// - Returns: The data; `nil` after any error and after cancellation.
    public func getData(from source: GettingFrom = .both) async -> Content? {
        // That it is not there is all this caller wants to know.
        try? await requireData(from: source)
    }

    // MARK: Seeing that it is fresh

    /// Fetches the data if it is missing, has expired or could not be fetched last time, and waits for that fetch.
    ///
    /// After a failed fetch over valid content it fetches too, so that a retry button clears the error. While ``StorePolicy/errorExpiry``
    /// holds off, it returns without a fetch; ``refresh()`` does not. It never throws: observers see how the fetch ended. Returns at once
    /// when the task is canceled, and inside the fetcher of this key, where it cannot wait.
    public func validate() async {
        _ = await engine.ask(key, .freshness)
    }

    /// Fetches the data whatever the cache holds, joining a fetch that runs.
    ///
    /// Returns when what the fetch brought is saved, or when it has failed, which observers see. Returns at once inside the fetcher of this
    /// key, where it cannot wait.
    public func refresh() async {
        _ = await engine.ask(key, .refresh)
    }

    /// Says that the data is out of date: it is fetched at once if somebody wants it, and at the next call otherwise.
    ///
    /// Returns when it is saved as out of date. The content stays, as stale content, and so does the origin's validator.
    public func invalidate() async {
        await engine.invalidate(key)
    }

    // MARK: Changing

    /// Sets the data; every observer sees it and waiting callers get it.
    ///
    /// A fetch that runs is cancelled and its result goes nowhere; one that was asked for by ``refresh()`` begins again. Returns when
    /// the data is saved, or newer data is, or saving has failed, which the store reports as an event.
    ///
    /// - Parameter content: The data, dated now, of which the origin has said nothing; `nil` is the same as ``clear()``.
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
    /// - Parameter transform: Changes the newest accepted data, without pending optimistic changes; it is called outside all locks and
    ///   again where the data was replaced meanwhile, so it should do nothing else.
    /// - Returns: `true` once the change is made, also where the task was cancelled while it was being saved. `false` where nothing was
    ///   changed: there was no data, or the task was cancelled first; `Task.isCancelled` tells the one from the other.
    /// - Throws: What `transform` throws; then nothing has changed.
    @discardableResult
    public func update(_ transform: (_ content: inout Content) throws -> Void) async rethrows -> Bool {
        try await engine.update(key) { content in try content.change(as: Content.self, transform) }
    }

    /// Forgets the data; it is fetched at once if somebody wants it, and otherwise nothing is left running.
    ///
    /// Returns when the record is removed, or newer data is saved.
    public func clear() async {
        await engine.write(key) { machine, turn in machine.cleared(&turn) }
    }

    // MARK: Ending

    /// Waits until the cacher has what was accepted for this key before.
    ///
    /// Whoever changes the data waits for that anyway; this is for data that was fetched for `requireData()` or an observer, and for a save
    /// that has failed, which is tried again at once. See ``Store/waitUntilSaved()``.
    ///
    /// - Throws: ``StoreError/Code/cacherFailed`` where the cacher failed; the data stays in the store. `CancellationError` as soon as the
    ///   task is cancelled, which does the save no harm.
    public func waitUntilSaved() async throws {
        try await engine.waitUntilSaved(key)
    }
}
