// Saves: the machine requests one, the cacher's queue begins it, and the machine learns how it ended (C6).

extension KeyMachine {
    /// Requests a save if the cacher lacks the newest content.
    mutating func requestSave(_ transition: inout Transition) {
        guard origin.isKnown, saving.tried < book.revision else { return }
        guard rules.hasBacking else { return saveEnded(book.revision, failure: nil, &transition) }
        guard saving.lacksRequest(for: book.revision) else { return }
        if origin.isStreaming || book.linked != nil, defersSave(&transition) { return }
        // A removal makes other users fetch content that they must not store either, and then their removals would do the same here.
        if saving.elsewhere.isAbsent, saving.elsewhere.unread == nil, saving.next?.isReplaceable != false,
            book.held?.record.freshness.storage == .forbidden
        {
            saving.next = nil
            return saveEnded(book.revision, failure: nil, &transition)
        }
        saving.isRequested = true
        transition.actions.append(.save)
    }

    /// Whether the newest content, which has come by itself, is saved later (L6, E8).
    private mutating func defersSave(_ transition: inout Transition) -> Bool {
        let isPushed = origin.stream?.pace.revision == book.revision
        // A caller that waits for a save must not wait for the interval as well.
        guard isPushed || book.linked?.value.pace.revision == book.revision, rules.policy.saveInterval > .zero,
            !desk.callers.values.contains(where: \.isSavedNeed)
        else { return false }
        let interval = rules.policy.saveInterval
        guard isPushed else { return book.linked?.value.pace.defers(by: interval, at: transition.now) == true }
        var isDeferred = false
        origin.changeStream { isDeferred = $0.pace.defers(by: interval, at: transition.now) }
        return isDeferred
    }

    /// The requested save begins.
    ///
    /// - Returns: The record to save; `nil` if the cacher is to remove the record. In a shared cacher, also the base of the change.
    mutating func saveBegan() -> (record: CacheRecord<Content>?, base: Revision?) {
        saving.begin(book.revision)
        saving.elsewhere.isAbsent = false
        let base = saving.running?.change?.base
        guard book.held?.isStandIn == false, let record = book.held?.record, record.freshness.storage == .allowed else {
            return (nil, base)
        }
        return (record, base)
    }

    mutating func saveFinished(
        _ error: (any Error)?, removing: Bool, sharedRevision: Revision = .none, _ transition: inout Transition
    ) {
        guard var ended = saving.end() else { return }
        if let error {
            if isAwaitedByUpdates(ended.revision) { ended.change?.isUnattended = true }
            saving.keep(ended.change)
            report(.cacherFault(removing ? .remove : .save, error), &transition)
        } else {
            if rules.isShared {
                learn(sharedRevision)
                saving.elsewhere.isAbsent = removing
            }
            report(removing ? .removed : .saved, &transition)
        }
        saveEnded(ended.revision, failure: error, &transition)
        readChangesOfOthers(after: error, &transition)
        endTransition(&transition)
    }

    /// The whole cacher is being emptied, so the removal of this key's record needs no call of its own.
    ///
    /// A running save is the exception: its record is removed when it has ended.
    mutating func cacherIsEmptied(_ transition: inout Transition) {
        saving.isRequested = false
        // The running read may have loaded a record that is removed now.
        origin.forgetNewerRecord()
        guard !saving.isRunning else { return }
        saving.next = nil
        saveEnded(book.revision, failure: nil, &transition)
    }

    /// The cacher has taken the content of a revision, or failed to. Resumes the callers that wait for it.
    mutating func saveEnded(_ revision: Ticket, failure: (any Error)?, _ transition: inout Transition) {
        saving.tried = revision
        noteUnsavedChange(failure == nil ? nil : .content, &transition)
        guard !desk.callers.isEmpty else { return }
        let result = failure.map { CallerResult<Content>.failure($0) } ?? .done
        resumeCallers(&transition) { need in
            switch need {
            case .saved(let awaited), .savedEdit(let awaited): awaited <= revision ? result : nil
            default: nil
            }
        }
    }

    // MARK: Failed saves

    mutating func noteUnsavedChange(_ failed: SavePhase.Failure?, _ transition: inout Transition) {
        if failed != nil {
            transition.actions.append(.saveFailed)
        } else if saving.failure != nil {
            transition.actions.append(.saveRecovered)
        }
        saving.failure = failed
    }

    /// The cacher has taken another key's record, so it may take this one now.
    mutating func otherKeyWasSaved(_ transition: inout Transition) {
        retrySave(&transition)
        endTransition(&transition)
    }

    /// Lets a caller wait until the cacher has all content accepted so far. Retries a failed save first.
    mutating func admitSaver(_ id: CallerID, _ transition: inout Transition) -> CallerResult<Content>? {
        retrySave(&transition)
        if desk.invalidatePending {
            desk.register(id, .allSaved)
        } else if saving.tried < book.revision {
            desk.register(id, .saved(book.revision))
        } else if saving.failure != nil {
            return .failure(
                StoreError(.cacherFailed, "saving that content is out of date: its record could not be read; invalidate the key again"))
        } else {
            return .done
        }
        return nil
    }

    /// Whether the failed save can be tried again now.
    var mayRetrySave: Bool {
        switch saving.failure {
        case nil: false
        // If the revisions differ, newer content is being saved.
        case .content: saving.tried == book.revision
        // If the key is live, its observers and callers have seen it without content, and a fetch serves them.
        case .invalidation: isIdle
        }
    }

    /// Makes the failed save due again; `endTransition` requests it.
    mutating func retrySave(_ transition: inout Transition) {
        guard mayRetrySave else { return }
        switch saving.failure {
        case nil:
            break
        case .content:
            // The same content gets a new number, so that it counts as unsaved and callers can wait for this attempt.
            book.revision = transition.tickets.next()
        case .invalidation:
            noteUnsavedChange(nil, &transition)
            forgetFailures(into: &transition.leftovers)
            origin.forget()
            desk.invalidatePending = true
            beginReading(&transition)
        }
    }
}
