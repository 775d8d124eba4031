import StoreCore

/// The comparison of stored sets with the newest manifest.
extension Shelf {
    /// One text of a set, as it is stored or about to be.
    typealias Found = (identifier: String, rank: Rank, fileDigest: SHA256.Digest)

    /// The readable texts of a waiting set, with or without a verdict: the verifier says what is shown, and not what was fetched.
    func found(_ waiting: [String: Pointer.Place]) -> [Found] {
        waiting.sorted { $0.key < $1.key }.compactMap { identifier, place in
            let record = record(place, of: identifier) ?? unverified[place.file]
            if !registered.contains(identifier) { loaded[place.file] = nil }
            return record.map { (identifier, place.rank, $0.facts.fileDigest) }
        }
    }

    /// Whether another process has accepted a newer manifest than this one.
    var isBehind: Bool { newest.map { ($0.edition ?? Edition()) < (floors.edition ?? Edition()) } ?? false }

    /// Why fetched texts are not stored: another process knows a newer manifest, or the newest one does not list them; `nil` if they are.
    func withdrawal(of set: String, _ found: [Found]) -> TextStoreError? {
        if isBehind, let text = found.first(where: { $0.rank.version != nil }) { return .behind(text.identifier) }
        return newest.flatMap { withdrawal(of: set, found, by: $0) }
    }

    /// Drops the waiting sets that a manifest takes back.
    ///
    /// - Returns: Their texts.
    func dropWithdrawn(by manifest: VersionManifest, _ turn: inout Turn) throws(TextStoreError) -> [String] {
        var dropped: [String] = [], texts: [String] = []
        for (set, waiting) in pointer.pending.sorted(by: { $0.key < $1.key }) {
            guard let reason = withdrawal(of: set, found(waiting), by: manifest) else { continue }
            turn.events.append(.refused(reason))
            dropped.append(set)
            texts += waiting.keys
        }
        if !dropped.isEmpty { try step(.switched(dropped: dropped, activated: [:])) }
        return texts
    }

    /// Why a manifest does not publish a set as it was fetched; `nil` if it does.
    ///
    /// Texts of the set that are not in it count as they are active.
    func withdrawal(of set: String, _ found: [Found], by manifest: VersionManifest) -> TextStoreError? {
        let names = Set(found.map(\.identifier))
        for text in found where !isPublished(text, in: set, by: manifest) { return .withdrawn(text.identifier, text.rank.version) }
        guard set.hasPrefix("group/") else { return nil }
        // Before any text is registered, the last switch says which texts belong together.
        let members = registered.isEmpty ? Array((pointer.groups[set] ?? [:]).keys) : session.read { $0.members(of: set) }
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
            // An unversioned text is not the manifest's.
            return text.rank.version == nil && !manifest.problems.contains { $0.identifier == text.identifier }
        }
        if let group = entry.group, set != "group/" + group { return false }
        return rank(of: entry, text.identifier, by: manifest) == text.rank && entry.allows(text.fileDigest)
    }

    private func rank(of entry: VersionManifest.Entry, _ identifier: String, by manifest: VersionManifest) -> Rank {
        floors.texts[identifier]?.rankOfOffered(entry, edition: manifest.edition) ?? Rank(version: entry.version)
    }
}

extension TextStoreError {
    fileprivate static func behind(_ identifier: String) -> TextStoreError {
        TextStoreError(
            .withdrawn, identifier: identifier,
            "another process has accepted a newer manifest since its set was fetched; the set is fetched again as that one says")
    }

    fileprivate static func withdrawn(_ identifier: String, _ version: SemanticVersion?) -> TextStoreError {
        let version = version.map { "version \($0)" } ?? "an unversioned text"
        return TextStoreError(
            .withdrawn, identifier: identifier,
            "its set was fetched with \(version), which the newest manifest does not list; the set is fetched again as that one says")
    }
}
