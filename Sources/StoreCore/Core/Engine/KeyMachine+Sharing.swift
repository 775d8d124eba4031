#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

// A key whose record other users of a shared cacher change too (D1 to D3).
//
// Each change of the content has a base: the position up to which the content contains all changes of other users at the time of the
// decision. The cacher refuses a save if another user has changed the key since.

/// The state of a machine with regard to the changes that other users make to its key.
struct SharedKey: Hashable {
    /// The revision that the content is known to contain: of its own last save, or of the record that superseded a save.
    var known = Revision.none
    /// The changes of others that have not been read; `nil` if all are read.
    var unread: Unread?
    /// Whether the cacher is known to have no record of the key.
    var isAbsent = false

    struct Unread: Hashable {
        /// The base before the first of the changes.
        let base: Revision
        var latest: Revision
    }

    /// The revision that stands for a gap; greater than every other.
    static var gap: Revision { Revision(number: .max, writer: .max) }
}

/// A change of the content on its way to a shared cacher.
struct OutgoingChange: Hashable {
    /// The base; `nil` overwrites every change of others.
    var base: Revision?
    /// Whether the content is derived from the content before; otherwise it replaces it.
    var isDerived: Bool
    /// Whether a newer record of another user is out of date: the content was marked so, or the origin has made a change.
    var invalidates = false
    /// Whether it contains a change of `update { }` without a waiting caller, so that nothing would apply it again.
    var isUnattended = false

    /// Whether a newer record may replace the content without a loss: it was fetched, or extended by a page.
    var isReplaceable: Bool { base != nil && !isUnattended && !invalidates }
}

enum ContentChange: Hashable {
    /// A caller has set or removed the content.
    case set
    /// A fetch has returned content; `over` is the position before the fetch began.
    case fetched(over: Revision)
    /// The content was changed or extended.
    case derived
    /// The content was changed as the origin has confirmed.
    case confirmed
    /// The content was marked as out of date.
    case invalidated
}

extension KeyMachine {
    /// The position up to which the content contains all changes of others.
    var base: Revision { max(saving.elsewhere.unread?.base ?? rules.position?() ?? .none, saving.elsewhere.known) }

    /// Records a change of the content that is to be saved.
    mutating func note(_ change: ContentChange) {
        guard rules.isShared else { return }
        switch change {
        case .set:
            saving.next = OutgoingChange(base: nil, isDerived: false)
        case .fetched(let base):
            // If this save is refused too, the newer record may be older than the invalidation.
            let invalidates = saving.next?.invalidates == true || desk.invalidatePending
            saving.next = OutgoingChange(base: base, isDerived: false, invalidates: invalidates)
        case .derived, .confirmed, .invalidated:
            if saving.next == nil {
                // Derived from content that is still being saved, over the same base.
                saving.next = OutgoingChange(base: saving.running?.change?.base ?? base, isDerived: true)
            }
            // A live origin pushes what it made of the change.
            if change == .invalidated || (change == .confirmed && !rules.isLive) { saving.next?.invalidates = true }
        }
    }

    // MARK: Saving

    mutating func learn(_ revision: Revision) {
        saving.elsewhere.known = max(saving.elsewhere.known, revision)
        if let unread = saving.elsewhere.unread, unread.latest <= saving.elsewhere.known { saving.elsewhere.unread = nil }
    }

    /// The cacher has refused the running save because another user has changed the key.
    ///
    /// - Parameter newer: The newer record; `nil` if it was removed.
    /// - Returns: Whether a newer record is out of date: the refused change marked the content so, or the origin has made it.
    @discardableResult
    mutating func saveSuperseded(by newer: HeldRecord<Content>?, _ revision: Revision, _ transition: inout Transition) -> Bool {
        guard let refused = saving.end() else { return false }
        let wasOutdating = refused.change?.invalidates == true
        report(.superseded, &transition)
        if let next = saving.next, !next.isDerived, next.base.map({ $0 >= revision }) ?? true {
            // Newer content of this store replaces the refused one, unless its own base is outdated, too.
            if wasOutdating { saving.next?.invalidates = true }
            saveEnded(refused.revision, failure: nil, &transition)
            endTransition(&transition)
            return wasOutdating
        }
        let invalidates = wasOutdating || saving.next?.invalidates == true || desk.invalidatePending
        let isUnattended = refused.change?.isUnattended == true || saving.next?.isUnattended == true
        let isEdited = isUnattended || invalidates || isAwaitedByUpdates(book.revision)
        if isUnattended { dropUnsaved(&transition) }
        saving.next = nil
        saving.isRequested = false
        learn(revision)
        // The changes of these callers are applied again, to the newer content.
        resumeCallers(&transition) { need in if case .savedEdit = need { .outdated } else { nil } }
        var newer = newer
        // The copies of the refused content in linked lists have its stamp, and would take the place of the newer content.
        if isEdited, let stamp = book.linked?.value.stamp, newer?.record.fields.stamp ?? 0 <= stamp {
            newer?.record.fields.stamp = transition.stamp()
        }
        adopt(newer, &transition)
        if invalidates { invalidateNewest(&transition) }
        readAgain(&transition)
        endTransition(&transition)
        return wasOutdating
    }

