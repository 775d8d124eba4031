#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

// The commands of an outbox that change the content of this store.

extension StoreEngine {
    /// Learns which commands of a registered outbox are pending, or delivered and not retired. Records need not name any other command.
    package func knowCommands(_ ids: some Sequence<UUID>) {
        let ids = Set(ids)
        state.withLock { state in
            if state.knownCommands == nil { state.knownCommands = [] }
            state.knownCommands?.formUnion(ids)
        }
    }

    /// Removes the names of retired commands from a loaded record. Otherwise they would accumulate there.
    ///
    /// The record of another process may name a command before this process learns of its delivery. The latest names of shared records
    /// therefore stay.
    func forgetRetiredCommands(in record: inout CacheRecord<BoxedContent>) {
        guard let names = record.fields.commands, let known = state.withLock({ $0.knownCommands }) else { return }
        let latest = rules.isShared ? names.suffix(32) : []
        let kept = names.filter { known.contains($0) || latest.contains($0) }
        if kept.count < names.count { record.fields.commands = kept.isEmpty ? nil : kept }
    }

    // A command changes the content of one key, or elements in every list of this store: `param` is `nil` then.

    /// Shows the changes of commands as patches, and removes the patch of a superseded command.
    package func showCommands(_ commands: [ShownCommand<BoxedContent>], of param: BoxedKey?, insteadOf superseded: UUID? = nil) {
        guard let param else { return showElementCommands(commands, insteadOf: superseded) }
        transition(param) { key, transition in key.machine.commandsShown(commands, insteadOf: superseded, &transition) }
    }

    /// Returns the stamp of this moment, later than all stamps that the store and its linked stores have given.
    package func stamp() -> Stamp { clocks.stamp(at: time.date) }

    /// - Parameter isElsewhere: Whether the attempt has begun in another process.
    package func attemptCommand(_ id: UUID, of param: BoxedKey?, isElsewhere: Bool) {
        changeCommands(of: param) { state in
            if param == nil { state.elementCommands[id]?.shown.mark.isAttempted = true }
        } change: { key, transition in
            key.machine.commandAttempted(id, isElsewhere: isElsewhere, &transition)
        }
    }

    /// Folds the change of a delivered command into the content, and waits until that is saved.
    ///
    /// - Parameters:
    ///   - response: The content that the origin responded with.
    ///   - delivered: The stamp of the change; `nil` for that of the fold.
    ///   - saved: Called with the commands that the saved content contains; the key stays live until the closure returns.
    package func settleCommand(
        _ id: UUID, of param: BoxedKey, _ response: MutationResponse<BoxedContent>, at delivered: Stamp? = nil,
        saved: @Sendable ([UUID]) async -> Void
    ) async {
        let holder = nextID()
        defer { release(holder, of: param) }
        guard case .done = await request(param, .acceptedContent, id: holder) else { return }
        let settled = transition(param) { key, transition in
            if let row = newestRow(of: key.param) { key.machine.rowBecomesContent(row, &transition) }
            let folded = key.machine.commandDelivered(id, response, at: delivered, &transition)
            // A later process folds the change into a record that could not be read.
            return (key.machine.book.held == nil && key.machine.origin.isUnreadable ? [] : folded, key.machine.book.revision)
        }
        guard let (folded, revision) = settled, !folded.isEmpty, case .done = await request(param, .saved(revision)) else { return }
        await saved(folded)
    }

    /// The outbox has forgotten a command that the saved content contains.
    package func retireCommand(_ id: UUID, of param: BoxedKey?) {
        changeCommands(of: param) { state in
            if param == nil { state.elementCommands[id] = nil }
            state.knownCommands?.remove(id)
        } change: { key, transition in
            key.machine.commandsRetired([id], &transition)
        }
    }

