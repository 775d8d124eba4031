// Optimistic mutations (C14): patches lie over the truth in the order in which they were applied, and are never saved themselves.

extension KeyMachine {
    /// A mutation has begun: its patch is seen at once, and a fetch that may not know of it goes nowhere.
    ///
    /// - Returns: The patch's number.
    mutating func patchStarted(_ apply: @escaping @Sendable (inout Content) -> Void, _ turn: inout Turn) -> Ticket {
        turn.isWriting = true
        let id = turn.tickets.next()
        patches.append(Patch(id: id, apply: apply))
        if let content {
            var patched = content
            apply(&patched)
            turn.discarded.append(content)
            overlay = patched
        }
        contentNumber += 1
        mirror(&turn)
        turn.publishes = true
        epoch = id
        restart(dropOlderFetches(&turn), &turn)
        endTurn(&turn)
        return id
    }

    /// A mutation has succeeded: the origin's response takes the place of its patch, or the patch becomes part of the content once every
    /// earlier one is settled.
    mutating func patchSucceeded(_ id: Ticket, _ response: MutationResponse<Content>, _ turn: inout Turn) {
        turn.isWriting = true
        guard let position = patches.firstIndex(where: { $0.id == id }) else {
            // Legal: `clear()` has forgotten the patch; but what was fetched since may not know of the mutation.
            guard isRead else { return }
            epoch = turn.tickets.next()
            restart(dropOlderFetches(&turn), &turn)
            oweFetch()
            fetchAfterLastPatch(&turn)
            endTurn(&turn)
            return
        }
        let isAccepted = canAccept(response, of: patches[position])
        epoch = turn.tickets.next()
        let dropped = dropOlderFetches(&turn)
        var isFresh = false
        if isAccepted {
            isFresh = accept(response, inPlaceOfPatchAt: position, &turn)
        } else {
            patches[position].isConfirmed = true
            oweFetch()
        }
        foldConfirmed(&turn)
        restart(dropped, isFresh: isFresh, &turn)
        fetchAfterLastPatch(&turn)
        endTurn(&turn)
    }

    /// Whether the response to a mutation contains every change up to now.
    private func canAccept(_ response: MutationResponse<Content>, of patch: Patch) -> Bool {
        guard epoch == patch.id else { return false }
        switch response {
        case .none: return false
        case .content: return !patch.isBeforePage
        // The response contains each confirmed change; one that still waits for an earlier mutation would be applied to it again.
        case .part: return held != nil && !patches.contains { $0.isConfirmed }
        }
    }

    /// Accepts the origin's response to a mutation, beneath the patches that are still pending.
    ///
    /// - Returns: Whether the content is as fresh as after a fetch.
    private mutating func accept(
        _ response: MutationResponse<Content>, inPlaceOfPatchAt position: Int, _ turn: inout Turn
    ) -> Bool {
        turn.leftovers.append(patches.remove(at: position))
        switch response {
        case .none:
            return false
        case .content(let content):
            // They succeeded before this mutation began, or the epoch would be another one: the response has them in it.
            discardPatches(&turn) { $0.isConfirmed }
            var record = CacheRecord(content: content, fetchedAt: turn.date, details: nil)
            if held?.record.details != nil { record.fields = fields(after: content, .kept) }
            accept(record, .derived, &turn)
            owesFetch = false
            if fetchCallers > refreshCallers { answerAfterUpdate(&turn) }
            return true
        case .part(let replace):
            changeHeld(&turn, replace)
            // Unlike a patch that becomes part of the content, this is seen.
            contentNumber += 1
            return false
        }
    }

    /// A mutation has failed: only its own patch is taken back, the others are applied anew.
    mutating func patchFailed(_ id: Ticket, _ turn: inout Turn) {
        turn.isWriting = true
        // Legal: `clear()` has forgotten the patch.
        guard let position = patches.firstIndex(where: { $0.id == id }) else { return }
        turn.leftovers.append(patches.remove(at: position))
        rebuildOverlay(&turn)
        contentNumber += 1
        turn.publishes = true
        // A failure is no epoch, but a fetch that was asked to confirm a record must not confirm what a fold makes of it. It starts again
        // only after the fold, so that it does not send the old content's validator.
        let dropped = patches.first?.isConfirmed == true && flight?.revalidates == true ? dropOlderFetches(&turn) : nil
        oweFetch()
        foldConfirmed(&turn)
        restart(dropped, &turn)
        fetchAfterLastPatch(&turn)
        endTurn(&turn)
    }

