extension StoreFlowable {
    /// Shows a change at once, makes it true at the origin, and accepts the content that the origin responds with.
    ///
    /// ```swift
    /// try await posts[id].mutate {
    ///     $0.isLiked = true
    /// } perform: {
    ///     try await api.like(id)
    /// }
    /// ```
    ///
    /// When `perform` fails or is canceled, the store takes back this change alone. When `perform` returns the store's `Content`, that content
    /// replaces the data in the same transition, and the store fetches nothing. When `perform` returns anything else, the change becomes part of
    /// the data once every earlier mutation of the key is settled.
    ///
    /// A response is accepted only if it cannot be outdated: since this mutation began, no other mutation began or succeeded, no update,
    /// invalidation or fetch changed the data, and no page was added. When the last mutation of an observed key is
    /// settled and one of them failed or had no accepted response, the store fetches the key once; ``StorePolicy/revalidatesAfterMutation`` turns
    /// that off.
    ///
    /// - Parameters:
    ///   - patch: The change. The store applies it again, under its lock, whenever the data below it changes. So it must do nothing else, must
    ///     fit any data (find an element of a list by its identity, never by its index), and neither it nor the `deinit` of what it
    ///     replaces may call the store.
    ///   - perform: Makes the change true at the origin; runs in the caller's task.
    /// - Returns: The value that `perform` returned, after the data is saved.
    /// - Throws: The error that `perform` threw; `CancellationError` where the task was canceled before the change was shown.
    @discardableResult
    public func mutate<Result>(
        optimistically patch: @escaping @Sendable (_ content: inout Content) -> Void, perform: () async throws -> Result
    ) async throws -> Result {
        // Not an overload: a closure without `return` would select the one whose result is the content.
        try await engine.mutate(
            key, { content in content.change(as: Content.self, patch) }, perform: perform,
            response: { result in
                guard Result.self == Content.self, let content = result as? Content else { return .none }
                return .content(BoxedContent(content))
            })
    }

    /// Shows a change of one element of a list at once, makes it true at the origin, and accepts the element that the origin responds with.
    ///
    /// ```swift
    /// try await posts["swift"].mutate(element: 44) {
    ///     $0.isLiked = true
    /// } perform: {
    ///     try await api.like(44)
    /// }
    /// ```
    ///
    /// The store finds the element by its `id` each time it applies the change. Over a list without the element the change does nothing, so it
    /// cannot trap when the list got shorter. When `perform` returns an `Element`, the store puts it in the place of the element with this
    /// `id` and fetches nothing, on the conditions of ``mutate(optimistically:perform:)``. Pages may have been added meanwhile,
    /// but no earlier success may still wait for another mutation to be settled. The list keeps its date and its pages. Cost: one pass over
    /// the list up to the element, each time the store applies the change.
    ///
    /// - Parameters:
    ///   - id: The identity of the element.
    ///   - patch: The change of the element; it must do nothing else, and must not call the store.
    ///   - perform: Makes the change true at the origin; runs in the caller's task.
    /// - Returns: The value that `perform` returned, after the list is saved.
    /// - Throws: The error that `perform` threw; `CancellationError` where the task was canceled before the change was shown.
    @discardableResult
    public func mutate<Element: Identifiable & Sendable, Result>(
        element id: Element.ID, optimistically patch: @escaping @Sendable (_ element: inout Element) -> Void,
        perform: () async throws -> Result
    ) async throws -> Result where Content == [Element], Element.ID: Sendable {
        try await engine.mutate(
            key, { content in content.change(as: [Element].self) { $0.change(id, patch) } }, perform: perform,
            response: { result in
                guard Result.self == Element.self, let element = result as? Element else { return .none }
                return .part { content in content.change(as: [Element].self) { $0.change(id) { $0 = element } } }
            })
    }
}

extension Array where Element: Identifiable {
    /// Changes the first element with an identity; does nothing where the list has none.
    fileprivate mutating func change(_ id: Element.ID, _ change: (inout Element) -> Void) {
        guard let place = firstIndex(where: { $0.id == id }) else { return }
        change(&self[place])
    }
}