    /// Removes the changes of commands. Their results no longer count.
    package func dropCommands(_ ids: Set<UUID>, of param: BoxedKey?) {
        changeCommands(of: param) { state in
            state.knownCommands?.subtract(ids)
            guard let param else { return ids.forEach { state.elementCommands[$0] = nil } }
            let key = state.resolve(param)
            if state.live[key]?.value.machine.isCreated(onlyBy: ids) == true { state.abandonedKeys.replace(key, with: true) }
        } change: { key, transition in
            key.machine.commandsDropped(ids, &transition)
        }
    }

    /// Changes what the store knows of commands, and then gives a fact to the machines of the live keys that they concern.
    private func changeCommands(
        of param: BoxedKey?, _ note: (inout EngineState) -> Void, change: @Sendable (inout Key, inout Transition) -> Void
    ) {
        withEffects { state, effects in
            note(&state)
            for key in state.liveKeys(param) { take(key, &state, &effects, change) }
        }
    }

    // MARK: Temporary keys

    /// Shows the entity that a command creates under a temporary key.
    package func showCreation(_ command: CommandMark, of param: BoxedKey, _ first: BoxedContent, insteadOf superseded: UUID? = nil) {
        state.withLock { state in
            let param = state.resolve(param)
            if state.abandonedKeys[param] == true { state.abandonedKeys.replace(param, with: false) }
        }
        transition(param) { key, transition in key.machine.commandCreates(command, first, insteadOf: superseded, &transition) }
    }

    /// Learns that the command that creates the entity of a temporary key has failed.
    package func abandonKey(_ param: BoxedKey) {
        state.withLock { $0.abandonedKeys.replace($0.resolve(param), with: true) }
        transitionIfLive(param) { key, transition in key.machine.abandoned(&transition) }
    }

    /// Returns the key that has replaced a temporary key, or any other key unchanged.
    package func resolved(_ param: BoxedKey) -> BoxedKey { state.withLock { $0.resolve(param) } }

    func isReplaced(_ param: BoxedKey) -> Bool { state.withLock { $0.replacedKeys[param] != nil } }

    /// Replaces a temporary key from an earlier process or another one.
    ///
    /// Observers and callers may have named the key before this store knew of it. The key that replaces it serves them from now on.
    ///
    /// - Parameter unlessShown: Whether an entity that is shown under the temporary key stays, because it moves when its command is settled.
    package func replaceKey(_ temporary: BoxedKey, with param: BoxedKey, unlessShown: Bool) {
        guard temporary != param else { return }
        withEffects { state, effects in
            let former = state.live[temporary]
            if unlessShown, former?.value.machine.isTemporary == true { return }
            state.replaceKey(temporary, with: param)
            if state.links != nil { noteLinkedChange(of: temporary, isRead: true, &state, &effects) }
            guard let former else { return }
            former.value.removeObservers(&effects.observers)
            let callers = take(former, &state, &effects) { key, transition in key.callersMoved(&transition) }
            guard !callers.isEmpty, let key = liveKey(param, &state, &effects) else { return }
            take(key, &state, &effects) { key, transition in for caller in callers { key.callerMoved(caller, &transition) } }
        }
    }

    /// Moves the content, the patches and the observers of a temporary key to the key that replaces it, and waits for the save.
    ///
    /// - Parameters:
    ///   - first: The first content, if nothing else is known.
    ///   - saved: Called with the commands that the saved content contains.
    package func settleCreation(
        _ id: UUID, from temporary: BoxedKey, to param: BoxedKey, _ known: CreatedContent<BoxedContent>, first: BoxedContent,
        moved: @Sendable () async -> Void, saved: @Sendable ([UUID]) async -> Void
    ) async {
        let holder = nextID()
        defer { release(holder, of: param) }
        let admitted = await request(param, .acceptedContent, id: holder)
        let settled: ([UUID], Ticket)? = withEffects { state, effects in
            // The scope may have been cleared meanwhile: what a former user has created stays out of the store.
            guard state.knownCommands?.contains(id) == true, !state.isClosed else { return nil }
            var former: (content: BoxedContent?, patches: [Patch<BoxedContent>], isObserved: Bool) = (nil, [], false)
            if state.replacedKeys[temporary] == nil, let key = state.live[temporary], temporary != param {
                key.value.removeObservers(&effects.observers)
                former = take(key, &state, &effects) { key, transition in key.machine.commandMoved(id, &transition) }
            }
            if temporary != param { state.replaceKey(temporary, with: param) }
            guard let key = liveKey(param, &state, &effects) else { return nil }
            return take(key, &state, &effects) { [former] key, transition in
                let folded = key.machine.commandCreated(
                    id, known, shown: former.content ?? first, isObserved: former.isObserved, former.patches, &transition)
                return (folded, key.machine.book.revision)
            }
        }
        await moved()
        guard let (folded, revision) = settled, case .done = admitted, case .done = await request(param, .saved(revision)) else { return }
        await saved(folded)
    }
}

