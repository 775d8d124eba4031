import StoreCore
internal import StorePlatform

/// Comparison of stored sets with the newest manifest.
extension Shelf {
    /// A text of a stored set, or of one about to be stored.
    typealias Found = (identifier: String, rank: Rank, fileDigest: SHA256.Digest)

    /// Returns the readable texts of a waiting set, with or without a verdict: a missing verdict does not change what was fetched.
    func found(_ waiting: [String: Pointer.Place]) -> [Found] {
        waiting.sorted { $0.key < $1.key }.compactMap { identifier, place in
            let record = record(place, of: identifier) ?? unverified[place.file]
            if !registered.contains(identifier) { loaded[place.file] = nil }
            return record.map { (identifier, place.rank, $0.facts.fileDigest) }
        }
    }

    /// The newest manifest that this process has accepted; `nil` while none is known.
    var newest: VersionManifest? { session.read { $0.accepted } }

    /// Whether another process has accepted a newer manifest than this one.
    var isBehind: Bool { newest.map { ($0.edition ?? Edition()) < (floors.edition ?? Edition()) } ?? false }

    /// Returns why fetched texts are not stored, such as a newer manifest that does not list them; `nil` if they are stored.
    func withdrawal(of set: String, _ found: [Found]) -> TextStoreError? {
        if isBehind, let text = found.first(where: { $0.rank.version != nil }) { return .behind(text.identifier) }
        return newest.flatMap { withdrawal(of: set, found, by: $0) }
    }

    /// Removes the waiting sets that a manifest withdraws, and returns their texts.
    func dropWithdrawn(by manifest: VersionManifest, _ outcome: inout Outcome) throws(TextStoreError) -> [String] {
        var dropped: [String] = [], texts: [String] = []
        for (set, waiting) in pointer.pending.sorted(by: { $0.key < $1.key }) {
            guard let reason = withdrawal(of: set, found(waiting), by: manifest) else { continue }
            outcome.events.append(.refused(reason))
            dropped.append(set)
            texts += waiting.keys
        }
        if !dropped.isEmpty { try step(.switched(dropped: dropped, activated: [:])) }
        return texts
    }

    /// Returns why a manifest does not list a set as it was fetched; `nil` if it does.
    ///
    /// Members of the set that were not fetched count with their active versions.
    func withdrawal(of set: String, _ found: [Found], by manifest: VersionManifest) -> TextStoreError? {
        let names = Set(found.map(\.identifier))
        for text in found where !isPublished(text, in: set, by: manifest) { return .withdrawn(text.identifier, text.rank.version) }
        guard set.isGroup else { return nil }
        // Before any text is registered, the last switch defines the members, except those that wait in another set by now.
        let members =
            registered.isEmpty
            ? (pointer.groups[set] ?? [:]).keys.filter { pointer.waiting($0) == nil } : session.read { $0.members(of: set) }
        for identifier in members.sorted() where !names.contains(identifier) {
            guard let place = pointer.active[identifier], place.rank.version != nil else { continue }
            let entry = manifest.entries[identifier]
            if let group = entry?.group, set != "group/" + group { continue }
            if entry.map({ rank(of: $0, identifier, by: manifest) }) != place.rank { return .withdrawn(identifier, place.rank.version) }
        }
        return nil
    }

    private func isPublished(_ text: Found, in set: String, by manifest: VersionManifest) -> Bool {
        guard let entry = manifest.entries[text.identifier] else {
            // An unversioned text counts while the manifest does not list it, not even under conditions that are not met.
            let isListed = manifest.variants[text.identifier] != nil || manifest.problems.contains { $0.identifier == text.identifier }
            return text.rank.version == nil && !isListed
        }
        if let group = entry.group, set != "group/" + group { return false }
        return rank(of: entry, text.identifier, by: manifest, text.rank) == text.rank && entry.allows(text.fileDigest)
    }

    private func rank(
        of entry: VersionManifest.Entry, _ identifier: String, by manifest: VersionManifest, _ fetched: Rank? = nil
    ) -> Rank {
        floors.texts[identifier]?.rankOfOffered(entry, edition: manifest.edition, fetched: fetched) ?? Rank(version: entry.version)
    }
}

extension TextStoreError {
    fileprivate static func behind(_ identifier: String) -> TextStoreError {
        TextStoreError(
            .withdrawn, identifier: identifier,
            "cannot use its fetched set: another process has accepted a newer manifest since; the set is fetched again")
    }

    fileprivate static func withdrawn(_ identifier: String, _ version: SemanticVersion?) -> TextStoreError {
        let version = version.map { "version \($0)" } ?? "an unversioned text"
        return TextStoreError(
            .withdrawn, identifier: identifier,
            "cannot use its fetched set: the newest manifest does not list \(version) of this text; the set is fetched again")
    }
}
