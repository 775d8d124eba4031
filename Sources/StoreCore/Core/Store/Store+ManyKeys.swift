extension Store {
    /// Returns the content of several keys, fetched side by side where it is missing or out of date.
    ///
    /// ```swift
    /// let favorites = try await articles.requireData(for: ids)
    /// ```
    ///
    /// Each key has its own fetch, shared with all other callers; a ``BatchFetcher`` combines them into one request. Cost: one task for
    /// each key.
    ///
    /// - Parameter params: The keys; a key that occurs twice counts once.
    /// - Returns: The content of every key.
    /// - Throws: The error of the first key that fails; the call then no longer waits for the others. `CancellationError` as soon as the
    ///   task is canceled.
    public func requireData(for params: some Sequence<Param>) async throws -> [Param: Content] {
        try await withThrowingTaskGroup { group in
            for param in Set(params) { group.addTask { (param, try await self[param].requireData()) } }
            return try await group.reduce(into: [:]) { contents, found in contents[found.0] = found.1 }
        }
    }

    /// Returns the content of several keys, without the keys that have none after their fetches.
    ///
    /// - Parameter params: The keys; a key that occurs twice counts once.
    /// - Returns: The content of each key for which ``StoreFlowable/getData(from:)`` returns content.
    public func getData(for params: some Sequence<Param>) async -> [Param: Content] {
        await withTaskGroup { group in
            for param in Set(params) { group.addTask { (param, await self[param].getData()) } }
            return await group.reduce(into: [:]) { contents, found in contents[found.0] = found.1 }
        }
    }

    /// Returns the states of several keys as one sequence.
    ///
    /// ```swift
    /// for await state in articles.publish(ids) { show(state.content ?? [:]) }
    /// ```
    ///
    /// The content of a state contains each key that has content, so one failed key does not hide the others. The state is an error if any
    /// key has an error. Otherwise it is loading while any key is loading, and completed once all keys are. In all other respects, the
    /// rules of ``LoadingStateSequence/combineState(_:)`` apply.
    ///
    /// Cost: a task and an observer for each key, and one dictionary for each state.
    ///
    /// - Parameter params: The keys; a key that occurs twice counts once. Without keys, the only state is completed and empty.
    public func publish(_ params: some Sequence<Param>) -> LoadingStateSequence<[Param: Content]> {
        // The order decides which of several errors a state has.
        var seen: Set<Param> = []
        return LoadingStateSequence.combined(params.filter { seen.insert($0).inserted }.map { ($0, self[$0].publish()) })
    }
}
