public import Observation

/// The state of the key that a view follows, as an observable model for the view's lifetime.
///
/// ```swift
/// struct UserScreen: View {
///     let users: Store<User.ID, User>
///     let id: User.ID
///     @State private var user = Observed<User>()
///
///     var body: some View {
///         UserContent(state: user.state(for: users[id]))
///             .task(id: id) { await user.follow(users[id]) }
///     }
/// }
/// ```
///
/// The model observes only while a task is in `follow`. SwiftUI starts that task when the view appears. It cancels the task when the view
/// disappears, and starts another when the key changes. Without a task, the model keeps its last state and no reference to the store.
///
/// Reading a property registers a view for changes of that property only. `Equatable` content counts as changed if it is not equal to the
/// previous content. An object counts as changed if it is another object, and any other content with each state.
///
/// <doc:InASwiftUIApp> builds a list and a detail screen with such models.
@MainActor
public final class Observed<Content: Sendable>: nonisolated Observable {
    enum Part: CaseIterable {
        case key, state, content, error, isLoading, next, previous, isLoadingNext, isLoadingPrevious
    }

    /// The content that a model shows after its key has changed and before the new key has a state.
    public enum Switching: Hashable, Sendable {
        /// No content: the model is loading without content. The default.
        case clearing
        /// The content of the previous key, as stale content.
        ///
        /// See ``Observed/isContent(of:)``.
        case keepingContent
    }

    /// A key, and the store that it belongs to: two stores may have data under the same key.
    private struct Subject {
        let key: AnyHashable
        /// Whether the key is that of a handle, and not one that the caller chose for a sequence.
        private let hasStore: Bool
        // Weak, because a model holds no store, and a later store may have the address of a released one.
        private weak var engine: StoreEngine?

        init(_ key: some Hashable, of engine: StoreEngine? = nil) {
            self.key = AnyHashable(key)
            hasStore = engine != nil
            self.engine = engine
        }

        /// Whether the store of the key is known to be closed.
        var isClosed: Bool { engine?.isOpen == false }

        /// Returns whether both keys are equal, and are not known to belong to different stores.
        func matches(_ other: Subject?) -> Bool {
            guard let other, key == other.key else { return false }
            return !hasStore || !other.hasStore || engine === other.engine
        }
    }

    /// One running call of `follow`; an object, so that a call finds its own entry when it ends.
    private final class Following {
        let key: Subject
        /// The newest state of the sequence; `nil` before the first one.
        var state: LoadingState<Content>?
        let requestPage: PageRequester?

        init(key: Subject, state: LoadingState<Content>?, requestPage: PageRequester? = nil) {
            self.key = key
            self.state = state
            self.requestPage = requestPage
        }
    }

    typealias PageRequester = @Sendable (_ direction: PageDirection) async -> PageRequest

    private struct Shown {
        var state: LoadingState<Content>
        /// The key that the state belongs to; `nil` before the first `follow`.
        var key: Subject?
        var contentKey: Subject?
    }

    private var shown: Shown
    /// The running calls of `follow`, the newest last.
    private var followings: [Following] = []
    private let switching: Switching
    private let isPreview: Bool
    private let registrar = ObservationRegistrar()

    /// Creates a model that follows no key yet.
    ///
    /// - Parameter switching: The content to show after the key has changed.
    public init(whenSwitching switching: Switching = .clearing) {
        shown = Shown(state: .loading(content: nil))
        self.switching = switching
        isPreview = false
    }

    /// Creates a model for a preview or a snapshot test, which needs no store.
    ///
    /// ```swift
    /// let failed = Observed(
    ///     preview: .error(rawError: Offline(), content: User(id: 1, name: "Ada")))
    /// ```
    ///
    /// - Parameter state: The state to show for every key. Following has no effect and returns at once.
    public init(preview state: LoadingState<Content>) {
        shown = Shown(state: state)
        switching = .clearing
        isPreview = true
    }

    // MARK: Following

    /// Follows a key: observes it, and shows its states, until the task is canceled.
    ///
    /// If memory has valid content, the model shows it before the call suspends for the first time. If several tasks follow, the newest
    /// call decides which state is shown. When it ends, the call before it decides again. After the last call has ended, the last state
    /// stays. If the store is closed while the model is loading, the model shows an error with the code ``StoreError/Code/closed``.
    ///
    /// - Parameter handle: The handle on the key. The model holds it only during the call.
    public func follow<Param>(_ handle: StoreFlowable<Param, Content>) async {
        await follow(handle.publish(), Following(key: Subject(handle.param, of: handle.engine), state: handle.stateInMemory))
    }