/// A note for each temporary key that no longer has a command which will create its entity.
///
/// A screen may name a temporary key long after that, so no event ends an entry. The number of entries is bounded instead, because each
/// costs about 300 bytes (C15). Observers have moved to the new key, and an outbox has notes of its own for its commands.
package struct TemporaryKeys<Key: Hashable & Sendable, Note: Sendable>: Sendable {
    private var notes: [Key: Note] = [:]
    /// The temporary keys in the order of their first notes. A slice, because removing its first key moves no other.
    private var order: ArraySlice<Key> = []
    private let limit: Int

    package init(limit: Int = 10_000) { self.limit = limit }

    package var isEmpty: Bool { notes.isEmpty }
    package var count: Int { notes.count }

    package subscript(temporary: Key) -> Note? { notes[temporary] }

    package mutating func replace(_ temporary: Key, with note: Note) {
        guard notes.updateValue(note, forKey: temporary) == nil else { return }
        order.append(temporary)
        if notes.count > limit, let oldest = order.popFirst() { notes[oldest] = nil }
    }
}

// MARK: - Elements of lists

// The commands of an outbox that change one element in every list of this store that shows it (O18).
//
// The change is a patch of each live list, also of those without the element, because a page that arrives later may bring it. Idle lists
// become live if they have the element, so that a hit in memory needs no look at the commands.

struct ElementCommand: Sendable {
    var shown: ShownCommand<BoxedContent>
    /// Called once for each list that becomes live, while a delivered command waits for a list.
    var onList: (@Sendable (BoxedKey) -> Void)?
    /// The lists for which it was called. Reading one makes it live again.
    var seen: Set<BoxedKey> = []

    /// Whether a list has one of the elements.
    func isIn(_ list: BoxedContent) -> Bool { shown.elements?.isIn(list) == true }
}

extension StoreEngine {
    /// Shows the changes of commands of the same elements in all lists, and removes the changes of a superseded command.
    private func showElementCommands(_ commands: [ShownCommand<BoxedContent>], insteadOf superseded: UUID?) {
        withEffects { state, effects in
            if let superseded { state.elementCommands[superseded] = nil }
            for command in commands { state.elementCommands[command.mark.id] = ElementCommand(shown: command) }
            for key in state.live.values {
                take(key, &state, &effects) { key, transition in
                    key.machine.commandsShown(commands, insteadOf: superseded, &transition)
                }
            }
            guard let front, let elements = commands.first?.elements else { return }
            for param in front.keys() where state.live[param] == nil {
                if let entry = front.entry(param), elements.isIn(entry.record.content) { _ = liveKey(param, &state, &effects) }
            }
        }
    }

    /// Shows the commands in a list that becomes live.
    func showElementCommands(in key: inout Key, _ state: inout EngineState, _ effects: inout Effects) {
        let commands = state.elementCommands.values.map(\.shown).sorted { $0.mark.order < $1.mark.order }
        // The key stays live for the caller, even if its record contains all of the changes.
        _ = play(&key, &state, &effects) { key, transition in key.machine.commandsShown(commands, &transition) }
        // The identifiers are copied, because a copy of the commands would make each insertion copy a set.
        for id in Array(state.elementCommands.keys) {
            guard let onList = state.elementCommands[id]?.onList,
                state.elementCommands[id]?.seen.insert(key.param).inserted == true
            else { continue }
            onList(key.param)
        }
    }

