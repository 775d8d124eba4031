#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

// The patches of an outbox's commands. They differ from the patches of mutations in three ways: they survive `clear()`, they may exist
// before the record is read, and the record that contains a change names its command, so that a restart does not apply it twice (O7).

/// The command of an outbox that a patch belongs to.
package struct CommandMark: Hashable, Sendable {
    package var id: UUID
    /// The place in the order of all commands of the outbox.
    package var order: UInt64
    /// Whether a delivery was attempted, so that the origin may have performed the command.
    package var isAttempted: Bool
    /// The time of the submission; a record fetched before lacks the change.
    package var submitted: Date

    package init(id: UUID, order: UInt64, isAttempted: Bool = false, submitted: Date = .distantFuture) {
        (self.id, self.order, self.isAttempted, self.submitted) = (id, order, isAttempted, submitted)
    }
}

/// The elements of lists that a command changes.
package struct PatchedElements<Content: Sendable>: Sendable {
    package let ids: Set<BoxedKey>
    /// Returns whether a list or a page has one of them.
    package let isIn: @Sendable (_ list: Content) -> Bool

    package init(_ ids: Set<BoxedKey>, isIn: @escaping @Sendable (_ list: Content) -> Bool) { (self.ids, self.isIn) = (ids, isIn) }
}

package struct ShownCommand<Content: Sendable>: Sendable {
    package var mark: CommandMark
    /// Whether the origin has performed the command, so that its patch is folded unless the record names it.
    package var isDelivered: Bool
    /// The stamp of the change, earlier than the command's response; `nil` for that of the fold.
    package var delivered: Stamp?
    /// The elements that the command changes in every list; `nil` if it changes one content.
    package var elements: PatchedElements<Content>?
    package var apply: @Sendable (inout Content) -> Void

    package init(
        mark: CommandMark, isDelivered: Bool = false, delivered: Stamp? = nil, elements: PatchedElements<Content>? = nil,
        apply: @escaping @Sendable (inout Content) -> Void
    ) {
        (self.mark, self.isDelivered, self.delivered, self.elements, self.apply) = (mark, isDelivered, delivered, elements, apply)
    }
}

/// The part of a created entity's content that this process knows.
package enum CreatedContent<Content: Sendable>: Sendable {
    /// The content that the origin has responded with.
    case response(Content)
    /// None: the origin has responded with the key alone, so the content that the store shows is kept.
    case kept
    /// None, because another process or an earlier launch has received the content.
    case unknown
}

extension CacheRecord {
    /// The latest time at which content of the origin has become part of the record; `nil` if that is unknown.
    fileprivate var lastArrival: Date? {
        guard let fields = details?.fields else { return fetchedAt }
        // A further page does not date its list.
        if let pages = fields.pages, pages.all.count > 1 { return nil }
        // A row of a list does not date its entity (E3). The values of a list's rows are those of their entities.
        let newest = fields.places == nil ? max(fields.stamp ?? 0, fields.parts?.values.max() ?? 0) : 0
        return max(fetchedAt, Date(timeIntervalSince1970: Double(newest) / 1e6))
    }
}

extension KeyMachine {
    /// Shows the changes of commands, in place of the patches of their older payloads and of the command that they supersede.
    mutating func commandsShown(_ commands: [ShownCommand<Content>], insteadOf superseded: UUID? = nil, _ transition: inout Transition) {
        let known = book.patches.count
        if commands.count == 1, let id = commands.first?.mark.id {
            removePatches(&transition) { $0.id == id || $0.id == superseded }
        } else {
            let ids = Set(commands.map(\.mark.id))
            removePatches(&transition) { ids.contains($0.id) || $0.id == superseded }
        }
        // Nothing below the new patches has changed, so that a command costs the same however many are pending.
        var isAppended = book.patches.count == known
        for command in commands where !book.foldedCommands.contains(command.mark.id) {
            let position = place(of: command.mark)
            isAppended = isAppended && position == book.patches.endIndex
            var patch = Patch(
                id: transition.tickets.next(), isConfirmed: command.isDelivered, delivered: command.delivered, command: command.mark,
                elements: command.elements, apply: command.apply)
            if command.isDelivered, transition.links != nil { patch.shown = transition.stamp() }
            book.patches.insert(patch, at: position)
        }
        let hasDelivered = commands.contains(where: \.isDelivered)
        guard origin.isKnown else {
            // Only the record knows whether it contains the change of a delivered command.
            if hasDelivered { beginReading(&transition) }
            return
        }
        transition.isWriting = true
        if commands.contains(where: \.mark.isAttempted) { noteArrivalOfRecord() }
        if isAppended { applyPatches(from: known, &transition) } else { rebuildOverlay(&transition) }
        patchesChanged(&transition)
        if hasDelivered {
            // In a store with stamps, the running fetch would be older than the fold (E2).
            let isOvertaken = transition.links != nil && !foldable.isEmpty
            let dropped = isOvertaken ? dropOvertakenFlight(&transition) : nil
            foldDelivered(&transition)
            if let dropped { restartIfWanted(forceRefresh: dropped.forceRefresh, &transition) }
        }
        endTransition(&transition)
    }

