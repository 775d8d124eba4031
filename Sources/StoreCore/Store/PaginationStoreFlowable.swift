/// The handle on one list of a pagination store.
public struct PaginationStoreFlowable<Param: Hashable & Sendable, Element: Sendable>: Sendable {
    @usableFromInline let list: StoreFlowable<Param, [Element]>

    @inlinable
    init(list: StoreFlowable<Param, [Element]>) {
        self.list = list
    }

    @inlinable var engine: StoreEngine { list.engine }
    @inlinable var key: BoxedKey { list.key }

    /// The key of the list.
    public var param: Param { list.param }

    // MARK: Pages

    /// Asks for the page after the last one.
    ///
    /// - Parameter continueWhenError: Whether to try again where the last try, or the list itself, has failed.
    /// - Returns: What became of it, once that is known; `.failed(CancellationError())` as soon as the task is cancelled.
    @discardableResult
    @inlinable
    public func requestNextData(continueWhenError: Bool = true) async -> PageRequest {
        await engine.requestPage(.next, of: key, continueWhenError: continueWhenError)
    }

    /// Asks for the page before the first one.
    ///
    /// - Parameter continueWhenError: Whether to try again where the last try, or the list itself, has failed.
    /// - Returns: The outcome of the request, once it is known; always `.noPage` if the fetcher is one-way.
    @discardableResult
    @inlinable
    public func requestPrevData(continueWhenError: Bool = true) async -> PageRequest {
        await engine.requestPage(.prev, of: key, continueWhenError: continueWhenError)
    }

    /// Sets the list together with the keys of the pages beside it; a page that was requested before is superseded.
    ///
    /// - Parameters:
    ///   - elements: The list, dated now.
    ///   - nextKey: What asks for the page after it; `nil` or empty where there is none.
    ///   - prevKey: What asks for the page before it; `nil` or empty where there is none.
    public func update(_ elements: [Element], nextKey: String?, prevKey: String?) async {
        let elements = BoxedContent(elements)
        await engine.write(key) { machine, turn in
            machine.updated(elements, keys: .replaced(next: nextKey, prev: prevKey), &turn)
        }
    }

    /// Sets the list and keeps the keys of the pages beside it.
    ///
    /// A page that was requested before is requested again, for the new list.
    ///
    /// - Parameter elements: The list, dated now; `nil` is the same as ``clear()``.
    public func update(_ elements: [Element]?) async {
        await list.update(elements)
    }

    // MARK: What every handle does

    /// The states of the list over time.
    ///
    /// See ``StoreFlowable/publish(forceRefresh:)``.
    ///
    /// - Parameter forceRefresh: Whether each iterator fetches when it joins, whatever the cache holds.
    @inlinable
    public func publish(forceRefresh: Bool = false) -> LoadingStateSequence<[Element]> {
        list.publish(forceRefresh: forceRefresh)
    }

    /// The list as far as it is loaded, valid at this moment.
    ///
    /// See ``StoreFlowable/requireData(from:)``.
    ///
    /// - Parameter source: Where the list may come from.
    /// - Throws: What the fetcher threw; ``StoreError/Code/noValidCache`` for `.cache`; `CancellationError`.
    @inlinable
    public func requireData(from source: GettingFrom = .both) async throws -> [Element] {
        try await list.requireData(from: source)
    }

    /// The list as far as it is loaded, or nothing.
    ///
    /// See ``StoreFlowable/getData(from:)``.
    ///
    /// - Parameter source: Where the list may come from.
    public func getData(from source: GettingFrom = .both) async -> [Element]? {
        await list.getData(from: source)
    }

    /// Fetches the list if it is missing, has expired or could not be fetched last time.
    ///
    /// See ``StoreFlowable/validate()``.
    public func validate() async { await list.validate() }

    /// Fetches the list even if it is valid; by default only its first page, which becomes the whole list.
    ///
    /// See ``StoreFlowable/refresh()`` and ``StorePolicy/refreshScope``. A call during a running fetch joins it, and the list gets the
    /// pages of that fetch.
    public func refresh() async { await list.refresh() }

    /// Says that the list is out of date.
    ///
    /// See ``StoreFlowable/invalidate()``.
    public func invalidate() async { await list.invalidate() }

    /// Changes the list in place; a page that was requested before is requested again, for the changed list.
    ///
    /// As in ``StoreFlowable``, the change is made to the list without pending optimistic changes.
    ///
    /// - Parameter transform: Changes the newest accepted list. The store may call it again, on another list, so it should do nothing else
    ///   and should find elements by their identity, never by their index.
    /// - Returns: Whether the change was made; `false` where there was no list, or the task was cancelled first.
    /// - Throws: What `transform` throws; then nothing has changed.
    @discardableResult
    public func update(_ transform: (_ elements: inout [Element]) throws -> Void) async rethrows -> Bool {
        try await list.update(transform)
    }

    /// Shows a change at once, makes it true at the origin, and accepts the list that the origin responds with.
    ///
    /// See ``StoreFlowable/mutate(optimistically:perform:)``. A list that `perform` returns is the whole list as far as it is loaded; the keys
    /// of the pages beside it stay. A page that was requested before the change is requested again. To change one element, use
    /// ``mutate(element:optimistically:perform:)``.
    ///
    /// - Parameters:
    ///   - patch: The change; the store applies it again whenever the list below it changes, so it must find elements by their identity.
    ///   - perform: Makes the change true at the origin; runs in the caller's task.
    /// - Returns: The value that `perform` returned, after the list is saved.
    /// - Throws: The error that `perform` threw; `CancellationError` where the task was canceled before the change was shown.
    @discardableResult
    public func mutate<Result>(
        optimistically patch: @escaping @Sendable (_ elements: inout [Element]) -> Void, perform: () async throws -> Result
    ) async throws -> Result {
        try await list.mutate(optimistically: patch, perform: perform)
    }

    /// Shows a change of one element at once, makes it true at the origin, and accepts the element that the origin responds with.
    ///
    /// See ``StoreFlowable/mutate(element:optimistically:perform:)``.
    ///
    /// - Parameters:
    ///   - id: The identity of the element; over a list without it the change does nothing.
    ///   - patch: The change of the element.
    ///   - perform: Makes the change true at the origin; runs in the caller's task.
    /// - Returns: The value that `perform` returned, after the list is saved.
    /// - Throws: The error that `perform` threw; `CancellationError` where the task was canceled before the change was shown.
    @discardableResult
    public func mutate<Result>(
        element id: Element.ID, optimistically patch: @escaping @Sendable (_ element: inout Element) -> Void,
        perform: () async throws -> Result
    ) async throws -> Result where Element: Identifiable, Element.ID: Sendable {
        try await list.mutate(element: id, optimistically: patch, perform: perform)
    }

    /// Forgets the list.
    ///
    /// See ``StoreFlowable/clear()``.
    public func clear() async { await list.clear() }

    /// Waits until the cacher has what was accepted for this list before.
    ///
    /// See ``StoreFlowable/waitUntilSaved()``.
    ///
    /// - Throws: ``StoreError/Code/cacherFailed`` where the cacher failed; `CancellationError`.
    public func waitUntilSaved() async throws { try await list.waitUntilSaved() }
}