    /// Follows any states, such as those of mapped or combined sequences, until the task is canceled or the sequence ends.
    ///
    /// - Parameters:
    ///   - states: The states.
    ///   - id: The key of the data, for `state(for:)`.
    public func follow(_ states: LoadingStateSequence<Content>, as id: some Hashable) async {
        await follow(states, Following(key: Subject(id), state: nil))
    }

    /// Follows a list: observes it, and shows its states, until the task is canceled.
    ///
    /// The rules are those of `follow` for a key of a ``Store``.
    ///
    /// An empty list has no row that could request a page. The model therefore requests the next pages of an empty list, or else its
    /// previous pages, by the rules of ``loadNext()``. It stops when a page adds an element, and after 20 pages in each direction. It may
    /// begin again once the list has had an element or is loading again.
    ///
    /// - Parameter list: The handle on the list. The model holds it only during the call.
    public func follow<Param, Element>(_ list: PaginationStoreFlowable<Param, Element>) async where Content == [Element] {
        let requestPage: PageRequester = { direction in await list.requestElements(direction) }
        let key = Subject(list.param, of: list.engine)
        var filling: Task<Void, Never>?
        defer { filling?.cancel() }
        await follow(list.publish(), Following(key: key, state: list.list.stateInMemory, requestPage: requestPage)) { state in
            switch state {
            case .completed(content: let rows, let next, let previous) where rows.isEmpty:
                guard filling == nil, next.canRequestAdditionalData || previous.canRequestAdditionalData else { return }
                filling = Task {
                    // One direction after the other: no previous page is needed if a next one adds an element.
                    for direction in PageDirection.allCases where !Task.isCancelled {
                        let outcome = await requestPage(direction)
                        let isLoaded = outcome == .loaded || outcome == .joined
                        if isLoaded, !list.engine.hasEmptyPage(direction, of: list.key) { return }
                    }
                }
            case .error: break
            case .completed, .loading:
                filling?.cancel()
                filling = nil
            }
        }
    }

    /// Follows one element of a list: observes the list, and shows the states of the element, until the task is canceled.
    ///
    /// The element makes no request of its own. A row that follows the element is updated when the element changes, and not when other rows
    /// change. If the list is linked to the store of the elements (``EntityLink``), the row shows every change of its entity. If the list
    /// no longer has the element, the state is an error with the code ``StoreError/Code/removed``.
    ///
    /// Cost: an observer of the list, and one pass over the list up to the element for each state of the list.
    ///
    /// - Parameters:
    ///   - list: The handle on the list. The model holds it only during the call.
    ///   - id: The identity of the element.
    public func follow<Param>(_ list: PaginationStoreFlowable<Param, Content>, element id: Content.ID) async
    where Content: Identifiable, Content.ID: Sendable {
        let key = Subject(ElementOfList(list: list.param, id: id), of: list.engine)
        await follow(list.publish(element: id), Following(key: key, state: list.list.stateInMemory?.element(id)))
    }

    private func follow(
        _ states: LoadingStateSequence<Content>, _ following: Following, onState: (LoadingState<Content>) -> Void = { _ in }
    ) async {
        guard !isPreview, !Task.isCancelled else { return }
        followings.append(following)
        showNewest()
        defer {
            followings.removeAll { $0 === following }
            showNewest()
        }
        func receive(_ state: LoadingState<Content>) {
            following.state = state
            if followings.last === following { showNewest() }
        }
        for await state in states {
            receive(state)
            onState(state)
        }
        // Nothing else would end the loading.
        if following.state?.isLoading != false, following.key.isClosed {
            receive(.error(rawError: StoreError.closedStore, content: following.state?.content))
        }
    }

    private func showNewest() {
        // Without a running call, the last state stays.
        guard let newest = followings.last else { return }
        let stays = newest.state == nil && newest.key.matches(shown.key)
        let state = stays ? shown.state : newest.state ?? .loading(content: nil)
        if case .loading(content: nil) = state, switching == .keepingContent,
            newest.state == nil || !newest.key.matches(shown.contentKey), let content = shown.state.content
        {
            show(Shown(state: .loading(content: content), key: newest.key, contentKey: shown.contentKey))
        } else {
            show(Shown(state: state, key: newest.key, contentKey: stays ? shown.contentKey : newest.key))
        }
    }

    // MARK: Reading