    /// The position of a command's patch: before the first patch of a later command.
    private func place(of command: CommandMark) -> Int {
        var place = book.patches.endIndex
        for position in book.patches.indices.reversed() {
            guard let other = book.patches[position].command else { continue }
            guard other.order > command.order else { break }
            place = position
        }
        return place
    }

    /// Applies the newest patches to the content that readers see.
    private mutating func applyPatches(from position: Int, _ transition: inout Transition) {
        guard position < book.patches.endIndex, var patched = content else { return }
        if let overlay = book.overlay { transition.discarded.append(overlay) }
        for patch in book.patches[position...] { patch.apply(&patched) }
        transition.links?.followAdded(&patched, &book)
        book.overlay = patched
    }

    /// Content came from the origin, be it a page, a row, a response, or a record: it may contain the changes of commands with an attempt.
    /// Of a list, only a page or some elements may have come.
    ///
    /// - Parameter date: The time of the content, if it is an earlier one; commands that were submitted later are not in it.
    mutating func noteArrival(ofPage page: Content? = nil, of ids: Set<BoxedKey>? = nil, at date: Date? = nil) {
        for position in book.patches.indices {
            guard let command = book.patches[position].command, command.isAttempted else { continue }
            if let date, command.submitted >= date { continue }
            if let elements = book.patches[position].elements {
                if let page, !elements.isIn(page) { continue }
                if let ids, elements.ids.isDisjoint(with: ids) { continue }
            }
            book.patches[position].isBeforeFetch = true
        }
    }

    /// The held record may come from an earlier launch, or from another process, and from a fetch during an attempt there.
    mutating func noteArrivalOfRecord() {
        guard let record = book.held?.record else { return }
        noteArrival(ofPage: record.content, at: record.lastArrival)
    }

    /// A delivery of a command begins: a response can be accepted if nothing else changes the content from now on.
    ///
    /// - Parameter isElsewhere: Whether it has begun in another process, perhaps before the held content has arrived.
    mutating func commandAttempted(_ id: UUID, isElsewhere: Bool, _ transition: inout Transition) {
        guard let position = book.patches.firstIndex(where: { $0.command?.id == id }) else { return }
        book.patches[position].command?.isAttempted = true
        if isElsewhere { noteArrivalOfRecord() }
        // A record that is read later is older than the response, unless another process may save it meanwhile.
        guard origin.isKnown || !rules.isShared else { return }
        book.epoch = transition.tickets.next()
        book.patches[position].id = book.epoch
        book.patches[position].isBeforePage = false
    }

