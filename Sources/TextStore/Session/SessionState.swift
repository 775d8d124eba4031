internal import Foundation
import StoreCore

/// All that is known of a session, and what follows from it. Pure: no lock, clock, task or file; time and tickets are arguments.
struct SessionState: Sendable {
    // What is known.
    var sources: [String: TextSource] = [:]
    /// Registered texts whose files have been read.
    var loaded: Set<String> = []
    var bundled: [String: BundledText] = [:]
    var bundleFaults: [String: TextStoreError] = [:]
    var shelf = Shelf.Contents()
    var versionSource: VersionSource?
    var bundledManifest: VersionManifest?
    var manifest: VersionManifest?
    var manifestRecord: ManifestRecord?
    /// The digests of texts that were fetched in this start.
    var fetched: [String: String] = [:]

    // What goes on.
    var manifestFlight: UInt64?
    var flights: [String: UInt64] = [:]
    var manifestFailure: TextStoreError?
    var failures: [String: SetFailure] = [:]
    /// Whether sets are fetched although they need not be, once the manifest is here.
    var isForced = false
    var observers: [String: Int] = [:]
    /// Callers whose time is over.
    var expired: Set<UInt64> = []
    var timer: (ticket: UInt64, deadline: MonotonicInstant)?
    private var lastTicket: UInt64 = 0

    // What follows.
    private(set) var resolved: [String: Resolved] = [:]

    /// A text of the bundle.
    struct BundledText: Sendable {
        var text: String
        var digest: String
        var fileDigest: String
    }

    /// The best text that is here.
    struct Resolved: Sendable {
        var text: VersionedText
        var rank: Rank
        /// Whether the origin has a newer one.
        var isOutdated: Bool
    }

    /// A set that could not be fetched.
    struct SetFailure: Sendable {
        var error: TextStoreError
        var count: Int
        var retryAt: MonotonicInstant
    }

    mutating func ticket() -> UInt64 {
        lastTicket += 1
        return lastTicket
    }

    // MARK: Registering

    /// Takes sources, all of them or none.
    ///
    /// - Throws: ``TextStoreError/Code/invalidName`` or ``TextStoreError/Code/conflictingSource``.
    mutating func register(_ new: [TextSource]) throws(TextStoreError) {
        var merged = sources
        for source in new {
            guard !source.identifier.isEmpty else {
                throw TextStoreError(.invalidName, "registering a text: its identifier is empty; give it a name")
            }
            if let known = merged[source.identifier], known != source {
                throw TextStoreError(
                    .conflictingSource, identifier: source.identifier,
                    "registering it: it is registered with another source already; give one of them another identifier")
            }
            merged[source.identifier] = source
        }
        sources = merged
    }

    // MARK: Sets

    /// The set that a text is fetched and switched with; a text without group is a set of its own.
    func set(of identifier: String) -> String {
        let group = manifest?.entries[identifier]?.group ?? sources[identifier]?.group
        return group.map { "group/" + $0 } ?? "text/" + identifier
    }

    /// All sets of texts that have been read, in the order of their names.
    var sets: [(key: String, members: [String])] {
        Dictionary(grouping: loaded, by: set(of:)).map { ($0.key, $0.value.sorted()) }.sorted { $0.0 < $1.0 }
    }

    // MARK: Resolving

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
            var text = found.text
            if text.staleSince == nil, let expires = manifest?.expires, expires <= now { text.staleSince = expires }
            return .text(text)
        }
        guard sources[identifier] != nil else { return .unknown }
        guard loaded.contains(identifier) else { return .loading }
        let reason = failure(of: identifier) ?? bundleFaults[identifier]
        return .missing(
            TextStoreError(
                .notAvailable, identifier: identifier,
                "neither cache nor bundle has it; wait for the origin, or put a file into the bundle", underlyingError: reason))
    }

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

    /// Decides anew which text is the best of each, after anything has become known.
    mutating func resolve() {
        var all: [String: Resolved] = [:]
        for (_, members) in sets {
            for (identifier, origin) in choose(members) { all[identifier] = resolved(identifier, origin) }
        }
        resolved = all
    }

    /// Where each text of a set is taken from: the whole cached set, or the whole bundled one.
    private func choose(_ members: [String]) -> [(String, Resolution.Origin)] {
        var cached = members.filter { shelf.active[$0] != nil }
        let damaged = members.filter(shelf.damaged.contains)
        if !damaged.isEmpty {
            // The whole set goes back, or what is left of it is no set.
            cached = (cached + damaged).allSatisfy { shelf.previous[$0] != nil } ? cached + damaged : []
        }
        let pairs = cached.compactMap { identifier in
            record(identifier).map { (cached: $0.rank, bundled: bundled[identifier] == nil ? nil : rankOfBundled(identifier)) }
        }
        if members.count == 1, let pair = pairs.first {
            var candidates = [Resolution.Candidate(origin: .cache, rank: pair.cached)]
            if let rank = pair.bundled { candidates.append(Resolution.Candidate(origin: .bundle, rank: rank)) }
            return Resolution.order(candidates).prefix(1).map { (members[0], $0) }
        }
        let isBundled = Resolution.prefersBundledSet(pairs)
        return members.compactMap { identifier in
            if cached.contains(identifier), !isBundled { return (identifier, .cache) }
            if bundled[identifier] != nil { return (identifier, .bundle) }
            return record(identifier) != nil ? (identifier, .cache) : nil
        }
    }

    /// The record of a text that is used: the active one, or the one before where that is damaged.
    func record(_ identifier: String) -> TextRecord? {
        let isBack = sources[identifier] != nil && !shelf.damaged.isEmpty && isSetDamaged(identifier)
        return isBack ? shelf.previous[identifier] ?? shelf.active[identifier] : shelf.active[identifier]
    }

    private func isSetDamaged(_ identifier: String) -> Bool {
        let key = set(of: identifier)
        return shelf.damaged.contains { set(of: $0) == key }
    }

    private func rankOfBundled(_ identifier: String) -> Rank {
        let version = bundledManifest?.entries[identifier]?.version
        return shelf.floors.texts[identifier]?.rankOfBundled(version) ?? Rank(version: version)
    }

    private func resolved(_ identifier: String, _ origin: Resolution.Origin) -> Resolved? {
        let floor = shelf.floors.texts[identifier]
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
        let isOutdated = offer(for: identifier).map { offer in offer.rank > rank } ?? false
        if isOutdated { text.staleSince = manifestRecord?.receivedAt }
        return Resolved(text: text, rank: rank, isOutdated: isOutdated)
    }

    /// Bundled texts that are shown and newer than all that was: they raise the floor.
    var risen: [(identifier: String, rank: Rank, digest: String)] {
        resolved.compactMap { identifier, found in
            guard found.text.origin == .bundle, found.rank.version != nil else { return nil }
            if let floor = shelf.floors.texts[identifier], found.rank <= floor.rank { return nil }
            return (identifier, found.rank, found.text.digest)
        }.sorted { $0.identifier < $1.identifier }
    }
}

extension TextStoreError {
    static func unknown(_ identifier: String) -> TextStoreError {
        TextStoreError(.unknownIdentifier, identifier: identifier, "no text of that identifier is registered; register its source first")
    }
}