    /// Returns the state of a key: the state from `follow` if the key is followed, otherwise the content in memory.
    ///
    /// SwiftUI evaluates `body` with a new key before its task follows the key. Until then, this method returns the valid content that the
    /// store has in memory, if any, so that the first frame shows it. A key counts as followed until another one is, so that its last state
    /// stays after `follow` has ended. The method never returns the content of another key, or of the same key in another store, as
    /// completed.
    ///
    /// - Parameter handle: The handle on the key.
    public func state<Param>(for handle: StoreFlowable<Param, Content>) -> LoadingState<Content> {
        state(for: Subject(handle.param, of: handle.engine), otherwise: handle.stateInMemory)
    }

    /// Returns the state of a list: the state from `follow` if the list is followed, otherwise the content in memory.
    ///
    /// - Parameter list: The handle on the list.
    public func state<Param, Element>(for list: PaginationStoreFlowable<Param, Element>) -> LoadingState<Content>
    where Content == [Element] {
        state(for: Subject(list.param, of: list.engine), otherwise: list.list.stateInMemory)
    }

    /// Returns the state of an element of a list: the state from `follow` if the element is followed, otherwise the element in memory.
    ///
    /// - Parameters:
    ///   - list: The handle on the list.
    ///   - id: The identity of the element.
    public func state<Param>(for list: PaginationStoreFlowable<Param, Content>, element id: Content.ID) -> LoadingState<Content>
    where Content: Identifiable {
        state(
            for: Subject(ElementOfList(list: list.param, id: id), of: list.engine), otherwise: list.list.stateInMemory?.element(id))
    }

    /// Returns the state of a key; loading without content until the key is followed.
    ///
    /// With ``Switching/keepingContent``, a key that is not followed yet is loading with the content of the followed key.
    ///
    /// - Parameter id: The key.
    public func state(for id: some Hashable) -> LoadingState<Content> {
        state(for: Subject(id), otherwise: nil)
    }

    private func state(for key: Subject, otherwise inMemory: @autoclosure () -> LoadingState<Content>?) -> LoadingState<Content> {
        access(.key, .state)
        if isPreview || key.matches(shown.key) { return shown.state }
        return inMemory() ?? .loading(content: switching == .keepingContent ? shown.state.content : nil)
    }

    /// Returns whether the shown content belongs to a key, and not to the previously followed key.
    ///
    /// - Parameter id: The key.
    /// - Returns: `false` if ``Switching/keepingContent`` shows the content of another key.
    public func isContent(of id: some Hashable) -> Bool {
        access(.key)
        if isPreview { return true }
        // The same key of another store is another key.
        let isOfOtherStore = shown.key.map { $0.key == shown.contentKey?.key && !$0.matches(shown.contentKey) } ?? false
        return Subject(id).matches(shown.contentKey) && !isOfOtherStore
    }

    /// The state of the followed key; before the first `follow`, the state of the preview, or loading without content.
    public var state: LoadingState<Content> {
        access(.state)
        return shown.state
    }

    /// The content to show: the current content, or the last good content while loading and after an error.
    public var content: Content? {
        access(.content)
        return shown.state.content
    }

    /// The error of the last fetch, if it failed.
    public var error: (any Error)? {
        access(.error)
        return shown.state.error
    }

    /// Whether a fetch of the followed key is running; before the first `follow`, whether the preview is loading, or `true`.
    public var isLoading: Bool {
        access(.isLoading)
        return shown.state.isLoading
    }

    // MARK: Pages

    var nextPage: AdditionalLoadingState { shown.state.pages(.next) }
    var previousPage: AdditionalLoadingState { shown.state.pages(.prev) }

    /// Requests a page of the list that the newest call follows.
    func requestPage(_ direction: PageDirection) async -> PageRequest {
        guard let newest = followings.last else { return .notLoadedYet }
        guard let requestPage = newest.requestPage else { return .noPage }
        return await requestPage(direction)
    }

    // MARK: Observation

    private subscript(part: Part) -> Void { () }

    /// Registers the view that is being evaluated as a reader of some parts.
    func access(_ parts: Part...) {
        for part in parts { registrar.access(self, keyPath: \.[part]) }
    }

    private func show(_ new: Shown) {
        let changes = Part.allCases.filter { hasChanged($0, to: new) }
        for part in changes { registrar.willSet(self, keyPath: \.[part]) }
        shown = new
        for part in changes.reversed() { registrar.didSet(self, keyPath: \.[part]) }
    }