    /// The origin has performed a command. The content is known. Returns the commands that the content contains, once it is saved.
    mutating func commandDelivered(
        _ id: UUID, _ response: MutationResponse<Content>, at delivered: Stamp? = nil, _ transition: inout Transition
    ) -> [UUID] {
        if let position = book.patches.firstIndex(where: { $0.command?.id == id && !$0.isConfirmed }) {
            book.patches[position].delivered = delivered
            let patch = book.patches[position]
            if patch.isBeforeFetch, book.held != nil, !canAccept(response, of: patch) {
                // The content that arrived may contain the change already, so the origin has the last word.
                transition.isWriting = true
                (book.patches[position].isConfirmed, book.patches[position].confirmed) = (true, transition.stamp())
                foldConfirmed(&transition)
                if book.patches.isEmpty { origin.refetchesAfterMutations = false }
                applyInvalidation(&transition)
                endTransition(&transition)
            } else {
                patchSucceeded(patch.id, response, &transition)
            }
        }
        // A patch that waits for an earlier one is not yet part of the content. Without a patch, the content contains the change or was
        // cleared.
        let isDone = !book.patches.contains { $0.command?.id == id }
        return isDone && !book.foldedCommands.contains(id) ? book.foldedCommands + [id] : book.foldedCommands
    }

    /// Commands were refused, taken back, or cleared: removes their patches.
    mutating func commandsDropped(_ ids: Set<UUID>, _ transition: inout Transition) {
        let dropped = book.patches.filter { patch in patch.command.map { ids.contains($0.id) } ?? false }
        guard let last = dropped.last else { return }
        guard dropped.allSatisfy({ $0.first == nil }) else {
            removePatches(&transition) { ids.contains($0.id) }
            origin.isAbandoned = !isTemporary
            cleared(&transition)
            return
        }
        // The others are applied once, however many are dropped.
        let kept = origin.isKnown ? last.command?.id : nil
        removePatches(&transition) { ids.contains($0.id) && $0.id != kept }
        if origin.isKnown { patchFailed(last.id, &transition) }
    }

    /// The outbox has forgotten commands that the saved content contains.
    mutating func commandsRetired(_ ids: [UUID], _ transition: inout Transition) {
        book.foldedCommands.removeAll { ids.contains($0) }
        // The record is saved without these names when it changes next; until then they are harmless.
        if book.held?.record.details?.fields.commands != nil { nameFoldedCommands() }
        endTransition(&transition)
    }

    // MARK: Creating

    /// A command creates the entity of this temporary key, which the origin and the cacher do not know.
    ///
    /// If it supersedes another command that creates the entity, or has a new payload, its content replaces the older one (O9, O17).
    mutating func commandCreates(
        _ command: CommandMark, _ first: Content, insteadOf superseded: UUID? = nil, _ transition: inout Transition
    ) {
        transition.isWriting = true
        origin.isAbandoned = false
        let isSuperseding = book.patches.contains { $0.first != nil && $0.command?.id == superseded }
        removePatches(&transition) { $0.id == command.id || $0.id == superseded }
        book.patches.insert(Patch(id: transition.tickets.next(), command: command, first: first) { _ in }, at: 0)
        let wasRead = origin.isKnown
        forgetPending(&transition)
        origin.becomeKnown()
        dropFlight(&transition)
        origin.forgetKeys()
        supersedePages(&transition)
        if book.held == nil || isSuperseding { create(first, &transition) }
        if desk.hasCallersOfContent || !wasRead { resumeWithContent(&transition) }
        // No fetch begins again, so nothing else would end the wait.
        if desk.refreshCallers > 0 { resumeCallers(&transition) { $0 == .refresh ? .done : nil } }
        if !wasRead { readmitCallers(&transition) }
        endTransition(&transition)
    }

    /// Creates the entity again after its key was cleared, because it exists as long as its command does.
    ///
    /// - Returns: Whether a command creates the entity.
    mutating func createAgain(_ transition: inout Transition) -> Bool {
        guard let first = book.patches.first(where: { $0.first != nil })?.first else { return false }
        create(first, &transition)
        return true
    }

    /// Whether a command creates the entity of this key, which the origin does not know.
    var isTemporary: Bool { book.patches.contains { $0.first != nil } }

    /// Ends a request for a fetch of an entity that the origin does not have: it is not created yet, or was removed.
    ///
    /// - Returns: `false` if a fetch must begin.
    mutating func endsWithoutOrigin(forceRefresh: Bool, _ transition: inout Transition) -> Bool {
        if !book.patches.isEmpty, isTemporary {
            desk.triggerPending = false
            book.held?.neverExpire()
            resumeWithContent(&transition)
            resumeCallers(&transition) { $0 == .refresh ? .done : nil }
            return true
        }
        if origin.isAbandoned {
            refuseAbandoned(&transition)
            return true
        }
        guard origin.removal != nil else { return false }
        if forceRefresh { origin.removal = nil } else { refuse(StoreError.removedEntity, &transition) }
        return !forceRefresh
    }

