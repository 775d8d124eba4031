import StoreCore

/// Compares the shown texts with the newest manifest (T17).
extension SessionState {
    /// Returns whether the newest manifest lists a text as it is shown; `true` for a text without an origin, and for one without a manifest
    /// unless a newer wording waits.
    func isConfirmed(_ identifier: String, _ rank: Rank, _ origin: VersionedText.Origin) -> Bool {
        guard versionSource?.remoteFile != nil, manifest != nil else { return !hasWaitingWording(identifier, rank, origin) }
        if origin != .bundle, isAhead(identifier) { return true }
        guard unusable[identifier] == nil else { return false }
        guard let offer = offer(for: identifier) else { return !hasOrigin(identifier) }
        // An unversioned text is confirmed by its own requests, and so is a version without a digest.
        guard let entry = offer.entry else { return !hasWaitingWording(identifier, rank, origin) }
        guard offer.rank == rank else { return false }
        guard entry.sha256 != nil else { return !hasWaitingWording(identifier, rank, origin) }
        let digest = origin == .bundle ? bundled[identifier]?.fileDigest : record(identifier)?.facts.fileDigest
        return digest.map(entry.allows) ?? false
    }

    /// Returns whether the origin has sent another wording of the same version, or of an unversioned text, which waits for its activation.
    private func hasWaitingWording(_ identifier: String, _ rank: Rank, _ origin: VersionedText.Origin) -> Bool {
        guard let waiting = held[identifier]?.waiting, waiting.rank == rank else { return false }
        return waiting.facts.digest != (origin == .bundle ? bundled[identifier]?.digest : record(identifier)?.facts.digest)
    }

    /// Returns whether the newest manifest lists the bytes of a record by their digest, even if they were fetched before it stated one.
    func isListed(_ record: TextRecord) -> Bool {
        guard let offer = offer(for: record.identifier), let entry = offer.entry, entry.sha256 != nil else { return false }
        return offer.rank == record.rank && entry.allows(record.facts.fileDigest)
    }

    /// Returns whether another process has switched a text by a newer manifest than this process knows. That manifest has confirmed it.
    func isAhead(_ identifier: String) -> Bool {
        guard !foreign.isEmpty, foreign.contains(identifier), let record = record(identifier) else { return false }
        guard let offer = offer(for: identifier) else { return true }
        // The newer manifest may list other bytes of the same version.
        return record.rank > offer.rank || (record.rank == offer.rank && offer.entry?.allows(record.facts.fileDigest) == false)
    }

    private func hasOrigin(_ identifier: String) -> Bool {
        sources[identifier]?.remoteFile != nil || held[identifier]?.active != nil
    }

    /// Returns why the newest manifest does not confirm the shown text; `nil` if it does.
    func doubt(of identifier: String) -> TextStoreError? {
        guard let found = resolved[identifier], !isConfirmed(identifier, found.rank, found.text.origin) else { return nil }
        if versionSource?.remoteFile != nil, manifest == nil { return nil }
        if let refusal = refusalOfEntry(identifier) { return refusal }
        guard let offer = offer(for: identifier) else {
            return .unconfirmed(identifier, "the newest manifest does not list it; list it, or remove its source from the app")
        }
        guard held[identifier]?.waiting?.rank == offer.rank else {
            return .unconfirmed(
                identifier, "the newest manifest lists it differently, and that text has not arrived; call refresh() to fetch it")
        }
        let newest = offer.rank.version.map { "version \($0)" } ?? "a newer text"
        return .unconfirmed(identifier, "\(newest) waits for its activation; call activate(), or start the app again", code: .notActivated)
    }

    /// Returns why the manifest's entry of a text is not used: it is malformed, refused, or below the floor; `nil` if it is used.
    func refusalOfEntry(_ identifier: String) -> TextStoreError? {
        guard !isAhead(identifier) else { return nil }
        if let problem = unusable[identifier] { return problem.refusal }
        guard let floor = held[identifier]?.floor, let offer = offer(for: identifier), let entry = offer.entry, offer.rank < floor.rank
        else { return nil }
        return .belowFloor(identifier, offered: entry.version, floor: floor)
    }
}

extension TextStoreError {
    static func unconfirmed(_ identifier: String, _ reason: String, code: Code = .unconfirmed) -> TextStoreError {
        TextStoreError(code, identifier: identifier, "cannot confirm the text: \(reason)")
    }
}