    /// The origin has performed a command. Lists without the element no longer have its change.
    ///
    /// - Parameters:
    ///   - delivered: The stamp of the change in lists that are loaded later; `nil` for the one that it has.
    ///   - onList: Called for each list that becomes live, if none gets the change now; under the lock.
    /// - Returns: The lists whose content gets the change, each of which must be settled.
    package func listsToSettle(_ id: UUID, at delivered: Stamp? = nil, onList: (@Sendable (BoxedKey) -> Void)? = nil) -> [BoxedKey] {
        withEffects { state, effects -> [BoxedKey] in
            state.elementCommands[id]?.shown.isDelivered = true
            if let delivered { state.elementCommands[id]?.shown.delivered = delivered }
            state.elementCommands[id]?.onList = nil
            guard let command = state.elementCommands[id] else { return [] }
            var lists: [BoxedKey] = []
            for key in state.live.values {
                let content = key.value.machine.book.held?.record.content
                if let content, command.isIn(content) || key.value.machine.isFetching {
                    lists.append(key.value.param)
                } else {
                    take(key, &state, &effects) { key, transition in
                        // A fetch that began before the end of the delivery may bring the element as it was.
                        if content == nil, key.machine.isFetching {
                            _ = key.machine.commandDelivered(id, .none, at: command.shown.delivered, &transition)
                        } else if key.machine.origin.isKnown {
                            key.machine.elementCommandEnded(id, &transition)
                        } else {
                            key.machine.commandsShown([command.shown], &transition)
                            onList?(key.param)
                        }
                    }
                }
            }
            if lists.isEmpty { state.elementCommands[id]?.onList = onList }
            return lists
        }
    }

    /// Reads a list, and calls a function if it has the element of a command; the list stays live until the function returns.
    ///
    /// A list that contains the change already does not count while an earlier command may keep other lists from getting it.
    package func readList(_ param: BoxedKey, ifItHasElementOf id: UUID, _ body: @Sendable () async -> Void) async {
        let holder = nextID()
        defer { release(holder, of: param) }
        guard case .done = await request(param, .acceptedContent, id: holder) else { return }
        let hasElement = state.withLock { state in
            guard let command = state.elementCommands[id], let list = state.live[state.resolve(param)],
                let content = list.value.machine.book.held?.record.content
            else { return false }
            return command.isIn(content) && !list.value.machine.isAheadOfOthers(command.shown)
        }
        if hasElement { await body() }
    }

    /// Whether the change of a command is not yet part of the content of a key.
    package func showsCommand(_ id: UUID, of param: BoxedKey) -> Bool {
        state.withLock { $0.live[$0.resolve(param)]?.value.machine.book.patches.contains { $0.command?.id == id } ?? false }
    }
}

extension KeyMachine {
    fileprivate var isFetching: Bool { origin.flight != nil || sides.isLoading }

    /// Whether the content contains the change of a command that waits for an earlier one of the same element in other lists.
    fileprivate func isAheadOfOthers(_ command: ShownCommand<Content>) -> Bool {
        guard book.foldedCommands.contains(command.mark.id), let elements = command.elements else { return false }
        return book.patches.contains { patch in
            guard !patch.isConfirmed, let earlier = patch.command, earlier.order < command.mark.order else { return false }
            return patch.elements?.ids.isDisjoint(with: elements.ids) == false
        }
    }

    /// A command was performed, and this list does not have its element.
    fileprivate mutating func elementCommandEnded(_ id: UUID, _ transition: inout Transition) {
        discardPatches(&transition) { $0.command?.id == id }
        rebuildOverlay(&transition)
        // A change of several elements may have waited for this one.
        if !foldable.isEmpty { foldConfirmed(&transition) }
        mirror(&transition)
        endTransition(&transition)
    }
}
