// Saves: the machine requests one, the cacher's queue begins it, and the machine learns how it ended (C6).

extension KeyMachine {
    /// Requests a save if the cacher lacks the newest content.
    mutating func requestSave(_ turn: inout Turn) {
        guard isRead, lastTriedRevision < revision else { return }
        guard rules.hasBacking else { return saveEnded(revision, failure: nil, &turn) }
        guard !isSaveRequested, saving != revision else { return }
        if stream != nil, defersSave(&turn) { return }
        isSaveRequested = true
        turn.actions.append(.save)
    }

    /// The requested save begins.
    ///
    /// - Returns: The record to save; `nil` if the cacher is to remove the record.
    mutating func saveBegan() -> CacheRecord<Content>? {
        (isSaveRequested, saving) = (false, revision)
        sharedSaveBegan()
        guard let record = held?.record, record.freshness.storage == .allowed else { return nil }
        return record
    }

    /// The running save has ended.
    ///
    /// - Parameters:
    ///   - error: The cacher's error, if it failed.
    ///   - removing: Whether the record was removed.
    ///   - sharedRevision: The revision of the record in a shared cacher.
    ///   - turn: The transition.
    mutating func saveFinished(
        _ error: (any Error)?, removing: Bool, sharedRevision: Revision = .none, _ turn: inout Turn
    ) {
        guard let saved = saving else { return }
        if error != nil { editorsGaveUp(saved) }
        saving = nil
        sharedSaveEnded(error == nil ? sharedRevision : nil)
        if let error {
            report(.cacherFault(removing ? .remove : .save, error), &turn)
        } else {
            report(removing ? .removed : .saved, &turn)
        }
        saveEnded(saved, failure: error, &turn)
        if let error { giveWay(after: error, &turn) }
        readAgain(&turn)
        endTurn(&turn)
    }

    /// The whole cacher is being emptied, so the removal of this key's record needs no call of its own.
    ///
    /// A running save is the exception: its record is removed when it has ended.
    mutating func cacherIsEmptied(_ turn: inout Turn) {
        isSaveRequested = false
        if saving == nil { sharing.pending = nil }
        if saving == nil { saveEnded(revision, failure: nil, &turn) }
    }

    /// The cacher has taken the content of a revision, or failed to. Resumes the callers that wait for it.
    mutating func saveEnded(_ revision: Ticket, failure: (any Error)?, _ turn: inout Turn) {
        lastTriedRevision = revision
        noteUnsavedChange(failure == nil ? nil : .content, &turn)
        guard !callers.isEmpty else { return }
        let answer = failure.map { CallerAnswer<Content>.failure($0) } ?? .done
        answerCallers(&turn) { need in
            switch need {
            case .saved(let awaited), .savedEdit(let awaited): awaited <= revision ? answer : nil
            default: nil
            }
        }
    }

    // MARK: Failed saves

    /// Records whether the last save failed.
    mutating func noteUnsavedChange(_ failed: UnsavedChange?, _ turn: inout Turn) {
        if failed != nil {
            turn.actions.append(.saveFailed)
        } else if unsavedChange != nil {
            turn.actions.append(.saveRecovered)
        } else {
            return
        }
        unsavedChange = failed
    }

    /// The cacher has taken another key's record, so it may take this one now.
    mutating func otherKeyWasSaved(_ turn: inout Turn) {
        retrySave(&turn)
        endTurn(&turn)
    }

    /// Lets a caller wait until the cacher has all content accepted so far. Retries a failed save first.
    mutating func admitSaver(_ id: CallerID, _ turn: inout Turn) -> CallerAnswer<Content>? {
        retrySave(&turn)
        if invalidatePending {
            register(id, .allSaved)
        } else if lastTriedRevision < revision {
            register(id, .saved(revision))
        } else if unsavedChange != nil {
            return .failure(
                StoreError(.cacherFailed, "saving that content is out of date: its record could not be read, and its key is in use"))
        } else {
            return .done
        }
        return nil
    }

    /// Whether the failed save can be tried again now.
    var mayRetrySave: Bool {
        switch unsavedChange {
        case nil: false
        // If the revisions differ, newer content is being saved.
        case .content: lastTriedRevision == revision
        // If the key is live, its observers and callers have seen it without content, and a fetch serves them.
        case .invalidation: isAtRest
        }
    }

    /// Makes the failed save due again; `endTurn` requests it.
    mutating func retrySave(_ turn: inout Turn) {
        guard mayRetrySave else { return }
        switch unsavedChange {
        case nil:
            break
        case .content:
            // The same content gets a new number, so that it counts as unsaved and callers can wait for this attempt.
            revision = turn.tickets.next()
        case .invalidation:
            noteUnsavedChange(nil, &turn)
            forgetFailures(into: &turn.leftovers)
            (isRead, invalidatePending) = (false, true)
            beginReading(&turn)
        }
    }
}
