internal import Foundation
import StoreCore

/// Derives the best text of each identifier.
extension SessionState {
    /// The text of an identifier as the app sees it.
    enum Sight: Sendable {
        case unknown
        /// The text is registered, and its files are being read.
        case loading
        case text(VersionedText)
        case missing(TextStoreError)
    }

    func look(_ identifier: String, at now: Date) -> Sight {
        let (identifier, _) = shown(identifier)
        if let found = resolved[identifier] {
            return .text(found.text(ifExpired: manifestExpired(at: now)))
        }
        guard sources[identifier] != nil else { return .unknown }
        guard loaded.contains(identifier) else { return .loading }
        let reason = failure(of: identifier) ?? earlierFailure(of: identifier) ?? bundleFaults[identifier]
        let delivery =
            held[identifier]?.waiting == nil ? "the origin has not delivered it" : "the origin's text waits for its activation"
        return .missing(
            TextStoreError(
                .notAvailable, identifier: identifier,
                "cannot provide the text: neither cache nor bundle has it, and \(delivery); add a bundled file to have a text from the "
                    + "first start on",
                underlyingError: reason))
    }

    /// Returns the time at which the manifest expired; `nil` if it has not expired.
    func manifestExpired(at now: Date) -> Date? { manifest?.expires.flatMap { $0 <= now ? $0 : nil } }

    /// Returns the state for an observer; `nil` until the first one is known.
    func state(of identifier: String, at now: Date) -> LoadingState<VersionedText>? {
        let isLoading = manifestFlight != nil || isInFlight(identifier)
        switch look(identifier, at: now) {
        case .loading: return nil
        case .unknown: return .error(rawError: TextStoreError.unknown(identifier), content: nil)
        case .missing(let error):
            return isLoading ? .loading(content: nil) : .error(rawError: failure(of: identifier) ?? error, content: nil)
        case .text(let text):
            if isLoading { return .loading(content: text) }
            if let failure = failure(of: identifier) { return .error(rawError: failure, content: text) }
            return .completed(text)
        }
    }

    /// Returns the failure because of which a text may not be the newest; `nil` without a failure.
    func failure(of identifier: String) -> TextStoreError? {
        firstSpoken(identifier) { failures[set(of: $0)]?.error } ?? manifestFailure
    }

    /// Returns why an awaited text may not be the origin's newest; `nil` if the origin confirmed it.
    ///
    /// A check that is not older than the caller's timeout counts as the response.
    func fallbackReason(of identifier: String, at now: Date, askedSince start: Date, _ awaiting: TextAwaiting) -> TextStoreError? {
        if let failure = failure(of: identifier) { return failure }
        if let missing = missingLanguage(of: identifier) { return missing }
        let (identifier, _) = shown(identifier)
        if let date = manifestExpired(at: now), manifest?.entries[identifier] != nil { return .expiredManifest(date) }
        if let doubt = doubt(of: identifier) { return doubt }
        if let failure = earlierFailure(of: identifier) { return failure }
        guard case .remote(let timeout) = awaiting, let checkedAt = checkedAt(identifier, until: now) else { return nil }
        guard start.timeIntervalSince(checkedAt) > timeout.timeInterval else { return nil }
        let time = checkedAt.formatted(.iso8601)
        return .unconfirmed(identifier, "the origin was last checked at \(time); call refresh() to check now", code: .checkedRecently)
    }

    /// Returns the error of the last check if it failed, perhaps in an earlier process.
    private func earlierFailure(of identifier: String) -> TextStoreError? {
        guard versionSource?.remoteFile != nil, let last = manifestRecord, last.failures > 0, let end = last.attemptedAt else { return nil }
        let time = end.formatted(.iso8601)
        return .unconfirmed(identifier, "the last check, at \(time), failed; call refresh() to check now", code: .checkedRecently)
    }

    /// Returns the time of the last check for a text; `nil` if the text has no origin.
    private func checkedAt(_ identifier: String, until now: Date) -> Date? {
        if versionSource?.remoteFile != nil { return manifestRecord?.attemptedAt }
        guard sources[identifier]?.remoteFile != nil, offer(for: identifier) != nil else { return nil }
        return lastCheck(ofUnversioned: identifier, until: now)
    }

    /// Resolves the texts and groups that have changed since the last resolution. Returns bundled texts that raise the floor.
    mutating func resolve() -> [Risen] {
        var risen: [Risen] = []
        resolved.reserveCapacity(resolved.count + unresolved.texts.count)
        for identifier in unresolved.texts where groupOf[identifier] == nil && loaded.contains(identifier) {
            set(identifier, choose(identifier), &risen)
        }
        for group in unresolved.groups {
            let members = groups[group] ?? []
            let choice = choose(group, members), isAsBefore = choice == choices.updateValue(choice, forKey: group)
            // An unchanged choice leaves the group's other texts as they are.
            for identifier in isAsBefore ? members.intersection(unresolved.texts) : members {
                set(identifier, choose(identifier, choice), &risen)
            }
        }
        unresolved = ([], [])
        return risen.sorted { $0.identifier < $1.identifier }
    }

