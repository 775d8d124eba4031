// Updates, clearing, and invalidation (C5), and the step that every change of the content ends with (C6).

extension KeyMachine {
    /// Sets the content; `nil` is the same as `cleared(_:)`. Returns the new revision.
    @discardableResult
    mutating func updated(
        _ content: Content?, keys: PageKeys = .kept, as change: ContentChange = .set, _ transition: inout Transition
    ) -> Ticket {
        guard let content else { return cleared(&transition) }
        transition.isWriting = true
        let forceRefresh = dropOvertakenFlight(&transition)?.forceRefresh == true || desk.forceRefreshPending
        forgetPending(&transition)
        if keys == .kept { interruptPages(&transition) } else { supersedePages(&transition) }
        transition.noteChanged(from: book.held?.record.content)
        var record = CacheRecord(content: content, fetchedAt: transition.date, details: nil)
        if keys != .kept || book.held?.record.details != nil { record.fields = fields(after: content, keys) }
        let (wasRead, awaitedKeys) = (origin.isKnown, origin.awaitsKeys)
        origin.becomeKnown()
        // A list keeps the page keys of its record, even if the record has not been read yet.
        if keys != .kept || !rules.isList {
            origin.forgetKeys()
        } else if !wasRead {
            beginReading(&transition)
            origin.reread?.purpose = .pageKeys(isOutdated: false)
        }
        accept(record, change, &transition)
        // No record will tell whether it contains the changes of delivered commands.
        if !wasRead, !foldable.isEmpty { foldConfirmed(&transition) }
        // Skips the scan if no caller can be resumed: thousands may wait for the cacher or for a refresh, and updates are as frequent.
        if desk.hasCallersOfContent || !wasRead { resumeWithContent(&transition) }
        if !origin.isStreaming, forceRefresh || desk.refreshCallers > 0 { restartIfWanted(forceRefresh: true, &transition) }
        // Page requests that waited for the old keys continue, too.
        if !wasRead || (awaitedKeys && !origin.awaitsKeys) { readmitCallers(&transition) }
        endTransition(&transition)
        return book.revision
    }

    /// Resumes callers that no longer need a fetch with the content.
    mutating func resumeWithContent(_ transition: inout Transition) {
        let result = content.map { CallerResult.content($0) }
        resumeCallers(&transition) { need in
            switch need {
            case .content, .origin, .cached: result
            case .freshness, .prefetch: .done
            case .pageAfterFetch: .page(.notLoadedYet)
            default: nil
            }
        }
    }

    /// Drops requests that waited for the cache read and are outdated.
    mutating func forgetPending(_ transition: inout Transition) {
        if desk.forceRefreshPending { desk.forceRefreshPending = false }
        if desk.invalidatePending { settleInvalidation(&transition) }
    }

    /// The details that stay when the content is set: the pages, that the content must not be stored (RFC 9111 §5.2.2.5), and that its stream
    /// has ended normally (L4).
    func fields(after content: Content, _ keys: PageKeys) -> RecordDetails.Fields {
        var fields = RecordDetails.Fields()
        if let record = book.held?.record {
            let held = record.fields
            fields.pages = rules.resized(held.pages, from: record.content, to: content)
            fields.freshness.storage = held.freshness.storage
            fields.validator = held.validator?.withoutVersion
            (fields.nextKey, fields.prevKey, fields.guessedEnd) = (held.nextKey, held.prevKey, held.guessedEnd)
            fields.isComplete = held.isComplete
        }
        if case .replaced(let next, let prev) = keys { (fields.nextKey, fields.prevKey, fields.guessedEnd) = (next, prev, nil) }
        if keys != .kept, rules.list?.window != nil { fields.pages = nil }
        return fields
    }

    /// Removes the content and all details.
    ///
    /// - Parameter cacherIsCleared: Whether the whole cacher is being emptied, so that this key needs no removal of its own.
    /// - Returns: The new revision.
    @discardableResult
    mutating func cleared(cacherIsCleared: Bool = false, _ transition: inout Transition) -> Ticket {
        transition.isWriting = true
        let forceRefresh = dropFlight(&transition) || desk.forceRefreshPending || desk.refreshCallers > 0
        // A prefetch does not fetch cleared content again.
        if desk.hasCallersOfContent { resumeCallers(&transition) { $0 == .prefetch ? .done : nil } }
        forgetPending(&transition)
        let (wasRead, awaitedKeys) = (origin.isKnown, origin.awaitsKeys)
        origin.forgetKeys()
        supersedePages(&transition)
        origin.becomeKnown()
        if let old = book.held?.record.content { transition.discarded.append(old) }
        book.held = nil
        book.epoch = transition.tickets.next()
        (origin.refetchesAfterMutations, origin.isUnreadable) = (false, false)
        forgetFailures(into: &transition.leftovers)
        sides.mergeIndex = nil
        // The commands of an outbox will still be delivered.
        discardPatches(&transition) { $0.command == nil || $0.isConfirmed }
        acceptedContentChanged(.set, &transition)
        if cacherIsCleared { cacherIsEmptied(&transition) }
        if book.patches.isEmpty || !createAgain(&transition) { restartIfWanted(forceRefresh: forceRefresh, &transition) }
        if !wasRead || awaitedKeys { readmitCallers(&transition) }
        endTransition(&transition)
        return book.revision
    }

