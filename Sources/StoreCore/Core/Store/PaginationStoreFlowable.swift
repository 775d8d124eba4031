/// The handle on one list of a pagination store.
///
/// <doc:Paginating> explains page requests and changes of a list.
public struct PaginationStoreFlowable<Param: Hashable & Sendable, Element: Sendable>: Sendable {
    @usableFromInline let list: StoreFlowable<Param, [Element]>

    @inlinable
    init(list: StoreFlowable<Param, [Element]>) {
        self.list = list
    }

    @inlinable var engine: StoreEngine { list.engine }
    @inlinable var key: BoxedKey { list.key }

    /// The key of the whole list, not of a page.
    public var param: Param { list.param }

    // MARK: Pages

    /// Requests the page after the last one.
    ///
    /// - Parameter continueWhenError: Whether to try again if the last request, or the list itself, has failed.
    /// - Returns: The outcome of the request, once it is known; `.failed(CancellationError())` as soon as the task is canceled.
    @discardableResult
    @inlinable
    public func requestNextData(continueWhenError: Bool = true) async -> PageRequest {
        await engine.requestPage(.next, of: key, continueWhenError: continueWhenError)
    }

    /// Requests the page before the first one.
    ///
    /// - Parameter continueWhenError: Whether to try again if the last request, or the list itself, has failed.
    /// - Returns: The outcome of the request, once it is known; `.noPage` for each loaded list of a one-way fetcher.
    ///   `.failed(CancellationError())` as soon as the task is canceled.
    @discardableResult
    @inlinable
    public func requestPrevData(continueWhenError: Bool = true) async -> PageRequest {
        await engine.requestPage(.prev, of: key, continueWhenError: continueWhenError)
    }

    /// Requests pages until one adds an element, there is no page, or 20 pages have added none.
    func requestElements(_ direction: PageDirection) async -> PageRequest {
        // Bounded, because an origin may return empty pages without end.
        var outcome = PageRequest.noPage
        for _ in 0..<Fetches.emptyLimit {
            outcome = await engine.requestPage(direction, of: key, continueWhenError: true)
            guard outcome == .loaded || outcome == .joined, engine.hasEmptyPage(direction, of: key) else { break }
        }
        return outcome
    }

    /// The reason for which the loaded list has no next page, if its fetcher has guessed the end (C25).
    ///
    /// `nil` if the origin has stated the end, if there is a next page, and for a list that is not in memory. Cost: one look-up under the
    /// store's lock.
    public var guessedEnd: GuessedEnd? { engine.guessedEnd(of: key) }

    /// Sets the list and both of its page keys; an earlier page request is superseded.
    ///
    /// - Parameters:
    ///   - elements: The list, dated now.
    ///   - nextKey: The key of the page after the list; `nil` or empty if there is none.
    ///   - prevKey: The key of the page before the list; `nil` or empty if there is none.
    public func update(_ elements: [Element], nextKey: String?, prevKey: String?) async {
        let elements = BoxedContent(elements)
        await engine.write(key) { machine, turn in
            machine.updated(elements, keys: .replaced(next: nextKey, prev: prevKey), &turn)
        }
    }

    /// Sets the list and keeps its page keys.
    ///
    /// The store repeats an earlier page request for the new list.
    ///
    /// - Parameter elements: The list, dated now; `nil` has the same effect as ``clear()``.
    public func update(_ elements: [Element]?) async {
        await list.update(elements)
    }

    // MARK: Methods of every handle

    /// Returns the states of the list over time.
    ///
    /// See ``StoreFlowable/publish(forceRefresh:)``.
    ///
    /// - Parameter forceRefresh: Whether each iterator fetches when it joins, regardless of the cache.
    @inlinable
    public func publish(forceRefresh: Bool = false) -> LoadingStateSequence<[Element]> {
        list.publish(forceRefresh: forceRefresh)
    }

    /// Returns the loaded part of the list, valid at this moment.
    ///
    /// See ``StoreFlowable/requireData(from:)``.
    ///
    /// - Parameter source: The sources that the call may use.
    /// - Throws: The fetcher's error; ``StoreError/Code/noValidCache`` for `.cache`; `CancellationError` if the task is canceled.
    @inlinable
    public func requireData(from source: GettingFrom = .both) async throws -> [Element] {
        try await list.requireData(from: source)
    }

    /// Returns the loaded part of the list, or `nil` after any error.
    ///
    /// See ``StoreFlowable/getData(from:)``.
    ///
    /// - Parameter source: The sources that the call may use.
    public func getData(from source: GettingFrom = .both) async -> [Element]? {
        await list.getData(from: source)
    }

    /// Fetches the list if it is missing or expired, or if its last fetch failed.
    ///
    /// See ``StoreFlowable/validate()``.
    public func validate() async { await list.validate() }

