extension Store {
    /// Whether a record in memory agrees with the entities that it shows.
    func isReconciled(_ record: CacheRecord<Content>) -> Bool {
        engine.links.isEmpty || record.details?.reconciled == engine.entityChanges
    }

    /// Hides an entity in every list that shows it, sends its removal to the origin, and forgets the entity.
    ///
    /// ```swift
    /// try await articles.remove(7) { try await api.delete(7) }
    /// ```
    ///
    /// When `perform` fails or is canceled, all lists show the element again, at its place. When `perform` succeeds, the element leaves the
    /// loaded lists, even if their fetches began earlier. Values that other content shows stay as they are. Observers of the key get an
    /// error with the code ``StoreError/Code/removed``, and the key is not fetched again before `refresh()` or
    /// `publish(forceRefresh: true)`.
    ///
    /// The store remembers the newest 1 000 removals until the process ends or the scope is cleared. A removal that is running then has no
    /// further effect. A list that is only on disk may show a removed element until its next fetch.
    ///
    /// - Parameters:
    ///   - param: The key of the entity.
    ///   - perform: Sends the removal to the origin; runs in the caller's task.
    /// - Returns: The value that `perform` returned, after the record is removed.
    /// - Throws: The error that `perform` threw; ``StoreError/Code/closed``.
    @discardableResult
    public func remove<Result>(_ param: Param, perform: () async throws -> Result) async throws -> Result {
        let key = BoxedKey(param)
        engine.state.withLock { state in engine.beginStamps(&state) }
        let start = engine.transition(key) { _, transition -> Stamp in
            transition.removal = .began
            return transition.stamp()
        }
        guard let began = start else { throw StoreError.closedStore }
        do {
            let result = try await perform()
            await engine.write(key) { machine, transition in machine.removed(since: began, &transition) }
            return result
        } catch {
            engine.transition(key) { _, transition in if !transition.isScopeCleared(since: began) { transition.removal = .failed } }
            throw error
        }
    }
}

extension KeyMachine {
    /// The origin has removed the entity. After the scope was cleared, the key may be that of another one. Returns the new revision.
    fileprivate mutating func removed(since began: Stamp, _ transition: inout Transition) -> Ticket {
        if transition.isScopeCleared(since: began) { return book.revision }
        let stamp = transition.stamp()
        transition.removal = .succeeded(stamp)
        dropFlight(&transition)
        // A refresh from before the removal does not fetch the entity again.
        desk.forceRefreshPending = false
        if desk.refreshCallers > 0 { resumeCallers(&transition) { $0 == .refresh ? .done : nil } }
        forgetEntity(&transition)
        origin.removal = stamp
        return cleared(&transition)
    }
}

extension KeyMachine.Transition {
    fileprivate func isScopeCleared(since stamp: Stamp) -> Bool { (links?.clocks.rows.withLock { $0.floor } ?? 0) >= stamp }
}

extension StoreError {
    static var removedEntity: StoreError {
        StoreError(.removed, "fetching: the entity was removed; call refresh() to fetch its key again")
    }

    static var missingElement: StoreError {
        StoreError(.removed, "observing an element: the list no longer has an element with this identity; stop showing it")
    }
}
