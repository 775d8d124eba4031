// Optimistic mutations (C14): patches lie over the truth in the order in which they were applied, and are never saved themselves.

extension KeyMachine {
    /// A mutation has begun: its patch is seen at once, and a fetch that may not know of it goes nowhere.
    ///
    /// - Returns: The patch's number.
    mutating func patchStarted(_ apply: @escaping @Sendable (inout Content) -> Void, _ turn: inout Turn) -> Ticket {
        let id = turn.tickets.next()
        patches.append(Patch(id: id, apply: apply))
        if let content {
            var patched = content
            apply(&patched)
            turn.discarded.append(content)
            overlay = patched
        }
        mirror(&turn)
        turn.publishes = true
        startEpochForPatch(&turn)
        endTurn(&turn)
        return id
    }

    /// A mutation has succeeded: its patch is as good as true, and becomes part of the truth once every earlier one is settled.
    mutating func patchSucceeded(_ id: Ticket, _ turn: inout Turn) {
        // Legal: `clear()` has forgotten the patch.
        guard let position = patches.firstIndex(where: { $0.id == id }) else { return }
        patches[position].isConfirmed = true
        startEpochForPatch(&turn)
        foldConfirmed(&turn)
        endTurn(&turn)
    }

    /// A mutation has failed: only its own patch is taken back, the others are applied anew.
    mutating func patchFailed(_ id: Ticket, _ turn: inout Turn) {
        // Legal: `clear()` has forgotten the patch.
        guard let position = patches.firstIndex(where: { $0.id == id }) else { return }
        patches.remove(at: position)
        rebuildOverlay(&turn)
        turn.publishes = true
        foldConfirmed(&turn)
        endTurn(&turn)
    }

    /// Applies all patches over the truth again.
    mutating func rebuildOverlay(_ turn: inout Turn) {
        if let overlay { turn.discarded.append(overlay) }
        guard !patches.isEmpty, var patched = held?.record.content else {
            overlay = nil
            return
        }
        for patch in patches { patch.apply(&patched) }
        overlay = patched
    }

    /// A fetch that began before the mutation did, or before it was confirmed, may bring the world before it.
    private mutating func startEpochForPatch(_ turn: inout Turn) {
        guard flight != nil else { return }
        let wasExplicit = dropFlight(&turn)
        // Observers with content wait for the one fetch after the last mutation; whoever else waits gets a fetch of this epoch.
        if wasExplicit || fetchCallers > 0 || (observers > 0 && content == nil) { startFlight(explicit: wasExplicit, &turn) }
    }

    /// Makes the confirmed patches at the front part of the truth, and fetches once when the last mutation is settled.
    private mutating func foldConfirmed(_ turn: inout Turn) {
        let confirmed = patches.prefix { $0.isConfirmed }
        patches.removeFirst(confirmed.count)
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
        if patches.isEmpty, observers > 0 { startFlight(explicit: false, &turn) }
    }
}
