#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

// The commands of an outbox that change the content of this store.

extension StoreEngine {
    /// An outbox is registered: its retired commands need no names any more.
    ///
    /// - Parameter delivered: The commands that are delivered and not retired.
    func knowCommands(_ delivered: some Sequence<UUID>) {
        let delivered = Set(delivered)
        state.withLock { $0.knownCommands = ($0.knownCommands ?? []).union(delivered) }
    }

    /// Removes the names of retired commands from a loaded record, which would otherwise collect them.
    func forgetRetiredCommands(in record: inout CacheRecord<BoxedContent>) {
        guard let names = record.fields.commands, let known = state.withLock({ $0.knownCommands }) else { return }
        let kept = names.filter { known.contains($0) }
        if kept.count < names.count { record.fields.commands = kept.isEmpty ? nil : kept }
    }

    /// Shows the change of a command.
    func showCommand(
        _ command: CommandMark, of param: BoxedKey, insteadOf superseded: UUID? = nil, isDelivered: Bool = false,
        _ patch: @escaping @Sendable (inout BoxedContent) -> Void
    ) {
        turn(param) { key, turn in
            key.machine.commandShown(command, insteadOf: superseded, isDelivered: isDelivered, patch, &turn)
        }
    }

    /// A delivery of a command begins.
    func beginCommand(_ id: UUID, of param: BoxedKey) {
        turnIfLive(param) { key, turn in key.machine.commandBegan(id, &turn) }
    }

    /// Folds the change of a delivered command into the content, and waits until that is saved.
    ///
    /// - Parameters:
    ///   - id: The command.
    ///   - param: The key.
    ///   - response: The content that the origin responded with.
    ///   - saved: Called with the commands that the saved content contains; the key stays live until it returns.
    func settleCommand(
        _ id: UUID, of param: BoxedKey, _ response: MutationResponse<BoxedContent>, saved: @Sendable ([UUID]) async -> Void
    ) async {
        let holder = nextID()
        defer { release(holder, of: param) }
        knowCommands([id])
        guard case .done = await ask(param, .truth, id: holder) else { return }
        let (folded, revision) = turn(param) { key, turn in
            (key.machine.commandSucceeded(id, response, &turn), key.machine.revision)
        }
        guard !folded.isEmpty, case .done = await ask(param, .saved(revision)) else { return }
        await saved(folded)
    }

    /// The outbox has forgotten commands that the saved content contains.
    func retireCommands(_ ids: [UUID], of param: BoxedKey) {
        state.withLock { $0.knownCommands?.subtract(ids) }
        turnIfLive(param) { key, turn in key.machine.commandsRetired(ids, &turn) }
    }

    /// Removes the change of a command.
    func dropCommand(_ id: UUID, of param: BoxedKey) {
        turnIfLive(param) { key, turn in key.machine.commandDropped(id, &turn) }
    }
}
