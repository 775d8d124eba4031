internal import Foundation
internal import StoreCore

/// One registered text at one moment, for metrics, health pages and tests.
///
/// ```swift
/// for text in await texts.snapshot() {
///     print(text.identifier, text.version?.description ?? "unversioned")
/// }
/// ```
public struct TextSnapshot: Hashable, Sendable {
    /// The identifier of the text.
    public var identifier: String
    /// The version that the store shows; `nil` for an unversioned text, and if none is available.
    public var version: SemanticVersion?
    /// The shown text, if it is in memory.
    public var text: String?
    /// The source of the shown text; `nil` if no text is available.
    public var origin: VersionedText.Origin?
    /// The version below which the store never goes back; `nil` without one.
    public var floor: SemanticVersion?
    /// The version that the newest manifest lists; `nil` if it lists none.
    public var listed: SemanticVersion?
    /// The versions that wait for their activation.
    public var waiting: [SemanticVersion] = []
    /// The highest version that the user of the device has accepted; `nil` without one, or if the acceptances cannot be read.
    public var accepted: SemanticVersion?
    /// Whether the user of the device has accepted a version or an unversioned text; acceptances of accounts do not count.
    public var isAccepted = false
    /// Whether a digest or a verifier has confirmed the shown text.
    public var isVerified = false
    /// Whether the shown text is older than the floor.
    public var isBelowFloor = false
    /// Whether the newest manifest does not confirm the shown text, or has expired.
    public var isStale = false
    /// The number of observers.
    public var observers = 0
}

extension TextStore {
    /// The number of registered texts. Cost: constant.
    public var registeredCount: Int { session.read { $0.sources.count } }

    /// Returns the registered texts in the order of their identifiers; neither refreshes them nor counts as an observer.
    ///
    /// Cost: one lock and one look at each text of the page; a read of the acceptances from disk after another store has saved some.
    ///
    /// - Parameters:
    ///   - text: A text that the identifier contains, in any case; empty for all texts.
    ///   - identifier: The last identifier of the page before; `nil` for the first page.
    ///   - limit: The largest number of texts.
    public func snapshot(matching text: String = "", after identifier: String? = nil, limit: Int = 100) async -> [TextSnapshot] {
        let (text, now) = (text.lowercased(), time.date)
        var page = session.read { session in
            let identifiers = session.sources.keys.filter { next in
                identifier.map { $0 < next } ?? true && (text.isEmpty || next.lowercased().contains(text))
            }
            return identifiers.sorted().prefix(max(0, limit)).map { session.snapshot(of: $0, at: now) }
        }
        for index in page.indices {
            // An unreadable file shows no acceptance here; `needsAcceptance(of:)` reports the fault.
            guard let newest = try? await acceptance(of: page[index].identifier) else { continue }
            (page[index].accepted, page[index].isAccepted) = (newest.version, true)
        }
        return page
    }
}

extension SessionState {
    fileprivate func snapshot(of identifier: String, at now: Date) -> TextSnapshot {
        var snapshot = TextSnapshot(identifier: identifier)
        snapshot.observers = observers[identifier] ?? 0
        // A text in several languages is described by the one that is shown.
        let (identifier, _) = shown(identifier)
        if let shown = resolved[identifier]?.text(ifExpired: manifestExpired(at: now)) {
            (snapshot.version, snapshot.text, snapshot.origin) = (shown.version, shown.text, shown.origin)
            (snapshot.isVerified, snapshot.isBelowFloor) = (shown.isVerified, shown.isBelowFloor)
            snapshot.isStale = shown.staleSince != nil
        } else if let active = held[identifier]?.active {
            (snapshot.version, snapshot.origin) = (active.rank.version, .cache)
        }
        snapshot.floor = held[identifier]?.floor?.rank.version
        snapshot.listed = manifest?.entries[identifier]?.version
        snapshot.waiting = [held[identifier]?.waiting?.rank.version].compactMap { $0 }
        return snapshot
    }
}