    /// Applies all patches over the truth again.
    mutating func rebuildOverlay(_ turn: inout Turn) {
        if let overlay { turn.discarded.append(overlay) }
        guard !patches.isEmpty, var patched = held?.record.content else {
            if overlay != nil { overlay = nil }
            return
        }
        for patch in patches { patch.apply(&patched) }
        overlay = patched
    }

    /// Takes out patches that fit.
    mutating func discardPatches(_ turn: inout Turn, where fits: (Patch) -> Bool) {
        guard !patches.isEmpty else { return }
        for patch in patches where fits(patch) { turn.leftovers.append(patch) }
        patches.removeAll(where: fits)
    }

    /// Drops fetches that began before the mutation did, or before it succeeded, because they may return the content from before it.
    ///
    /// - Returns: The fetch that was dropped.
    private mutating func dropOlderFetches(_ turn: inout Turn) -> Flight? {
        interruptPages(&turn)
        let dropped = flight
        dropFlight(&turn)
        return dropped
    }

    /// Begins a dropped fetch again where it cannot wait for the fetch after the last mutation.
    ///
    /// - Parameter isFresh: Whether observers have got fresh content in its place.
    private mutating func restart(_ dropped: Flight?, isFresh: Bool = false, _ turn: inout Turn) {
        guard let dropped, isWanted else { return }
        if dropped.isExplicit || hasContentCallers || (observers > 0 && content == nil) {
            startFlight(explicit: dropped.isExplicit, &turn)
        } else if observers > 0, !isFresh {
            owesFetch = true
        }
    }

    /// Whether a caller waits for a fetch of the content; callers for a page that was interrupted do not need one.
    private var hasContentCallers: Bool {
        guard fetchCallers > 0 else { return false }
        return callers.contains { _, need in
            switch need {
            case .page, .joinedPage: false
            default: need.wantsFetch
            }
        }
    }

    /// The content may differ from the origin's once a mutation is settled without the origin's response.
    private mutating func oweFetch() {
        if rules.policy.revalidatesAfterMutation { owesFetch = true }
    }

    /// The one fetch after the last mutation; it is automatic, so it waits where a failure holds it off (C12).
    private mutating func fetchAfterLastPatch(_ turn: inout Turn) {
        guard patches.isEmpty, owesFetch else { return }
        owesFetch = false
        guard observers > 0 else { return }
        if flight == nil, holdsOff(at: turn.now) { triggerPending = true } else { startFlight(explicit: false, &turn) }
    }

    private mutating func foldConfirmed(_ turn: inout Turn) {
        let confirmed = patches.prefix { $0.isConfirmed }
        patches.removeFirst(confirmed.count)
        for patch in confirmed { turn.leftovers.append(patch) }
        if !confirmed.isEmpty, held != nil {
            changeHeld(&turn) { content in
                for patch in confirmed { patch.apply(&content) }
            }
        } else if patches.isEmpty {
            rebuildOverlay(&turn)
            mirror(&turn)
        }
    }

    /// Changes the accepted content; its dates stay.
    private mutating func changeHeld(_ turn: inout Turn, _ change: (inout Content) -> Void) {
        guard var record = held?.record else { return }
        let old = record.content
        turn.discarded.append(old)
        change(&record.content)
        // The content is no longer what the origin's validator names.
        if var fields = record.details?.fields {
            fields.validator = nil
            fields.pages = resized(fields.pages, from: old, to: record.content)
            record.fields = fields
        }
        held?.record = record
        mergeIndex = nil
        truthChanged(.derived, &turn)
    }
}

/// The origin's response to a mutation, as far as a store can use it.
enum MutationResponse<Content: Sendable>: Sendable {
    /// Nothing.
    case none
    /// The content after the mutation.
    case content(Content)
    /// One part of the content after the mutation, put in the place of the old one.
    case part(@Sendable (inout Content) -> Void)
}
