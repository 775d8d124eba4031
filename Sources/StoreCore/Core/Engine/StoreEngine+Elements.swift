#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

// The commands of an outbox that change one element in every list of this store that shows it (O18).
//
// The change is a patch of each live list, also of those without the element, because a page that arrives later may bring it. Lists at
// rest become live if they have the element, so that a hit in memory needs no look at the commands.

/// A command that changes one element in every list.
struct ElementCommand: Sendable {
    var shown: ShownCommand<BoxedContent>
    let isIn: @Sendable (_ list: BoxedContent) -> Bool
}

extension StoreEngine {
    /// Shows the changes of commands of one element in all lists, and removes the changes of a superseded command.
    ///
    /// - Parameters:
    ///   - commands: The commands in their order.
    ///   - superseded: A command with changes that are removed.
    ///   - isIn: Returns whether a list has the element.
    package func showElementCommands(
        _ commands: [ShownCommand<BoxedContent>], insteadOf superseded: UUID? = nil, isIn: @escaping @Sendable (BoxedContent) -> Bool
    ) {
        inEveryList { state in
            if let superseded { state.elementCommands[superseded] = nil }
            for command in commands { state.elementCommands[command.mark.id] = ElementCommand(shown: command, isIn: isIn) }
        } change: { key, transition in
            key.machine.commandsShown(commands, insteadOf: superseded, &transition)
        } afterwards: { state, effects in
            guard let front = self.front else { return }
            for param in front.keys() where state.live[param] == nil {
                if let entry = front.entry(param), isIn(entry.record.content) { _ = self.liveKey(param, &state, &effects) }
            }
        }
    }

    /// Shows the commands in a list that becomes live.
    func showElementCommands(in key: inout Key, _ state: inout EngineState, _ effects: inout Effects) {
        let commands = state.elementCommands.values.map(\.shown).sorted { $0.mark.order < $1.mark.order }
        // The key stays live for the caller, even if its record contains all of the changes.
        _ = play(&key, &state, &effects) { key, transition in key.machine.commandsShown(commands, &transition) }
    }

    /// A delivery of a command begins.
    package func attemptElementCommand(_ id: UUID) {
        inEveryList { state in
            state.elementCommands[id]?.shown.mark.isAttempted = true
        } change: { key, transition in
            key.machine.commandAttempted(id, &transition)
        }
    }

    /// The origin has performed a command. Lists without the element no longer have its change.
    ///
    /// - Returns: The lists whose content gets the change, each of which must be settled.
    package func listsToSettle(_ id: UUID) -> [BoxedKey] {
        withEffects { state, effects -> [BoxedKey] in
            state.elementCommands[id]?.shown.isDelivered = true
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
                            _ = key.machine.commandDelivered(id, .none, &transition)
                        } else if key.machine.origin.isKnown {
                            key.machine.elementCommandEnded(id, &transition)
                        } else {
                            key.machine.commandsShown([command.shown], &transition)
                        }
                    }
                }
            }
            return lists
        }
    }

    /// The outbox has forgotten a command that the saved lists contain.
    package func retireElementCommand(_ id: UUID) {
        inEveryList { state in
            state.elementCommands[id] = nil
            state.knownCommands?.remove(id)
        } change: { key, transition in
            key.machine.commandsRetired([id], &transition)
        }
    }

    /// Removes the changes of commands. Their results no longer count.
    package func dropElementCommands(_ ids: Set<UUID>) {
        inEveryList { state in
            for id in ids { state.elementCommands[id] = nil }
            state.knownCommands?.subtract(ids)
        } change: { key, transition in
            key.machine.commandsDropped(ids, &transition)
        }
    }

    /// Changes the commands, and then gives a fact to the machine of each live list.
    private func inEveryList(
        _ note: (inout EngineState) -> Void, change: @Sendable (inout Key, inout Transition) -> Void,
        afterwards: (inout EngineState, inout Effects) -> Void = { _, _ in }
    ) {
        withEffects { state, effects in
            note(&state)
            for key in state.live.values { take(key, &state, &effects, change) }
            afterwards(&state, &effects)
        }
    }
}

extension KeyMachine {
    /// Whether content or a page is being fetched.
    fileprivate var isFetching: Bool { origin.flight != nil || sides?.isLoading == true }

    /// A command was performed, and this list does not have its element.
    fileprivate mutating func elementCommandEnded(_ id: UUID, _ transition: inout Transition) {
        discardPatches(&transition) { $0.command?.id == id }
        rebuildOverlay(&transition)
        mirror(&transition)
        endTransition(&transition)
    }
}