    // MARK: Changes of others

    /// Another user has changed the key.
    ///
    /// - Parameter revision: The revision of the change; ``SharedKey/gap`` if changes may have been lost.
    mutating func changedElsewhere(_ revision: Revision, _ transition: inout Transition) {
        guard revision > saving.elsewhere.known else { return }
        noteUnread(revision)
        // A retried save is refused if it is outdated. The record that is read otherwise may be older than fetched content.
        retrySave(&transition)
        readAgain(&transition)
        endTransition(&transition)
    }

    private mutating func noteUnread(_ revision: Revision) {
        let earlier = saving.elsewhere.unread
        saving.elsewhere.unread = SharedKey.Unread(base: earlier?.base ?? base, latest: max(earlier?.latest ?? .none, revision))
        origin.outdateNewerRecord()
    }

    /// Another user has removed all records.
    ///
    /// A pending save continues: content that was set here is newer than the removal, and the cacher refuses content that is older.
    mutating func clearedElsewhere(_ revision: Revision, _ transition: inout Transition) {
        guard revision > saving.elsewhere.known else { return }
        guard mayAdopt else { return changedElsewhere(revision, &transition) }
        learn(revision)
        clearedWithCacher(&transition)
    }

    /// Removes the content while the whole cacher is being emptied.
    mutating func clearedWithCacher(_ transition: inout Transition) {
        cleared(cacherIsCleared: true, &transition)
        // A failed save may have kept a change of others from being read. The save is forgotten now.
        readAgain(&transition)
    }

    /// Reads the record again if a change of others is unread and no save is pending. The cacher refuses a pending save that is outdated.
    mutating func readAgain(_ transition: inout Transition) {
        if isKeptFromReading, desk.invalidatePending {
            // The change replaces the record, or is refused because of a newer one, which is then out of date.
            saving.next?.invalidates = true
            settleInvalidation(&transition)
        }
        guard let unread = saving.elsewhere.unread, mayReadAgain else { return }
        beginReading(&transition)
        origin.reread?.purpose = .newerRecord(unread.latest, isOutdated: false)
    }

    /// Marks the newest record. If this store holds none, another user may have saved one that was not announced yet; it is read first.
    mutating func invalidateNewest(_ transition: inout Transition) {
        applyInvalidation(&transition)
        if book.held == nil, rules.isShared, book.patches.isEmpty || !isTemporary {
            desk.invalidatePending = true
            if !isKeptFromReading { noteUnread(SharedKey.gap) }
            readAgain(&transition)
        } else if desk.invalidatePending {
            settleInvalidation(&transition)
        }
    }

    private var mayReadAgain: Bool { origin.isKnown && origin.reading == nil && mayAdopt }

    /// Whether a change that could not be saved keeps the record of another user from being read, perhaps for a long time.
    private var isKeptFromReading: Bool {
        origin.reading == nil && !saving.isRunning && saving.tried == book.revision && saving.next?.isReplaceable == false
    }

    /// The record has been read again.
    ///
    /// - Parameters:
    ///   - revision: The latest change that the read includes.
    ///   - isOutdated: Whether another change came during the read, which may have missed it.
    mutating func newerRecordRead(
        _ revision: Revision, isOutdated: Bool, _ result: Result<HeldRecord<Content>?, any Error>, _ transition: inout Transition
    ) {
        switch result {
        case .success, .failure(is UnacceptedVersion):
            // A change made meanwhile is saved over the old base, and learns of the newer record if it is refused.
            guard mayAdopt else { return }
            if !isOutdated { saving.elsewhere.unread = nil }
            if revision != SharedKey.gap { saving.elsewhere.known = max(saving.elsewhere.known, revision) }
            let invalidates = desk.invalidatePending
            if case .success(let newer) = result {
                adopt(newer, &transition)
                if invalidates, book.held != nil || saving.elsewhere.unread != nil { invalidateNewest(&transition) }
            } else {
                // If the content gave way to a record that its origin does not accept, both stores would fetch forever (D2).
                saving.elsewhere.isAbsent = false
                if invalidates { settleInvalidation(&transition) }
                if origin.flight?.isParked == true { restartIfWanted(forceRefresh: dropFlight(&transition), &transition) }
            }
            readAgain(&transition)
        case .failure(let error):
            if desk.invalidatePending { invalidationFailed(error, &transition) }
            // The base stays, so the cacher refuses the next save if it is outdated. A fetch that waited for the record begins without it.
            if origin.flight?.isParked == true { restartIfWanted(forceRefresh: dropFlight(&transition), &transition) }
        }
    }

