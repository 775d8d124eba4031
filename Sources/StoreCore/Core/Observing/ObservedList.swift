/// The state of the list that a view follows, with its pages.
///
/// ```swift
/// struct RepoList: View {
///     let repos: PaginationStore<String, Repo>
///     @State private var list = ObservedList<Repo>()
///
///     var body: some View {
///         List {
///             ForEach(list.content ?? []) { repo in
///                 RepoRow(repo: repo)
///                     .task {
///                         if list.shouldLoadNext(at: repo) {
///                             await list.loadNext()
///                         }
///                     }
///             }
///         }
///         .task { await list.follow(repos["apple"]) }
///     }
/// }
/// ```
///
/// <doc:InASwiftUIApp> adds errors, a footer and pull to refresh to such a list.
public typealias ObservedList<Element: Sendable> = Observed<[Element]>

// MARK: Pages

extension Observed where Content: RandomAccessCollection {
    /// The state of the pages after the list; without a page to request unless the list is completed.
    public var next: AdditionalLoadingState {
        access(.next)
        return nextPage
    }

    /// The state of the pages before the list; without a page to request unless the list is completed.
    public var previous: AdditionalLoadingState {
        access(.previous)
        return previousPage
    }

    /// Whether the page after the list is loading.
    public var isLoadingNext: Bool {
        access(.isLoadingNext)
        return nextPage.isLoading
    }

    /// Whether the page before the list is loading.
    public var isLoadingPrevious: Bool {
        access(.isLoadingPrevious)
        return previousPage.isLoading
    }

    /// Requests the page after the last one, even after a failure.
    ///
    /// A page may be empty although there is a page after it, or contain only elements that the list has. Such a page shows no new row whose
    /// appearance would request the next one. The method therefore continues until a page adds an element or there is no page, but
    /// requests at most 20 pages.
    ///
    /// - Returns: The outcome of the last request: `.loaded` also after 20 pages that added nothing, so that the next call continues;
    ///   `.notLoadedYet` if no task follows a key, and `.noPage` if the followed states are not those of a list's handle.
    ///   `.failed(CancellationError())` as soon as the task is canceled.
    @discardableResult
    public func loadNext() async -> PageRequest { await requestPage(.next) }

    /// Requests the page before the first one, even after a failure.
    ///
    /// Like ``loadNext()``, it continues until a page adds an element or there is no page, but requests at most 20 pages.
    ///
    /// - Returns: The outcome of the last request, as in ``loadNext()``.
    @discardableResult
    public func loadPrevious() async -> PageRequest { await requestPage(.prev) }
}

extension Observed where Content: RandomAccessCollection, Content.Element: Identifiable {
    /// Returns whether a view that shows an element should load the next page, for endless scrolling.
    ///
    /// Returns `false` after a failed page, so that scrolling does not repeat the failure. Offer a button that calls ``loadNext()``.
    ///
    /// Elements are compared by their `id`. Elements that are not `Identifiable`, such as plain keys, are compared with `==`.
    ///
    /// - Parameters:
    ///   - element: The element.
    ///   - distance: The number of elements at the end of the list that load the next page.
    /// - Returns: Whether the element is near the end, and there is a page that is neither loading nor failed. Cost: O(`distance`).
    public func shouldLoadNext(at element: Content.Element, within distance: Int = 5) -> Bool {
        shouldLoad(next, content?.suffix(max(1, distance))) { $0.id == element.id }
    }

    /// Returns whether a view that shows an element should load the previous page, for endless scrolling.
    ///
    /// - Parameters:
    ///   - element: The element.
    ///   - distance: The number of elements at the start of the list that load the previous page.
    /// - Returns: Whether the element is near the start, and there is a page that is neither loading nor failed. Cost: O(`distance`).
    public func shouldLoadPrevious(at element: Content.Element, within distance: Int = 5) -> Bool {
        shouldLoad(previous, content?.prefix(max(1, distance))) { $0.id == element.id }
    }
}

// Elements without an `id`. Disfavored, because elements that are also `Identifiable` are compared by their `id`; hidden from the
// documentation, where one name stands for both.
extension Observed where Content: RandomAccessCollection, Content.Element: Equatable {
    /// Returns whether a view that shows an element should load the next page; compares elements with `==`.
    @_documentation(visibility: internal) @_disfavoredOverload
    public func shouldLoadNext(at element: Content.Element, within distance: Int = 5) -> Bool {
        shouldLoad(next, content?.suffix(max(1, distance))) { $0 == element }
    }

    /// Returns whether a view that shows an element should load the previous page; compares elements with `==`.
    @_documentation(visibility: internal) @_disfavoredOverload
    public func shouldLoadPrevious(at element: Content.Element, within distance: Int = 5) -> Bool {
        shouldLoad(previous, content?.prefix(max(1, distance))) { $0 == element }
    }
}

extension Observed where Content: RandomAccessCollection {
    private func shouldLoad(
        _ page: AdditionalLoadingState, _ near: Content.SubSequence?, isElement: (Content.Element) -> Bool
    ) -> Bool {
        guard case .fixed(canRequestAdditionalData: true) = page, let near else { return false }
        return near.contains(where: isElement)
    }
}
