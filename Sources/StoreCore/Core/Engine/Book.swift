#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The accepted content of a key, and the optimistic changes over it.
struct Book<Content: Sendable> {
    /// The newest accepted record; `nil` if the key has no content.
    var held: HeldRecord<Content>?
    /// The number of the last change of the accepted content, or of the last retry of its save.
    var revision = Ticket(number: 0)
    /// The number of changes of the content that readers see.
    var contentNumber: UInt64 = 0
    /// The start of the current epoch: results of older fetches and responses to older mutations are outdated (C5).
    var epoch = Ticket(number: 0)
    /// The patches, oldest first.
    var patches: [Patch<Content>] = []
    /// The accepted content with the pending changes of its entities and all patches applied; `nil` if there are none.
    var overlay: Content?
    /// The delivered commands that the content contains and that their outbox still knows.
    var foldedCommands: [UUID] = []

    /// The part of linked stores; `nil` for content that neither shows entities nor is shown elsewhere.
    var linked: OutOfLine<LinkedBook<Content>>?

    /// The content that observers and callers get: the accepted content with the patches applied.
    var content: Content? { overlay ?? held?.record.content }
}

/// An optimistic change that is not yet part of the accepted content.
struct Patch<Content: Sendable>: Sendable {
    var id: Ticket
    var isConfirmed = false
    /// The stamp of the confirmation in a store with links; unknown for commands of an earlier process.
    var confirmed = Stamp.max
    /// Whether a page was added after this change, so that the mutation's response may lack it.
    var isBeforePage = false
    /// Whether content was fetched after the origin may have made this change.
    var isBeforeFetch = false
    /// The command of an outbox that this change belongs to; `nil` for a mutation.
    var command: CommandMark?
    /// The first content of an entity that the command creates.
    var first: Content?
    var apply: @Sendable (inout Content) -> Void
}
