// Optimistic mutations (C14): patches lie over the accepted content, oldest first, and are never saved.

/// An optimistic change that is not yet part of the accepted content.
struct Patch<Content: Sendable>: Sendable {
    var id: Ticket
    var isConfirmed = false
    /// The stamp of the confirmation in a store with links; unknown for commands of an earlier process.
    var confirmed = Stamp.max
    /// The stamp of the moment when a command of an earlier process was shown as delivered.
    var shown = Stamp.max
    /// The stamp of a command's change beside its own content; `nil` for that of the fold.
    var delivered: Stamp?
    /// Whether a page was added after this change, so that the mutation's response may lack it.
    var isBeforePage = false
    /// Whether content of the origin has arrived after the origin may have made this change.
    var isBeforeFetch = false
    /// The command of an outbox that this change belongs to; `nil` for a mutation.
    var command: CommandMark?
    /// The elements that the change concerns; `nil` if it may concern all of the content.
    var elements: PatchedElements<Content>?
    /// The first content of an entity that the command creates.
    var first: Content?
    var apply: @Sendable (inout Content) -> Void
}

extension KeyMachine {
    /// A mutation has begun: publishes its patch, and cancels fetches that may not contain the change. Returns the number of the patch.
    mutating func patchStarted(_ apply: @escaping @Sendable (inout Content) -> Void, _ transition: inout Transition) -> Ticket {
        transition.isWriting = true
        let id = transition.tickets.next()
        book.patches.append(Patch(id: id, apply: apply))
        if let content {
            var patched = content
            apply(&patched)
            transition.discarded.append(content)
            book.overlay = patched
        }
        book.contentNumber += 1
        mirror(&transition)
        transition.publishes = true
        book.epoch = id
        restart(dropOlderFetches(&transition), &transition)
        endTransition(&transition)
        return id
    }

    /// A mutation has succeeded: the origin's response replaces its patch, or the patch becomes part of the content once every earlier one
    /// is settled.
    mutating func patchSucceeded(_ id: Ticket, _ response: MutationResponse<Content>, _ transition: inout Transition) {
        transition.isWriting = true
        guard let position = book.patches.firstIndex(where: { $0.id == id }) else {
            // Legal: `clear()` has dropped the patch. Content fetched since then may not contain the mutation.
            guard origin.isKnown else { return }
            book.epoch = transition.tickets.next()
            restart(dropOlderFetches(&transition), &transition)
            requestFetchAfterMutations()
            fetchAfterLastPatch(&transition)
            endTransition(&transition)
            return
        }
        let isAccepted = canAccept(response, of: book.patches[position])
        book.epoch = transition.tickets.next()
        let dropped = dropOlderFetches(&transition)
        var isFresh = false
        if isAccepted {
            isFresh = accept(response, inPlaceOfPatchAt: position, &transition)
        } else {
            book.patches[position].isConfirmed = true
            book.patches[position].confirmed = transition.stamp()
            requestFetchAfterMutations()
        }
        foldConfirmed(&transition)
        restart(dropped, isFresh: isFresh, &transition)
        fetchAfterLastPatch(&transition)
        endTransition(&transition)
    }

    /// Whether the response to a mutation contains every change so far.
    func canAccept(_ response: MutationResponse<Content>, of patch: Patch<Content>) -> Bool {
        // The origin may have performed an earlier change that still runs. Its patch over the response would undo this change, or count twice.
        let isOverlapped = book.patches.contains { other in
            guard !other.isConfirmed, other.id != patch.id, other.command?.isAttempted != false else { return false }
            guard let ids = other.elements?.ids, let own = patch.elements?.ids else { return true }
            return !ids.isDisjoint(with: own)
        }
        guard book.epoch == patch.id, !isOverlapped else { return false }
        switch response {
        case .none: return false
        case .content: return !patch.isBeforePage
        // The response contains each confirmed change. A patch that still waits for an earlier mutation would be applied twice.
        case .part: return book.held != nil && !book.patches.contains { $0.isConfirmed }
        }
    }

