#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif
internal import StoreCore
internal import StoreFiles
internal import StorePlatform

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
}

/// A decoded command with everything that depends on its type.
struct BoundCommand: Sendable {
    var lane: OutboxLane
    var subject: OutboxLane
    /// The text of the temporary identifier of the entity that the command creates.
    var creates: String?
    /// The identifiers that the command refers to.
    var references: [String]
    var patches: [BoundPatch]
    var perform: @Sendable (Delivery) async throws -> PerformedCommand
    var value: any Command
}

/// The change that a command makes to one content.
struct BoundPatch: Sendable {
    var engine: StoreEngine
    var key: BoxedKey
    var apply: @Sendable (inout BoxedContent) -> Void
    /// The first content of an entity that the command creates.
    var first: BoxedContent?
}

extension BoundPatch {
    /// Joins the changes of one content, in their order: a content has at most one patch of a command.
    static func merged(_ patches: [BoundPatch]) -> [BoundPatch] {
        guard patches.count > 1 else { return patches }
        var merged: [BoundPatch] = []
        for patch in patches {
            guard let position = merged.firstIndex(where: { $0.engine === patch.engine && $0.key == patch.key }) else {
                merged.append(patch)
                continue
            }
            let earlier = merged[position].apply
            merged[position].apply = { content in
                earlier(&content)
                patch.apply(&content)
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
