internal import Foundation
import StoreCore

/// What follows from what is known: the best text of each.
extension SessionState {
    /// What an app shows of a text.
    enum Sight: Sendable {
        case unknown
        /// Its files are being read.
        case loading
        case text(VersionedText)
        case missing(TextStoreError)
    }

    func look(_ identifier: String, at now: Date) -> Sight {
        if let found = resolved[identifier] {
            return .text(found.text(ifExpired: manifestExpired(at: now)))
        }
        guard sources[identifier] != nil else { return .unknown }
        guard loaded.contains(identifier) else { return .loading }
        let reason = failure(of: identifier) ?? bundleFaults[identifier]
        return .missing(
            TextStoreError(
                .notAvailable, identifier: identifier,
                "neither cache nor bundle has it, and the origin has not brought it; put a file into the bundle, to have one from the first "
                    + "start on",
                underlyingError: reason))
    }

    /// Since when what is known of versions has expired; `nil` where it has not.
    func manifestExpired(at now: Date) -> Date? { manifest?.expires.flatMap { $0 <= now ? $0 : nil } }

    /// The state that an observer is shown; `nil` while the first one is not known.
    func state(of identifier: String, at now: Date) -> LoadingState<VersionedText>? {
        let isLoading = manifestFlight != nil || flights[set(of: identifier)] != nil
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

    /// Why a text may not be the newest.
    func failure(of identifier: String) -> TextStoreError? {
        failures[set(of: identifier)]?.error ?? manifestFailure
    }

    /// Why a text that a caller waited for may not be what the origin has; `nil` if the origin confirmed it.
    ///
    /// A check counts if it is not older than the caller would have waited: the texts are as new then as a response would have made them.
    ///
    /// - Parameter start: When the caller began to wait.
    func fallbackReason(of identifier: String, at now: Date, askedSince start: Date, _ awaiting: TextAwaiting) -> TextStoreError? {
        if let failure = failure(of: identifier) { return failure }
        if let date = manifestExpired(at: now), manifest?.entries[identifier] != nil { return .expiredManifest(date) }
        guard case .remote(let timeout) = awaiting, let checkedAt = checkedAt(identifier) else { return nil }
        guard start.timeIntervalSince(checkedAt) > timeout.timeInterval else { return nil }
        return TextStoreError(
            .checkedRecently, identifier: identifier,
            "waiting for the origin: it was last asked at \(checkedAt.formatted(.iso8601)), and is not due; call refresh() to ask at once")
    }

    /// When the origin was last asked for the version of a text, or for the text itself if it has none; `nil` if there is no origin.
    private func checkedAt(_ identifier: String) -> Date? {
        if versionSource?.remoteFile != nil { return manifestRecord?.attemptedAt }
        guard sources[identifier]?.remoteFile != nil, offer(for: identifier) != nil, let text = held[identifier] else { return nil }
        return text.checked ?? text.active?.facts.fetchedAt
    }

    /// Decides anew which text is the best of each, where something has become known.
    ///
    /// - Returns: Bundled texts that raise the floor.
    mutating func resolve() -> [Risen] {
        var risen: [Risen] = []
        resolved.reserveCapacity(resolved.count + unresolved.texts.count)
        for identifier in unresolved.texts where groupOf[identifier] == nil && loaded.contains(identifier) {
            set(identifier, choose(identifier), &risen)
        }
        for group in unresolved.groups {
            let members = groups[group] ?? []
            let choice = choose(group, members), isAsBefore = choice == choices.updateValue(choice, forKey: group)
            // Where the group stays what it was, one more text of it costs no other one.
            for identifier in isAsBefore ? members.intersection(unresolved.texts) : members {
                set(identifier, choose(identifier, choice), &risen)
            }
        }
        unresolved = ([], [])
        return risen.sorted { $0.identifier < $1.identifier }
    }

    private mutating func set(_ identifier: String, _ origin: Resolution.Origin?, _ risen: inout [Risen]) {
        let found = origin.flatMap { resolved(identifier, $0) }
        resolved[identifier] = found
        changed.insert(identifier)
        guard let found, origin == .bundle, found.rank.version != nil else { return }
        if let floor = held[identifier]?.floor, found.rank <= floor.rank { return }
        risen.append(Risen(identifier: identifier, rank: found.rank, digest: found.text.digestBits))
    }

    /// Where a text that is a set of its own is taken from.
    private func choose(_ identifier: String) -> Resolution.Origin? {
        guard let record = record(identifier) else { return bundled[identifier] == nil ? nil : .bundle }
        guard bundled[identifier] != nil else { return .cache }
        return Resolution.order([
            Resolution.Candidate(origin: .cache, rank: record.rank),
            Resolution.Candidate(origin: .bundle, rank: rankOfBundled(identifier)),
        ]).first
    }

    /// Where the texts of a group are taken from, all of them.
    struct Choice: Equatable {
        /// The bundled ones rather than the cached ones.
        var isBundled = false
        /// The cached ones are the previous ones, because an active one is damaged.
        var isBack = false
        /// An active one is damaged, and one of the others has no previous one: what is left of the cached set is no set.
        var isTorn = false
    }

    /// Where a group is taken from: the whole cached set, or the whole bundled one.
    ///
    /// A cached text that is not registered yet counts with what the bundle's manifest says of it. Else the choice, and the floors that
    /// follow from it, would depend on which text is registered first.
    private func choose(_ group: String, _ members: Set<String>) -> Choice {
        var choice = Choice()
        choice.isBack = !damaged.isDisjoint(with: members)
        choice.isTorn =
            choice.isBack && !members.allSatisfy { held[$0].map { $0.active == nil && !$0.isDamaged || $0.previous != nil } ?? true }
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

    /// Where one text of a group is taken from.
    private func choose(_ identifier: String, _ choice: Choice) -> Resolution.Origin? {
        if isCached(identifier, choice), !choice.isBundled { return .cache }
        if bundled[identifier] != nil { return .bundle }
        return record(identifier) != nil ? .cache : nil
    }

    private func isCached(_ identifier: String, _ choice: Choice) -> Bool {
        guard !choice.isTorn, let found = held[identifier] else { return false }
        return found.active != nil || found.isDamaged
    }

    /// The record of a text that is used: the active one, or the one before where that is damaged.
    func record(_ identifier: String) -> TextRecord? {
        guard let found = held[identifier] else { return nil }
        guard !damaged.isEmpty else { return found.active }
        let isBack = groupOf[identifier].flatMap { groups[$0] }.map { !damaged.isDisjoint(with: $0) } ?? found.isDamaged
        return isBack ? found.previous ?? found.active : found.active
    }

    private func rankOfBundled(_ identifier: String) -> Rank {
        let version = bundledManifest?.entries[identifier]?.version
        return held[identifier]?.floor?.rankOfBundled(version, edition: bundledManifest?.edition) ?? Rank(version: version)
    }

    private func resolved(_ identifier: String, _ origin: Resolution.Origin) -> Resolved? {
        let floor = held[identifier]?.floor
        var text: VersionedText
        let rank: Rank
        if origin == .cache, let record = record(identifier) {
            let isFetched = fetched[identifier] == record.facts.digest
            text = VersionedText(
                identifier: identifier, text: record.text, version: record.facts.version, origin: isFetched ? .remote : .cache)
            text.isVerified = record.facts.isVerified
            text.knownDigest = record.facts.digest
            rank = record.rank
        } else if let found = bundled[identifier] {
            rank = rankOfBundled(identifier)
            text = VersionedText(identifier: identifier, text: found.text, version: rank.version, origin: .bundle)
            text.knownDigest = found.digest
        } else {
            return nil
        }
        text.isBelowFloor = floor.map { rank < $0.rank } ?? false
        let isNewer = offer(for: identifier).map { $0.rank > rank } ?? false
        // A malformed entry holds its whole set back, so the text may be as outdated as the others.
        if isNewer || (groupOf[identifier] != nil && unusable[identifier] != nil) { text.staleSince = manifestRecord?.receivedAt }
        return Resolved(text: text, rank: rank)
    }
}