    /// Accepts the origin's response to a mutation, beneath the pending patches. Returns whether the content is as fresh as after a fetch.
    private mutating func accept(
        _ response: MutationResponse<Content>, inPlaceOfPatchAt position: Int, _ transition: inout Transition
    ) -> Bool {
        let elements = book.patches[position].elements
        noteFolded(book.patches[position])
        transition.leftovers.append(book.patches.remove(at: position))
        switch response {
        case .none:
            return false
        case .content(let content):
            noteArrival()
            // These mutations succeeded before this one began, or the epoch would differ: the response contains them.
            discardPatches(&transition) { $0.isConfirmed }
            transition.noteChanged(from: book.held?.record.content)
            var record = CacheRecord(content: content, fetchedAt: transition.date, details: nil)
            if book.held?.record.details != nil { record.fields = fields(after: content, .kept) }
            accept(record, .confirmed, &transition)
            origin.refetchesAfterMutations = false
            if desk.hasCallersOfContent { resumeWithContent(&transition) }
            return true
        case .part(let replace):
            if let elements { noteArrival(of: elements.ids) }
            changeHeld(&transition, replace)
            // Observers see this change, unlike that of a patch which becomes part of the content.
            book.contentNumber += 1
            return false
        }
    }

    /// A mutation has failed: removes its patch and applies the others again.
    mutating func patchFailed(_ id: Ticket, _ transition: inout Transition) {
        transition.isWriting = true
        // Legal: `clear()` has dropped the patch.
        guard let position = book.patches.firstIndex(where: { $0.id == id }) else { return }
        transition.leftovers.append(book.patches.remove(at: position))
        rebuildOverlay(&transition)
        book.contentNumber += 1
        transition.publishes = true
        // A failure starts no epoch, but a fetch that revalidates the record must not confirm content that includes a folded patch. In a
        // store with stamps, each running fetch would be older than the fold (E2). The fetch begins again after the fold, so that it does
        // not send the old validator.
        let isOvertaken = origin.flight?.revalidates == true || transition.links != nil
        let dropped = isOvertaken && !foldable.isEmpty ? dropOlderFetches(&transition) : nil
        requestFetchAfterMutations()
        foldConfirmed(&transition)
        restart(dropped, &transition)
        fetchAfterLastPatch(&transition)
        endTransition(&transition)
    }

    mutating func rebuildOverlay(_ transition: inout Transition) {
        if let overlay = book.overlay { transition.discarded.append(overlay) }
        let links = book.linked?.value.overlay
        guard !book.patches.isEmpty || links != nil, var patched = book.held?.record.content else {
            if book.overlay != nil { book.overlay = nil }
            return
        }
        links?(&patched)
        for patch in book.patches { patch.apply(&patched) }
        transition.links?.followAdded(&patched, &book)
        book.overlay = patched
    }

    /// Removes matching patches without showing the content again.
    ///
    /// - Parameter folding: Whether the content contains their changes, so that their commands are noted.
    mutating func discardPatches(folding: Bool = true, _ transition: inout Transition, where fits: (Patch<Content>) -> Bool) {
        guard !book.patches.isEmpty else { return }
        for patch in book.patches where fits(patch) {
            if folding { noteFolded(patch) }
            transition.leftovers.append(patch)
        }
        book.patches.removeAll(where: fits)
    }

    /// Content was fetched or pushed: removes the changes that it contains. It may also contain those of commands with an attempt.
    ///
    /// - Parameter stamp: The time of the content, which contains the changes that were confirmed before; `nil` if it is older than the content
    ///   that it follows. The confirmation of a command may have no known time.
    mutating func contentArrived(at stamp: Stamp? = .max, _ transition: inout Transition) {
        guard !book.patches.isEmpty else { return }
        if let stamp { discardPatches(&transition) { $0.isConfirmed && ($0.confirmed == .max || $0.confirmed <= stamp) } }
        noteArrival()
    }

    /// Cancels fetches that began before the mutation began or succeeded, because they may return older content.
    ///
    /// - Returns: The canceled fetch.
    private mutating func dropOlderFetches(_ transition: inout Transition) -> Flight? {
        interruptPages(&transition)
        return dropOvertakenFlight(&transition)
    }

    /// Begins a canceled fetch again if it cannot wait for the fetch after the last mutation.
    ///
    /// - Parameter isFresh: Whether observers got fresh content instead.
    private mutating func restart(_ dropped: Flight?, isFresh: Bool = false, _ transition: inout Transition) {
        guard let dropped, desk.wantsFetch else { return }
        if dropped.forceRefresh || hasContentCallers || (desk.observers > 0 && content == nil) {
            startFlight(forceRefresh: dropped.forceRefresh, &transition)
        } else if desk.observers > 0, !isFresh {
            origin.refetchesAfterMutations = true
        }
    }

    /// Whether a caller waits for a fetch of the content. Callers of an interrupted page request do not.
    private var hasContentCallers: Bool {
        guard desk.fetchCallers > 0 else { return false }
        return desk.callers.contains { _, need in
            switch need {
            case .page, .joinedPage: false
            default: need.wantsFetch
            }
        }
    }

