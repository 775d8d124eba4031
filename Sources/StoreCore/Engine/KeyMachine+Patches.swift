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
        let restarts = dropOlderFetches(&turn)
        restart(restarts, &turn)
        endTurn(&turn)
        return id
    }

    /// A mutation has succeeded: its patch is as good as true, and becomes part of the truth once every earlier one is settled.
    mutating func patchSucceeded(_ id: Ticket, _ turn: inout Turn) {
        turn.isWriting = true
        guard let position = patches.firstIndex(where: { $0.id == id }) else {
            // Legal: `clear()` has forgotten the patch; but what was fetched since may not know of the mutation.
            guard isRead else { return }
            restart(dropOlderFetches(&turn), &turn)
            fetchAfterLastPatch(&turn)
            endTurn(&turn)
            return
        }
        patches[position].isConfirmed = true
        settlePatches(dropsFetches: true, &turn)
        endTurn(&turn)
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
        // A failure is no epoch, but a fetch that was asked to confirm a record must not confirm what a fold makes of it.
        settlePatches(dropsFetches: patches.first?.isConfirmed == true && flight?.revalidates == true, &turn)
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

    /// What is to be fetched again because it was dropped.
    private enum Restart { case nothing, wanted, explicit }

    /// A fetch that began before the mutation did, or before it was confirmed, may bring the world before it.
    private mutating func dropOlderFetches(_ turn: inout Turn) -> Restart {
        supersedePages(&turn)
        guard flight != nil else { return .nothing }
        let wasExplicit = dropFlight(&turn)
        guard isWanted else { return .nothing }
        if wasExplicit { return .explicit }
        // Observers with content wait for the one fetch after the last mutation; whoever else waits gets a fetch of this epoch.
        return fetchCallers > 0 || (observers > 0 && content == nil) ? .wanted : .nothing
    }

    private mutating func restart(_ restart: Restart, _ turn: inout Turn) {
        if restart != .nothing { startFlight(explicit: restart == .explicit, &turn) }
    }

    /// Makes the confirmed patches at the front part of the truth, and fetches once when the last mutation is settled.
    ///
    /// What is dropped starts again only when the truth is the new one, lest it send the old one's validator.
    private mutating func settlePatches(dropsFetches: Bool, _ turn: inout Turn) {
        let restarts = dropsFetches ? dropOlderFetches(&turn) : .nothing
        foldConfirmed(&turn)
        restart(restarts, &turn)
        fetchAfterLastPatch(&turn)
    }

    /// The one fetch after the last mutation; nobody insists on it, so where a failure holds it off it waits (C12).
    private mutating func fetchAfterLastPatch(_ turn: inout Turn) {
        guard patches.isEmpty, observers > 0 else { return }
        if flight == nil, holdsOff(at: turn.now) { triggerPending = true } else { startFlight(explicit: false, &turn) }
    }

    private mutating func foldConfirmed(_ turn: inout Turn) {
        let confirmed = patches.prefix { $0.isConfirmed }
        patches.removeFirst(confirmed.count)
        for patch in confirmed { turn.leftovers.append(patch) }
        if !confirmed.isEmpty, var record = held?.record {
            turn.discarded.append(record.content)
            for patch in confirmed { patch.apply(&record.content) }
            // The content is no longer what the origin's validator names.
            record.validator = nil
            held?.record = record
            mergeIndex = nil
            truthChanged(&turn)
        } else if patches.isEmpty {
            rebuildOverlay(&turn)
            mirror(&turn)
        }
    }
}