    /// Fetches the list even if it is valid; by default only its first page, which becomes the whole list.
    ///
    /// See ``StoreFlowable/refresh()`` and ``StorePolicy/refreshScope``. A call during a running fetch joins it, and the list gets the
    /// pages of that fetch.
    public func refresh() async { await list.refresh() }

    /// Marks the list as out of date.
    ///
    /// See ``StoreFlowable/invalidate()``.
    public func invalidate() async { await list.invalidate() }

    /// Changes the list in place; the store repeats an earlier page request for the changed list.
    ///
    /// As in ``StoreFlowable``, `transform` receives the list without pending optimistic changes.
    ///
    /// - Parameter transform: Changes the newest accepted list. The store may call it again on another list, so it must have no side
    ///   effects and must find elements by identity, never by index.
    /// - Returns: Whether the change was made; `false` if there was no list, or if the task was canceled first.
    /// - Throws: The error that `transform` throws; the list is then unchanged.
    @discardableResult
    public func update(_ transform: (_ elements: inout [Element]) throws -> Void) async rethrows -> Bool {
        try await list.update(transform)
    }

    /// Shows a change at once, sends it to the origin, and accepts the list that the origin responds with.
    ///
    /// See ``StoreFlowable/mutate(optimistically:perform:)``. A list that `perform` returns replaces the whole loaded list and keeps its
    /// page keys. The store repeats a page request that began before the change. To change one element, use
    /// ``mutate(element:optimistically:perform:)``.
    ///
    /// - Parameters:
    ///   - patch: The change. The store applies it again whenever the list below it changes, so it must find elements by identity.
    ///   - perform: Sends the change to the origin; runs in the caller's task.
    /// - Returns: The value that `perform` returned, after the list is saved.
    /// - Throws: The error that `perform` threw; `CancellationError` if the task was canceled before the change was shown.
    @discardableResult
    public func mutate<Result>(
        optimistically patch: @escaping @Sendable (_ elements: inout [Element]) -> Void, perform: () async throws -> Result
    ) async throws -> Result {
        try await list.mutate(optimistically: patch, perform: perform)
    }

    /// Shows a change of one element at once, sends it to the origin, and accepts the element that the origin responds with.
    ///
    /// See ``StoreFlowable/mutate(element:optimistically:perform:)``.
    ///
    /// - Parameters:
    ///   - id: The identity of the element; the change does nothing to a list without that element.
    ///   - patch: The change of the element.
    ///   - perform: Sends the change to the origin; runs in the caller's task.
    /// - Returns: The value that `perform` returned, after the list is saved.
    /// - Throws: The error that `perform` threw; `CancellationError` if the task was canceled before the change was shown.
    @discardableResult
    public func mutate<Result>(
        element id: Element.ID, optimistically patch: @escaping @Sendable (_ element: inout Element) -> Void,
        perform: () async throws -> Result
    ) async throws -> Result where Element: Identifiable, Element.ID: Sendable {
        try await list.mutate(element: id, optimistically: patch, perform: perform)
    }

    /// Removes the list.
    ///
    /// See ``StoreFlowable/clear()``.
    public func clear() async { await list.clear() }

    /// Waits until the cacher has saved everything accepted for this list so far.
    ///
    /// See ``StoreFlowable/waitUntilSaved()``.
    ///
    /// - Throws: ``StoreError/Code/cacherFailed`` if the cacher failed; `CancellationError` if the task is canceled.
    public func waitUntilSaved() async throws { try await list.waitUntilSaved() }
}

/// The outcome of a page request.
///
/// ```swift
/// while await repos["apple"].requestNextData() == .loaded {}
/// ```
///
/// <doc:Paginating> explains each result.
public enum PageRequest: Sendable {
    /// The page was fetched and is part of the list.
    case loaded
    /// Another caller had already requested this page, and it is now part of the list.
    case joined
    /// There is no page in this direction.
    case noPage
    /// The list itself was missing, expired, loading or failed. The request joined or started its fetch, which has ended; request the page again.
    case notLoadedYet
    /// The page could not be fetched, or the caller was canceled. The list and the page key are unchanged.
    case failed(any Error)
    /// The page was dropped because `refresh()`, `publish(forceRefresh: true)`, `clear()` or an update with new keys came first.
    ///
    /// Other changes and automatic fetches only interrupt a request: the store requests the page again for the changed list.
    case superseded
}

extension PageRequest: Equatable {
    /// Returns whether both outcomes are equal; errors are equal if their types and their `String(reflecting:)` are.
    public static func == (lhs: PageRequest, rhs: PageRequest) -> Bool {
        switch (lhs, rhs) {
        case (.loaded, .loaded), (.joined, .joined), (.noPage, .noPage), (.notLoadedYet, .notLoadedYet), (.superseded, .superseded): true
        case (.failed(let left), .failed(let right)): isSame(left, right)
        default: false
        }
    }
}