    /// Whether one of these commands alone creates the entity of this key.
    func isCreated(onlyBy ids: Set<UUID>) -> Bool {
        isTemporary && book.patches.allSatisfy { patch in patch.first == nil || patch.command.map { ids.contains($0.id) } == true }
    }

    /// The key turns out to be temporary, and its entity is not created.
    mutating func abandoned(_ transition: inout Transition) {
        guard !origin.isAbandoned, !isTemporary else { return }
        origin.isAbandoned = true
        guard origin.flight != nil else { return }
        dropFlight(&transition)
        refuseAbandoned(&transition)
        endTransition(&transition)
    }

    /// Fails a request for a fetch of a temporary key without an entity: the origin does not know the key.
    mutating func refuseAbandoned(_ transition: inout Transition) {
        refuse(
            StoreError(
                .entityNotCreated,
                "fetching: the key is temporary, and the command that creates its entity has failed or was taken back; "
                    + "retry that command, or stop using the key"),
            &transition)
    }

    /// Fails a request for a fetch that would have no result.
    mutating func refuse(_ error: StoreError, _ transition: inout Transition) {
        desk.triggerPending = false
        book.held?.refetchesAtDeadline = false
        transition.publishes = true
        flightFailed(error, &transition)
    }

    private mutating func create(_ first: Content, _ transition: inout Transition) {
        var record = CacheRecord(content: first, fetchedAt: transition.date, details: nil)
        // Never saved, and never fetched: the origin does not know the key.
        record.freshness.storage = .forbidden
        transition.noteChanged(from: book.held?.record.content)
        accept(record, .set, &transition)
        book.held?.neverExpire()
    }

    /// The key turns out to be temporary, and another key has replaced it: ends the fetch of this one.
    ///
    /// - Returns: The callers that the other key can serve, oldest first. Those that wait for a save of this key stay.
    mutating func replaced(_ transition: inout Transition) -> [(id: CallerID, need: CallerNeed)] {
        let moved = desk.callers.filter { !$0.value.waitsForSave }.sorted { $0.key < $1.key }
        for (id, _) in moved { desk.forget(id) }
        desk.observers = 0
        // An outbox that has ended may have shown the entity.
        if isTemporary, let content = book.held?.record.content {
            transition.discarded.append(content)
            book.held = nil
        }
        discardPatches(folding: false, &transition) { _ in true }
        rebuildOverlay(&transition)
        dropFlight(&transition)
        forgetFailures(into: &transition.leftovers)
        endTransition(&transition)
        return moved.map { ($0.key, $0.value) }
    }

    /// The temporary key is replaced: removes its content, its patches and its observers from this machine, and returns them.
    mutating func commandMoved(
        _ id: UUID, _ transition: inout Transition
    ) -> (content: Content?, patches: [Patch<Content>], isObserved: Bool) {
        let patches = book.patches.filter { $0.command != nil && $0.command?.id != id }
        let moved = (content: book.held?.record.content, patches: patches, isObserved: desk.observers > 0)
        removePatches(&transition) { _ in true }
        desk.observers = 0
        cleared(&transition)
        return moved
    }

    /// The entity of this key was created under a temporary one.
    ///
    /// - Parameter isObserved: Whether the temporary key has observers, which will observe this key.
    /// - Returns: The commands that the content contains, once it is saved.
    mutating func commandCreated(
        _ id: UUID, _ known: CreatedContent<Content>, shown: Content, isObserved: Bool, _ moved: [Patch<Content>],
        _ transition: inout Transition
    ) -> [UUID] {
        // The origin may have kept the temporary key.
        let shown = firstContentRemoved(id, &transition) ?? shown
        if !book.foldedCommands.contains(id) {
            switch known {
            case .response(let content):
                book.foldedCommands.append(id)
                updated(content, &transition)
            case .kept:
                book.foldedCommands.append(id)
                // Derived, so that it does not overwrite what another process has saved.
                if book.held == nil { updated(shown, as: .derived, &transition) } else { acceptedContentChanged(.confirmed, &transition) }
            case .unknown:
                // A record of this key is that of the origin.
                if book.held == nil { showUntilFetched(shown, isObserved: isObserved, &transition) }
            }
        }
        for patch in moved {
            guard let command = patch.command else { continue }
            book.patches.insert(patch, at: place(of: command))
        }
        if !moved.isEmpty {
            rebuildOverlay(&transition)
            patchesChanged(&transition)
        }
        endTransition(&transition)
        return book.foldedCommands.contains(id) ? book.foldedCommands : book.foldedCommands + [id]
    }