    private func hasChanged(_ part: Part, to new: Shown) -> Bool {
        let (old, state) = (shown.state, new.state)
        return switch part {
        case .key: !isSame(shown.key, new.key) { $0.matches($1) } || !isSame(shown.contentKey, new.contentKey) { $0.matches($1) }
        case .state:
            old.isLoading != state.isLoading
                || [Part.content, .error, .next, .previous].contains { hasChanged($0, to: new) }
        case .content: !isSame(old.content, state.content, isUnchanged)
        case .error: !isSame(old.error, state.error, StoreCore.isSame)
        case .isLoading: old.isLoading != state.isLoading
        case .next: old.pages(.next) != state.pages(.next)
        case .previous: old.pages(.prev) != state.pages(.prev)
        case .isLoadingNext: old.pages(.next).isLoading != state.pages(.next).isLoading
        case .isLoadingPrevious: old.pages(.prev).isLoading != state.pages(.prev).isLoading
        }
    }
}

private struct ElementOfList<Param: Hashable, ID: Hashable>: Hashable {
    let list: Param
    let id: ID
}

extension PaginationStoreFlowable where Element: Identifiable, Element.ID: Sendable {
    /// Returns the states of one element of the list.
    ///
    /// If the element is `Equatable`, states that show the same element as the state before are left out. If the list no longer has the
    /// element, the state is an error with the code ``StoreError/Code/removed``.
    ///
    /// - Parameter id: The identity of the element.
    /// - Returns: A sequence; its iterators observe the list, starting at their first `next()`.
    public func publish(element id: Element.ID) -> LoadingStateSequence<Element> {
        publish().mapState { $0.element(id) }.removeDuplicates(by: isUnchanged)
    }
}

extension LoadingState {
    fileprivate func element<Element: Identifiable>(_ id: Element.ID) -> LoadingState<Element> where Content == [Element] {
        let element = content?.first { $0.id == id }
        switch self {
        case .loading: return .loading(content: element)
        case .error(let error, _): return .error(rawError: error, content: element)
        case .completed:
            guard let element else { return .error(rawError: StoreError.missingElement, content: nil) }
            return .completed(content: element, next: .none, prev: .none)
        }
    }

    /// The state of the pages in one direction; `.none` unless the list is completed.
    func pages(_ direction: PageDirection) -> AdditionalLoadingState {
        guard case .completed(content: _, let next, let prev) = self else { return .none }
        return direction == .next ? next : prev
    }
}

private func isSame<Value>(_ left: Value?, _ right: Value?, _ isSame: (Value, Value) -> Bool) -> Bool {
    switch (left, right) {
    case (nil, nil): true
    case (let left?, let right?): isSame(left, right)
    default: false
    }
}

/// Returns whether two contents are equal or the same object; content without equality always differs.
func isUnchanged<Content>(_ left: Content, _ right: Content) -> Bool {
    if let left = left as? any Equatable { return left.isEqual(to: right) }
    return Content.self is AnyObject.Type && (left as AnyObject) === (right as AnyObject)
}

extension Equatable {
    fileprivate func isEqual(to other: Any) -> Bool { (other as? Self) == self }
}

extension StoreFlowable {
    /// The state of valid content in memory, without a wait; `nil` if memory has none.
    var stateInMemory: LoadingState<Content>? {
        guard var (record, deadline) = recordInMemory() else { return nil }
        if !store.isReconciled(record) {
            store.engine.transition(BoxedKey(param)) { _, _ in }
            guard let entry = recordInMemory(), store.isReconciled(entry.record) else { return nil }
            (record, deadline) = entry
        }
        // `.min` leaves the decision to the engine, which an observer asks.
        guard deadline == .max || (deadline != .min && store.clock.nanoseconds() < deadline) else { return nil }
        // A record may have the key of a page that its store does not request.
        let pages = [(PageDirection.next, record.nextKey), (.prev, record.prevKey)].map { direction, key in
            AdditionalLoadingState.fixed(canRequestAdditionalData: store.engine.rules.hasSide(direction) && key?.isEmpty == false)
        }
        return .completed(content: record.content, next: pages[0], prev: pages[1])
    }

    /// The record in memory. Content that changes in place leaves memory for a moment, so a miss is read again under the lock, with the key
    /// that has replaced a temporary one.
    private func recordInMemory() -> (record: CacheRecord<Content>, deadline: Int64)? {
        guard let memory = store.memory else { return nil }
        if let entry = memory.entry(of: param) { return entry }
        let key = BoxedKey(param)
        return store.engine.state.withLock { state in memory.entry(of: state.resolve(key).value(as: Param.self)) }
    }
}
