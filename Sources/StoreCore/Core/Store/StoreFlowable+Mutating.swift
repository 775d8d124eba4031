extension StoreFlowable {
    /// Shows a change at once, sends it to the origin, and accepts the content that the origin responds with.
    ///
    /// ```swift
    /// try await posts[id].mutate {
    ///     $0.isLiked = true
    /// } perform: {
    ///     try await api.like(id)
    /// }
    /// ```
    ///
    /// When `perform` fails or is canceled, the store takes back this change alone. When `perform` returns the store's `Content`, that
    /// content replaces the data in the same transition, and the store fetches nothing. When `perform` returns anything else, the change
    /// becomes part of the data once every earlier mutation of the key has settled.
    ///
    /// A response is accepted only if it cannot be outdated. Since this mutation began, no other mutation may have begun or succeeded. No
    /// update, invalidation or fetch may have changed the data, and no page may have been added. If one of the mutations failed or had no
    /// accepted response, the store fetches an observed key once after the last one settles. ``StorePolicy/revalidatesAfterMutation`` turns
    /// that off.
    ///
    /// - Parameters:
    ///   - patch: The change. The store applies it again, under its lock, whenever the data below it changes. It must have no side effects
    ///     and must work on any data, so find an element of a list by identity, never by index. Neither the closure nor the `deinit` of a
    ///     value that it replaces may call the store.
    ///   - perform: Sends the change to the origin; runs in the caller's task.
    /// - Returns: The value that `perform` returned, after the data is saved.
    /// - Throws: The error that `perform` threw; `CancellationError` if the task was canceled before the change was shown.
    @discardableResult
    public func mutate<Result>(
        optimistically patch: @escaping @Sendable (_ content: inout Content) -> Void, perform: () async throws -> Result
    ) async throws -> Result {
        // Not an overload: a closure without `return` would select the overload for results of type `Content`.
        try await engine.mutate(
            key, { content in content.change(as: Content.self, patch) }, perform: perform,
            response: { result in
                guard Result.self == Content.self, let content = result as? Content else { return .none }
                return .content(BoxedContent(content))
            })
    }

    /// Shows a change of one list element at once, sends it to the origin, and accepts the element that the origin responds with.
    ///
    /// ```swift
    /// try await posts["swift"].mutate(element: 44) {
    ///     $0.isLiked = true
    /// } perform: {
    ///     try await api.like(44)
    /// }
    /// ```
    ///
    /// The store finds the element by its `id` each time it applies the change. The change does nothing to a list without the element, so
    /// it cannot trap when the list gets shorter.
    ///
    /// If `perform` returns an `Element`, the store replaces the element with this `id` and fetches nothing, under the conditions of
    /// ``mutate(optimistically:perform:)``. There are two differences: pages may have been added meanwhile, but no earlier success may
    /// still wait for another mutation to settle. The list keeps its date and its pages.
    ///
    /// Cost: one pass over the list up to the element, each time the store applies the change.
    ///
    /// - Parameters:
    ///   - id: The identity of the element.
    ///   - patch: The change of the element; it must have no side effects and must not call the store.
    ///   - perform: Sends the change to the origin; runs in the caller's task.
    /// - Returns: The value that `perform` returned, after the list is saved.
    /// - Throws: The error that `perform` threw; `CancellationError` if the task was canceled before the change was shown.
    @discardableResult
    public func mutate<Element: Identifiable & Sendable, Result>(
        element id: Element.ID, optimistically patch: @escaping @Sendable (_ element: inout Element) -> Void,
        perform: () async throws -> Result
    ) async throws -> Result where Content == [Element], Element.ID: Sendable {
        if let entities = engine.entities(of: Element.self) {
            return try await entities.mutate(
                BoxedKey(id), { content in content.change(as: Element.self, patch) },
                perform: { () async throws -> Result in
                    // An entity that was evicted takes the element, which becomes its content (E5).
                    engine.transition(key) { _, _ in }
                    return try await perform()
                },
                response: { result in
                    guard Result.self == Element.self, let element = result as? Element else { return .none }
                    return .content(BoxedContent(element))
                })
        }
        return try await engine.mutate(
            key, { content in content.change(as: [Element].self) { $0.change(id, patch) } }, perform: perform,
            response: { result in
                guard Result.self == Element.self, let element = result as? Element else { return .none }
                return .part { content in content.change(as: [Element].self) { $0.change(id) { $0 = element } } }
            })
    }
}

extension Array where Element: Identifiable {
    /// Changes the first element with an identity; does nothing if the list has no such element.
    package mutating func change(_ id: Element.ID, _ change: (inout Element) -> Void) {
        guard let place = firstIndex(where: { $0.id == id }) else { return }
        change(&self[place])
    }
}