    mutating func invalidated(_ transition: inout Transition) {
        transition.isWriting = true
        if origin.isKnown {
            invalidateNewest(&transition)
        } else {
            desk.invalidatePending = true
            beginReading(&transition)
        }
        endTransition(&transition)
    }

    mutating func applyInvalidation(_ transition: inout Transition) {
        // The content of a temporary key has no origin that could have newer content.
        if !book.patches.isEmpty, isTemporary { return }
        let forceRefresh = dropFlight(&transition)
        book.epoch = transition.tickets.next()
        interruptPages(&transition)
        if book.held != nil {
            book.held?.invalidate()
            acceptedContentChanged(.invalidated, &transition)
        }
        restartIfWanted(forceRefresh: forceRefresh, &transition)
    }

    /// Callers that waited for a fetch of the old epoch wait for a fetch of the new one.
    mutating func restartIfWanted(forceRefresh: Bool, _ transition: inout Transition) {
        if desk.wantsFetch { startFlight(forceRefresh: forceRefresh, &transition) }
    }

    // MARK: The step of every change

    /// Accepts a record: every later read returns it (C6). Its lifetime begins at `arrival`, by default now.
    mutating func accept(
        _ record: consuming CacheRecord<Content>, keepingContent: Bool = false, at arrival: MonotonicInstant? = nil,
        _ change: ContentChange, _ transition: inout Transition
    ) {
        book.epoch = transition.tickets.next()
        if origin.isStreaming { keepValue() }
        var accepted = HeldRecord(record, expiry: rules.expiry, jitter: rules.policy.expiryJitter, now: arrival ?? transition.now)
        if origin.isConnected { accepted.deadline = .distantFuture }
        accepted.refetchesAtDeadline = rules.policy.revalidatesOnExpiry && accepted.expires(after: transition.now)
        if book.held == nil {
            book.held = accepted
        } else {
            // Swapped instead of assigned, so that neither record is copied.
            book.held?.exchange(with: &accepted)
            transition.discarded.append((consume accepted).record.content)
        }
        if !keepingContent { contentReplaced() }
        forgetFailures(into: &transition.leftovers)
        acceptedContentChanged(change, &transition)
        if desk.invalidatePending { settleInvalidation(&transition) }
    }

    /// Counts a new content, which the merge index of a list does not describe.
    mutating func contentReplaced() {
        book.contentNumber += 1
        sides.mergeIndex = nil
    }

    /// The accepted content has changed: applies the patches again, mirrors the record, and assigns a new revision.
    mutating func acceptedContentChanged(_ change: ContentChange, _ transition: inout Transition) {
        note(change)
        if transition.links != nil { settleLinks(&transition) }
        book.revision = transition.tickets.next()
        if !book.foldedCommands.isEmpty { nameFoldedCommands() }
        rebuildOverlay(&transition)
        mirror(&transition)
        transition.publishes = true
    }

    func mirror(_ transition: inout Transition) {
        if rules.hasFront { transition.mirrors = true }
    }
}

// MARK: - Closing (C23): the key keeps only what its cacher still lacks

extension KeyMachine {
    /// The store is closed: fails the callers, except those that wait for a save, and drops everything but the pending save.
    mutating func closed(_ transition: inout Transition) {
        resumeCallers(&transition) { need in need.waitsForSave ? nil : .failure(StoreError.closedStore) }
        desk.observers = 0
        (desk.forceRefreshPending, desk.triggerPending, origin.refetchesAfterMutations) = (false, false, false)
        book.held?.refetchesAtDeadline = false
        dropFlight(&transition)
        supersedePages(&transition)
        // Not folded: an outbox still has the commands of these patches, and the next store gets them again.
        discardPatches(folding: false, &transition) { _ in true }
        rebuildOverlay(&transition)
        retrySave(&transition)
        endTransition(&transition)
    }
}