    /// Removes the first content of the entity from this machine, and the patch that keeps the key from being fetched.
    ///
    /// - Returns: The content; `nil` if this machine has none, or has content of the origin in its place.
    private mutating func firstContentRemoved(_ id: UUID, _ transition: inout Transition) -> Content? {
        guard let position = book.patches.firstIndex(where: { $0.first != nil && $0.command?.id == id }) else { return nil }
        transition.leftovers.append(book.patches.remove(at: position))
        mirror(&transition)
        // Another process may have saved content of the origin, which may be saved here, too.
        guard let content = book.held?.record.content, book.held?.record.freshness.storage == .forbidden else { return nil }
        transition.discarded.append(content)
        book.held = nil
        return content
    }

    /// Shows content that only stands in for that of the origin: it is out of date, and is not saved. An earlier removal continues.
    private mutating func showUntilFetched(_ content: Content, isObserved: Bool, _ transition: inout Transition) {
        transition.isWriting = true
        book.held = HeldRecord(CacheRecord(content: content, fetchedAt: transition.date, details: nil), deadline: .distantPast)
        book.held?.invalidate()
        book.held?.isStandIn = true
        // Older than all content of the origin, so that any replaces it: that of a running fetch, of another process, or of a row.
        transition.noteFetched(1, over: nil)
        settleLinks(&transition)
        contentReplaced()
        rebuildOverlay(&transition)
        mirror(&transition)
        transition.publishes = true
        if origin.flight == nil, desk.wantsFetch || isObserved { startFlight(forceRefresh: false, &transition) }
        // The observers of the temporary key join later, and until then nothing else keeps the content.
        if isObserved { origin.changeFlight { $0.isPromised = true } }
    }

    /// The record was read: drops the patches that it contains, and applies the others.
    mutating func reconcileCommands(_ transition: inout Transition) {
        if let names = book.held?.record.details?.fields.commands {
            book.foldedCommands += names.filter { !book.foldedCommands.contains($0) }
            // Nothing else forgets the commands of other processes.
            if rules.isShared { book.foldedCommands.removeFirst(max(0, book.foldedCommands.count - 1_000)) }
            removePatches(&transition) { names.contains($0.id) }
        }
        rebuildOverlay(&transition)
        guard !book.patches.isEmpty else { return }
        patchesChanged(&transition)
        if !foldable.isEmpty { foldDelivered(&transition) }
    }

    /// Adds the changes of delivered commands to a record that does not name them. If it may contain one, the origin has the last word.
    private mutating func foldDelivered(_ transition: inout Transition) {
        let isDoubtful = foldable.contains { book.patches[$0].isBeforeFetch }
        foldConfirmed(&transition)
        if isDoubtful { applyInvalidation(&transition) }
    }

    /// Records that the content contains the change of a command.
    mutating func noteFolded(_ patch: Patch<Content>) {
        guard let command = patch.command, !book.foldedCommands.contains(command.id) else { return }
        book.foldedCommands.append(command.id)
    }

    /// Writes the names of the folded commands into the record.
    mutating func nameFoldedCommands() {
        book.held?.record.fields.commands = book.foldedCommands.isEmpty ? nil : book.foldedCommands
    }

    private mutating func removePatches(_ transition: inout Transition, of fits: (CommandMark) -> Bool) {
        discardPatches(folding: false, &transition) { $0.command.map(fits) == true }
    }

    private mutating func patchesChanged(_ transition: inout Transition) {
        book.contentNumber += 1
        mirror(&transition)
        transition.publishes = true
    }
}
