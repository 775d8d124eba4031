#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif
internal import StoreCore

/// A type of command that the outbox can decode, and the stores that its commands change.
struct OutboxRegistration: Sendable {
    var name: String
    var version: Int
    /// Decodes the payload of a stored command, or migrates it if its version is older.
    var bind: @Sendable (_ payload: Data, _ version: Int) throws -> BoundCommand
    /// Binds a command that was not encoded yet; throws if the log could not name its key.
    var bindValue: @Sendable (any Command) throws -> BoundCommand
    /// The stores whose content the commands change.
    var engines: [StoreEngine]
    /// Decodes a key of the entities that the commands create.
    var decodeKey: (@Sendable (_ text: String) -> BoxedKey?)?

    /// Tells the store of the entities that a key has replaced a temporary one, unless the entity is shown and will move.
    func replaceKey(_ temporary: String, with replacement: String, unlessShown: Bool = true) {
        guard let decodeKey, let key = decodeKey(temporary), let real = decodeKey(replacement) else { return }
        engines.first?.replaceKey(key, with: real, unlessShown: unlessShown)
    }
}

/// A decoded command with everything that depends on its type.
struct BoundCommand: Sendable {
    var lane: OutboxLane
    var subject: OutboxLane
    /// The text of the temporary identifier of the entity that the command creates.
    var creates: String?
    var references: [String]
    var patches: [BoundPatch]
    var perform: @Sendable (Delivery) async throws -> PerformedCommand
    var value: any Command
}

/// The change that a command makes to one content, or to some elements in every list of a store.
struct BoundPatch: Sendable {
    var engine: StoreEngine
    /// The key of the content; for elements, a `Set<BoxedKey>` of their identifiers. The two have different types, so they are never compared.
    var key: BoxedKey
    var apply: @Sendable (inout BoxedContent) -> Void
    /// The first content of an entity that the command creates.
    var first: BoxedContent?
    /// Returns whether a list has one of the elements; `nil` for a patch of one content.
    var isIn: (@Sendable (_ list: BoxedContent) -> Bool)?
}

extension BoundPatch {
    /// The identifiers of the elements.
    private var ids: Set<BoxedKey> { key.value(as: Set<BoxedKey>.self) }

    /// The elements; `nil` for a patch of one content.
    var elements: PatchedElements<BoxedContent>? { isIn.map { PatchedElements(ids, isIn: $0) } }

    func isSame(as other: BoundPatch) -> Bool { engine === other.engine && (other.isIn != nil || key == other.key) }

    /// Whether this patch has taken the place of an older one of the command: in all lists of a store, or under the key that has replaced a
    /// temporary one.
    func replaces(_ older: BoundPatch) -> Bool { engine === older.engine && (isIn != nil || key == engine.resolved(older.key)) }

    /// The key of the content; `nil` for elements of lists.
    private var target: BoxedKey? { isIn == nil ? key : nil }

    func show(_ commands: [ShownCommand<BoxedContent>], insteadOf superseded: UUID? = nil) {
        engine.showCommands(commands, of: target, insteadOf: superseded)
    }

    func attempt(_ id: UUID, isElsewhere: Bool) { engine.attemptCommand(id, of: target, isElsewhere: isElsewhere) }

    func drop(_ ids: Set<UUID>) { engine.dropCommands(ids, of: target) }

    func retire(_ id: UUID) { engine.retireCommand(id, of: target) }

    /// Joins the changes of one content or of elements of one store's lists, in their order: a content has at most one patch of a command.
    static func merged(_ patches: [BoundPatch]) -> [BoundPatch] {
        var merged: [BoundPatch] = []
        for patch in patches {
            guard let position = merged.firstIndex(where: { patch.isSame(as: $0) }) else {
                merged.append(patch)
                continue
            }
            let earlier = merged[position]
            merged[position].apply = { content in
                earlier.apply(&content)
                patch.apply(&content)
            }
            if let isIn = earlier.isIn, let isOtherIn = patch.isIn {
                merged[position].isIn = { isIn($0) || isOtherIn($0) }
                merged[position].key = BoxedKey(earlier.ids.union(patch.ids))
            }
            if var first = merged[position].first {
                patch.apply(&first)
                merged[position].first = first
            }
        }
        return merged
    }
}

/// The result of a successful delivery, without the types of the command.
struct PerformedCommand: Sendable {
    /// The content for the first patch.
    var response = MutationResponse<BoxedContent>.none
    /// The text of the identifier of the created entity, and the key.
    var replacement: (text: String, key: BoxedKey)?
}