    /// Accepts the record of another user; it is saved already.
    private mutating func adopt(_ newer: HeldRecord<Content>?, _ transition: inout Transition) {
        saving.elsewhere.isAbsent = newer == nil
        guard let newer else {
            cleared(cacherIsCleared: true, &transition)
            return
        }
        transition.isWriting = true
        // Valid content that gives way to an expired record, of which it is unknown whether it is newer, is fetched again.
        let isFetchedAgain = origin.flight != nil || book.held?.isValid(at: transition.now) == true
        // An invalidation by another user ends the stream too (L3).
        let endsStream = origin.isStreaming && newer.record.isInvalidated
        let wasExplicit = endsStream ? dropFlight(&transition) : dropOvertakenFlight(&transition)?.forceRefresh == true
        let forceRefresh = wasExplicit || desk.forceRefreshPending
        saving.next = nil
        if origin.isStreaming { keepValue() }
        desk.forceRefreshPending = false
        interruptPages(&transition)
        book.epoch = transition.tickets.next()
        // An expired record that is newer than the held one is the result of a fetch, so another fetch would return nothing newer.
        let isNewer = newer.record.fetchedAt > book.held?.record.fetchedAt ?? .distantPast
        let isUsable = !newer.record.isInvalidated && (isNewer || newer.isValid(at: transition.now))
        if let old = book.held?.record.content { transition.discarded.append(old) }
        book.held = newer
        if origin.isConnected { book.held?.deadline = .distantFuture }
        contentReplaced()
        forgetFailures(into: &transition.leftovers)
        let refetches = rules.policy.revalidatesOnExpiry && newer.expires(after: transition.now)
        book.held?.refetchesAtDeadline = refetches
        book.revision = transition.tickets.next()
        saveEnded(book.revision, failure: nil, &transition)
        // Linked content and delivered commands may add changes that the cacher lacks.
        if transition.links != nil { linkRead(&transition) }
        noteArrival()
        reconcileCommands(&transition)
        mirror(&transition)
        transition.publishes = true
        if isUsable {
            if desk.hasCallersOfContent { resumeWithContent(&transition) }
            if !origin.isStreaming, forceRefresh || desk.refreshCallers > 0 { restartIfWanted(forceRefresh: true, &transition) }
        } else if isFetchedAgain || newer.record.isInvalidated {
            restartIfWanted(forceRefresh: forceRefresh, &transition)
        }
    }

    /// A save has ended: reads the newer record of another user, or begins the fetch that waited for it.
    mutating func readChangesOfOthers(after error: (any Error)?, _ transition: inout Transition) {
        if let error { yieldToNewerRecord(after: error, &transition) }
        readAgain(&transition)
        // If this store has overwritten that record, or cannot, nothing will be read.
        guard origin.flight?.isParked == true, saving.elsewhere.unread == nil || isKeptFromReading else { return }
        restartIfWanted(forceRefresh: dropFlight(&transition), &transition)
    }

    // MARK: Leases

    /// The lease for a fetch was granted. Returns whether to fetch; otherwise the record is being read, or the fetch has been dropped.
    mutating func leaseGranted(_ ticket: Ticket, at position: Revision) -> Bool {
        guard origin.flight?.ticket == ticket else { return false }
        // If a change is unread although its record may be read, the last read has failed.
        guard saving.elsewhere.unread == nil || mayReadAgain || isKeptFromReading else {
            origin.changeFlight { $0.isParked = true }
            return false
        }
        origin.changeFlight { $0.base = position }
        return true
    }
}

// MARK: - Failed saves

// Changes that a shared cacher failed to take, while other users may change the key too (D3, D8).
//
// Such a change stays in the store. It is saved again as soon as a change of another user or a gap is announced, which is also how an
// outage ends. The cacher then takes it, or refuses it because of a newer record. A change that is dropped for a newer record, and that no
// caller would apply again, is reported.

extension KeyMachine {
    /// Whether a newer record of another user may replace the content: no change is being saved or has failed to be.
    var mayAdopt: Bool { saving.tried == book.revision && !saving.isRunning && saving.next?.isReplaceable != false }

    /// Whether callers of `update { }` wait for the save of this revision, so that they stop waiting when it fails.
    func isAwaitedByUpdates(_ saved: Ticket) -> Bool {
        guard rules.isShared else { return false }
        return desk.callers.values.contains { need in if case .savedEdit(let awaited) = need { awaited <= saved } else { false } }
    }

    /// A save has failed: if the cacher can never take the record, the newer record of another user replaces it.
    private mutating func yieldToNewerRecord(after error: any Error, _ transition: inout Transition) {
        guard saving.elsewhere.unread != nil, saving.tried == book.revision, let failed = saving.next,
            (error as? StoreError)?.code == .unwritableRecord || !RetryPolicy.isTransient(error)
        else { return }
        if !failed.isReplaceable { dropUnsaved(&transition) }
        // If the newer record cannot be read either, a further save is refused.
        saving.next = OutgoingChange(base: failed.base ?? saving.elsewhere.unread?.base, isDerived: true)
    }

    /// A newer record of another user takes the place of a change that nothing would apply again.
    mutating func dropUnsaved(_ transition: inout Transition) {
        report(.droppedUnsaved, &transition)
        let error = StoreError(
            .cacherFailed, "saving a change: another user of the cacher has changed the key since; apply the change to the newer content")
        resumeCallers(&transition) { need in if case .saved = need { .failure(error) } else { nil } }
    }
}