    /// A mutation that is settled without the origin's response may leave content that differs from the origin's.
    private mutating func requestFetchAfterMutations() {
        // An origin that pushes also pushes the result of the mutation.
        if rules.policy.revalidatesAfterMutation, !origin.isStreaming { origin.refetchesAfterMutations = true }
    }

    /// Begins the one fetch after the last mutation. It is automatic, so a failure may hold it off (C12).
    private mutating func fetchAfterLastPatch(_ transition: inout Transition) {
        guard book.patches.isEmpty, origin.refetchesAfterMutations else { return }
        origin.refetchesAfterMutations = false
        guard desk.observers > 0 else { return }
        if origin.flight == nil, origin.holdsOff(at: transition.now) {
            desk.triggerPending = true
        } else {
            startFlight(forceRefresh: false, &transition)
        }
    }

    /// The positions of the confirmed patches that wait for no earlier one, because those that are pending change other elements.
    var foldable: [Int] {
        guard book.patches.contains(where: \.isConfirmed) else { return [] }
        var pending: Set<BoxedKey> = []
        var positions: [Int] = []
        for (position, patch) in book.patches.enumerated() {
            if patch.isConfirmed, positions.count == position || patch.elements?.ids.isDisjoint(with: pending) == true {
                positions.append(position)
            } else if let ids = patch.elements?.ids {
                pending.formUnion(ids)
            } else {
                break
            }
        }
        return positions
    }

    mutating func foldConfirmed(_ transition: inout Transition) {
        let confirmed = foldable.map { book.patches[$0] }
        let ids = Set(confirmed.map(\.id))
        if !ids.isEmpty { book.patches.removeAll { ids.contains($0.id) } }
        for patch in confirmed {
            noteFolded(patch)
            transition.leftovers.append(patch)
        }
        if !confirmed.isEmpty, book.held != nil {
            // Over the changed content, the other patches show what they showed before. The end of one change does not apply them again.
            let shown = transition.links == nil && !book.patches.isEmpty ? (book.patches, book.overlay) : nil
            if shown != nil { (book.patches, book.overlay) = ([], nil) }
            // Each change keeps its own stamp, even if it has waited for an earlier one (E2).
            var rest = confirmed[...]
            while let first = rest.first {
                let group = rest.prefix { $0.delivered == first.delivered }
                rest.removeFirst(group.count)
                changeHeld(at: first.delivered, &transition) { content in for patch in group { patch.apply(&content) } }
            }
            if let shown { (book.patches, book.overlay) = shown }
        } else if book.patches.isEmpty {
            rebuildOverlay(&transition)
            mirror(&transition)
        }
        // The record may be read later, and lacks these changes.
        if !confirmed.isEmpty, book.held == nil, origin.isUnreadable { noteUnsavedChange(.invalidation, &transition) }
    }

    /// A fragment was requested after these changes were confirmed: its fields contain them, and the other fields get them now, even if the
    /// changes wait for earlier ones (E5).
    mutating func foldConfirmed(before stamp: Stamp, _ transition: inout Transition) {
        guard book.held != nil else { return }
        for patch in book.patches where patch.isConfirmed && min(patch.confirmed, patch.shown) < stamp {
            discardPatches(&transition) { $0.id == patch.id }
            changeHeld(at: patch.delivered ?? min(patch.confirmed, patch.shown), &transition, patch.apply)
        }
    }

    /// Changes the accepted content; its dates stay.
    private mutating func changeHeld(at stamp: Stamp? = nil, _ transition: inout Transition, _ change: (inout Content) -> Void) {
        if origin.isStreaming { keepValue() }
        guard var record = book.held?.record else { return }
        let old = record.content
        transition.discarded.append(old)
        transition.noteChanged(from: old, at: stamp)
        change(&record.content)
        // The origin's validator does not describe the changed content.
        if var fields = record.details?.fields {
            fields.validator = fields.validator?.withoutVersion
            fields.pages = rules.resized(fields.pages, from: old, to: record.content)
            record.fields = fields
        }
        book.held?.record = record
        sides.mergeIndex = nil
        acceptedContentChanged(.confirmed, &transition)
    }
}

/// The usable part of the origin's response to a mutation.
package enum MutationResponse<Content: Sendable>: Sendable {
    /// The origin returned no content, so the patched content is kept until the next fetch.
    case none
    /// The whole content after the mutation, which replaces the accepted content.
    case content(Content)
    /// One part of the content after the mutation, which replaces the old part.
    case part(@Sendable (inout Content) -> Void)
}