    private mutating func set(_ identifier: String, _ origin: VersionedText.Origin?, _ risen: inout [Risen]) {
        let found = origin.flatMap { resolved(identifier, $0) }
        resolved[identifier] = found
        note(identifier)
        guard let found, origin == .bundle, found.rank.version != nil else { return }
        let digest = found.text.digestBits
        // A text at the floor may have another wording than the last one, for example after the bundle ordered a rollback.
        if let floor = held[identifier]?.floor, found.rank < floor.rank || (found.rank == floor.rank && floor.digest == digest) { return }
        risen.append((identifier, found.rank, digest))
    }

    /// Returns the source of a text without a group.
    private func choose(_ identifier: String) -> VersionedText.Origin? {
        Resolution.choice(cached: record(identifier)?.rank, bundled: bundled[identifier].map { _ in rankOfBundled(identifier) })
    }

    /// The source of a group's texts, the same for all of them.
    struct Choice: Equatable {
        /// Whether the bundled texts are used rather than the cached ones.
        var isBundled = false
        /// Whether the previous cached texts are used, because an active one is damaged.
        var isBack = false
        /// Whether the cached texts no longer form a set, because an active one is damaged and another one has no previous record.
        var isTorn = false
    }

    /// Chooses the source of a group: the whole cached set, or the whole bundled one.
    ///
    /// A cached text that is not registered yet counts with its entry in the bundle's manifest. Otherwise the choice, and the floors that
    /// follow from it, would depend on the order of registration.
    private func choose(_ group: String, _ members: Set<String>) -> Choice {
        var choice = Choice()
        choice.isBack = !damaged.isDisjoint(with: members)
        choice.isTorn =
            choice.isBack
            && members.contains { name in held[name].map { ($0.active != nil || damaged.contains(name)) && $0.previous == nil } ?? false }
        var pairs: [(cached: Rank, bundled: Rank?)] = []
        for identifier in members where isCached(identifier, choice) {
            guard let found = held[identifier], let record = choice.isBack ? found.previous ?? found.active : found.active else { continue }
            pairs.append((record.rank, bundled[identifier] == nil ? nil : rankOfBundled(identifier)))
        }
        for (identifier, rank) in shelved[group] ?? [:] where !members.contains(identifier) {
            pairs.append((rank, bundledManifest?.entries[identifier].map { Rank(version: $0.version) }))
        }
        choice.isBundled = Resolution.prefersBundledSet(pairs)
        return choice
    }

    /// Returns the source of one text of a group.
    private func choose(_ identifier: String, _ choice: Choice) -> VersionedText.Origin? {
        if isCached(identifier, choice), !choice.isBundled { return .cache }
        if bundled[identifier] != nil { return .bundle }
        return record(identifier) != nil ? .cache : nil
    }

    private func isCached(_ identifier: String, _ choice: Choice) -> Bool {
        guard !choice.isTorn, let found = held[identifier] else { return false }
        return found.active != nil || damaged.contains(identifier)
    }

    /// Returns the record in use: the active one, or the previous one if an active one of the group is damaged.
    func record(_ identifier: String) -> TextRecord? {
        guard let found = held[identifier] else { return nil }
        guard !damaged.isEmpty else { return found.active }
        let isBack = groupOf[identifier].flatMap { groups[$0] }.map { !damaged.isDisjoint(with: $0) } ?? damaged.contains(identifier)
        return isBack ? found.previous ?? found.active : found.active
    }

    private func rankOfBundled(_ identifier: String) -> Rank {
        let version = bundledManifest?.entries[identifier]?.version
        return held[identifier]?.floor?.rankOfBundled(version, edition: bundledManifest?.edition) ?? Rank(version: version)
    }

    private func resolved(_ identifier: String, _ origin: VersionedText.Origin) -> Resolved? {
        let floor = held[identifier]?.floor
        let (name, language) = languages?.owner(of: identifier) ?? (identifier, nil)
        var text: VersionedText
        let rank: Rank
        if origin == .cache, let record = record(identifier) {
            let isFetched = record.hasText(of: fetched[identifier])
            text = VersionedText(
                identifier: name, text: record.text, version: record.facts.version, origin: isFetched ? .remote : .cache)
            text.isVerified = record.facts.isVerified || isListed(record)
            text.knownDigest = record.facts.digest
            rank = record.rank
        } else if let found = bundled[identifier] {
            rank = rankOfBundled(identifier)
            text = VersionedText(identifier: name, text: found.text, version: rank.version, origin: .bundle)
            text.knownDigest = found.digest
        } else {
            return nil
        }
        if language != nil { text.language = language }
        text.isBelowFloor = floor.map { rank < $0.rank } ?? false
        if !isConfirmed(identifier, rank, origin) { text.staleSince = manifestRecord?.receivedAt }
        return Resolved(text: text, rank: rank)
    }
}
