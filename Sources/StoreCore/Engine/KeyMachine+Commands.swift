#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

// The patches of an outbox's commands. They are patches of mutations that survive `clear()`, may exist before the record is read, and are
// named by the record that contains them, so that a restart applies none of them twice (O7).

/// The command of an outbox that a patch belongs to.
struct CommandMark: Hashable, Sendable {
    var id: UUID
    /// The place in the order of all commands of the outbox.
    var order: UInt64
}

extension KeyMachine {
    /// Shows the change of a command, in place of an older form of it and of the commands that it supersedes.
    ///
    /// - Parameters:
    ///   - command: The command.
    ///   - superseded: A command with a patch that this one replaces.
    ///   - isDelivered: Whether the origin has performed the command, so that its patch is folded unless the record names it.
    ///   - apply: The change.
    mutating func commandShown(
        _ command: CommandMark, insteadOf superseded: UUID? = nil, isDelivered: Bool = false,
        _ apply: @escaping @Sendable (inout Content) -> Void, _ turn: inout Turn
    ) {
        removePatches(&turn) { $0.id == command.id || $0.id == superseded }
        if !foldedCommands.contains(command.id) {
            let position = patches.firstIndex { $0.command?.order ?? 0 > command.order } ?? patches.endIndex
            patches.insert(Patch(id: turn.tickets.next(), isConfirmed: isDelivered, command: command, apply: apply), at: position)
        }
        guard isRead else {
            // Only the record knows whether it contains the change of a delivered command.
            if isDelivered { beginReading(&turn) }
            return
        }
        turn.isWriting = true
        patchesChanged(&turn)
        if isDelivered { foldConfirmed(&turn) }
        endTurn(&turn)
    }

    /// A delivery of a command begins: a response can be accepted if nothing else changes the content from now on.
    mutating func commandBegan(_ id: UUID, _ turn: inout Turn) {
        guard isRead, let position = patches.firstIndex(where: { $0.command?.id == id }) else { return }
        epoch = turn.tickets.next()
        patches[position].id = epoch
        patches[position].isBeforePage = false
    }

    /// The origin has performed a command. The content is known.
    ///
    /// - Returns: The commands that the content contains, once it is saved.
    mutating func commandSucceeded(_ id: UUID, _ response: MutationResponse<Content>, _ turn: inout Turn) -> [UUID] {
        if let patch = patches.first(where: { $0.command?.id == id }), !patch.isConfirmed {
            patchSucceeded(patch.id, response, &turn)
        }
        return foldedCommands
    }

    /// A command was refused, taken back, or cleared: removes its patch.
    mutating func commandDropped(_ id: UUID, _ turn: inout Turn) {
        guard let patch = patches.first(where: { $0.command?.id == id }) else { return }
        if isRead { return patchFailed(patch.id, &turn) }
        removePatches(&turn) { $0.id == id }
    }

    /// The outbox has forgotten commands that the saved content contains.
    mutating func commandsRetired(_ ids: [UUID], _ turn: inout Turn) {
        foldedCommands.removeAll { ids.contains($0) }
        // The record is saved without these names when it changes next; until then they are harmless.
        if held?.record.details?.fields.commands != nil { nameFoldedCommands() }
        endTurn(&turn)
    }

    /// The record was read: drops the patches that it contains, and applies the others.
    mutating func meetCommands(_ turn: inout Turn) {
        if let names = held?.record.details?.fields.commands {
            foldedCommands += names.filter { !foldedCommands.contains($0) }
            removePatches(&turn) { names.contains($0.id) }
        }
        guard !patches.isEmpty else { return rebuildOverlay(&turn) }
        patchesChanged(&turn)
        if patches.first?.isConfirmed == true { foldConfirmed(&turn) }
    }

    /// Records that the content contains the change of a command.
    mutating func noteFolded(_ patch: Patch) {
        guard let command = patch.command, !foldedCommands.contains(command.id) else { return }
        foldedCommands.append(command.id)
    }

    /// Writes the names of the folded commands into the record.
    mutating func nameFoldedCommands() {
        held?.record.fields.commands = foldedCommands.isEmpty ? nil : foldedCommands
    }

    private mutating func removePatches(_ turn: inout Turn, of fits: (CommandMark) -> Bool) {
        guard !patches.isEmpty else { return }
        patches.removeAll { patch in
            guard let command = patch.command, fits(command) else { return false }
            turn.leftovers.append(patch)
            return true
        }
    }

    private mutating func patchesChanged(_ turn: inout Turn) {
        rebuildOverlay(&turn)
        contentNumber += 1
        mirror(&turn)
        turn.publishes = true
    }
}
