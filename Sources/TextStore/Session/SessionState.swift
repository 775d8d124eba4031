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
    /// What is on the shelf of each text.
    private(set) var held: [String: Held] = [:]
    /// How often everything was forgotten; what was begun before belongs to what is gone.
    private(set) var generation: UInt64 = 0
    var versionSource: VersionSource? { didSet { stir() } }
    var bundledManifest: VersionManifest?
    private(set) var manifest: VersionManifest?
    /// Texts whose entry in the manifest cannot be used.
    private(set) var unusable: [String: VersionManifest.Problem] = [:]
    var manifestRecord: ManifestRecord? { didSet { stir() } }
    /// The digests of texts that were fetched in this start.
    var fetched: [String: SHA256.Digest] = [:]

    // What goes on.
    var manifestFlight: UInt64? { didSet { stir() } }
    private(set) var flights: [String: UInt64] = [:]
    var manifestFailure: TextStoreError? { didSet { stir() } }
    private(set) var failures: [String: SetFailure] = [:]
    /// Whether sets are fetched although they need not be, once the manifest is here.
    var isForced = false
    var observers: [String: Int] = [:]
    /// Callers whose time is over.
    private(set) var expired: Set<UInt64> = []
    var timer: (ticket: UInt64, deadline: MonotonicInstant)?
    private var lastTicket: UInt64 = 0

    // What follows.
    var resolved: [String: Resolved] = [:]
    /// Rises when something has changed on which the quiet of all texts depends.
    private var era: UInt64 = 0
    /// The texts that have changed since observers were looked at.
    var changed = ChangedParts.nothing
    /// The texts of each group that have been read, by the group's key.
    private(set) var groups: [String: Set<String>] = [:]
    /// The key of the group of each text that has been read and has one.
    private(set) var groupOf: [String: String] = [:]
    /// What is active on the shelf of each group, registered or not, by the group's key.
    private(set) var shelved: [String: [String: Rank]] = [:]
    /// The key of the group that each text of the shelf was switched with.
    private var shelvedGroups: [String: String] = [:]
    /// Texts whose active files are damaged.
    private(set) var damaged: Set<String> = []
    /// How each group was chosen last.
    var choices: [String: Choice] = [:]
    /// Texts and groups of which something has become known that was not there when they were resolved.
    var unresolved: (texts: Set<String>, groups: Set<String>) = ([], [])

    mutating func ticket() -> UInt64 {
        lastTicket += 1
        return lastTicket
    }

    // MARK: Registering

    /// Takes sources, all of them or none.
    ///
    /// - Throws: ``TextStoreError/Code/invalidName`` or ``TextStoreError/Code/conflictingSource``.
    mutating func register(_ new: [TextSource]) throws(TextStoreError) {
        // Looked at first and taken then: a copy of all sources would make each registration cost as much as all before it.
        var places: [String: Int] = [:]
        for (place, source) in new.enumerated() {
            guard !source.identifier.isEmpty else {
                throw TextStoreError(.invalidName, "registering a text: its identifier is empty; give it a name")
            }
            if let known = places.updateValue(place, forKey: source.identifier).map({ new[$0] }) ?? sources[source.identifier],
                known != source
            {
                throw TextStoreError(
                    .conflictingSource, identifier: source.identifier,
                    "registering it: it is registered with another source already; give one of them another identifier")
            }
        }
        sources.reserveCapacity(sources.count + places.count)
        for source in new { sources[source.identifier] = source }
    }

    /// The files of registered texts have been read.
    mutating func load(_ identifiers: [String], _ bundled: [String: Result<BundledText, TextStoreError>]) {
        for (identifier, outcome) in bundled {
            switch outcome {
            case .success(let text): self.bundled[identifier] = text
            case .failure(let fault): bundleFaults[identifier] = fault
            }
        }
        loaded.formUnion(identifiers)
        for identifier in identifiers { changed.insert(identifier) }
    }

    /// Takes over what the shelf has of some texts.
    mutating func take(
        _ texts: [(identifier: String, held: Held)], of groups: ([String: [String: Rank]], [String: String]), generation: UInt64
    ) {
        self.generation = generation
        (shelved, shelvedGroups) = groups
        held.reserveCapacity(held.count + texts.count)
        for text in texts {
            held[text.identifier] = text.held
            if text.held.isDamaged { damaged.insert(text.identifier) } else { damaged.remove(text.identifier) }
            if loaded.contains(text.identifier) { join(text.identifier) }
        }
        touch(texts.lazy.map(\.identifier))
    }

    // MARK: Sets

    /// Takes another manifest, or none: it may put texts into other sets.
    mutating func replaceManifest(_ new: VersionManifest?) {
        manifest = new
        stir()
        unusable = Dictionary((new?.problems ?? []).map { ($0.identifier, $0) }) { first, _ in first }
        groups = [:]
        groupOf = [:]
        choices = [:]
        for identifier in loaded { join(identifier) }
        touchAll()
    }

    /// Something that all texts depend on has changed.
    mutating func touchAll() { touch(loaded) }

    private mutating func touch(_ identifiers: some Sequence<String>) {
        for identifier in identifiers {
            unresolved.texts.insert(identifier)
            if let group = groupOf[identifier] { unresolved.groups.insert(group) }
        }
    }

    private mutating func join(_ identifier: String) {
        let group = groupKey(of: identifier), old = groupOf[identifier]
        guard group != old else { return }
        if let old {
            groups[old]?.remove(identifier)
            if groups[old]?.isEmpty == true { groups[old] = nil }
            choices[old] = nil
            unresolved.groups.insert(old)
        }
        groupOf[identifier] = group
        if let group { groups[group, default: []].insert(identifier) }
    }

    private func groupKey(of identifier: String) -> String? {
        let problem = unusable[identifier]
        if let group = manifest?.entries[identifier]?.group ?? problem?.group ?? sources[identifier]?.group { return "group/" + group }
        // A malformed entry may not say its group: the last switch does, or the bundle.
        if problem != nil { return shelvedGroups[identifier] ?? bundledManifest?.entries[identifier]?.group.map { "group/" + $0 } }
        // As long as the manifest is not here that would say, a set is what was switched as one.
        return manifest == nil && versionSource?.remoteFile != nil ? shelvedGroups[identifier] : nil
    }

    /// The set that a text is fetched and switched with; a text without group is a set of its own.
    func set(of identifier: String) -> String {
        groupOf[identifier] ?? groupKey(of: identifier) ?? "text/" + identifier
    }

    /// The texts of a set that have been read, in the order of their names.
    func members(of set: String) -> [String] {
        guard set.hasPrefix("text/") else { return (groups[set] ?? []).sorted() }
        let identifier = String(set.dropFirst(5))
        return loaded.contains(identifier) && groupOf[identifier] == nil ? [identifier] : []
    }

    /// Whether a set has a text that is so; asked at each registration, so it puts nothing in order.
    func hasMember(of set: String, where isSo: (String) -> Bool) -> Bool {
        set.hasPrefix("text/") ? members(of: set).contains(where: isSo) : groups[set]?.contains(where: isSo) ?? false
    }

    /// All sets of texts that have been read, in the order of their names.
    var sets: [String] { (loaded.lazy.filter { groupOf[$0] == nil }.map { "text/" + $0 } + groups.keys).sorted() }

    // MARK: Going on

    /// Lets a set be under way, or no longer.
    mutating func setFlight(_ flight: UInt64?, of set: String) {
        flights[set] = flight
        stir(set: set)
    }

    /// A set could not be fetched, or that no longer counts.
    mutating func setFailure(_ failure: SetFailure?, of set: String) {
        if failure == nil, failures[set] == nil { return }
        failures[set] = failure
        stir(set: set)
    }

    /// Lets everything that failed be tried again now.
    mutating func retryAll(at instant: MonotonicInstant) {
        for (set, failure) in failures where failure.retryAt != nil { failures[set]?.retryAt = instant }
        stir()
    }

    /// What is under way, and what has failed, was decided by what no longer holds.
    mutating func forgetFetches() {
        manifestFlight = nil
        flights = [:]
        manifestFailure = nil
        failures = [:]
    }

    /// A caller who waits for a text has waited long enough, or waits no more.
    mutating func setExpired(_ isExpired: Bool, _ caller: UInt64, of identifier: String) {
        if isExpired { expired.insert(caller) } else { expired.remove(caller) }
        changed.insert(identifier)
    }

    // MARK: Changes and quiet

    /// The texts that have changed since this was asked last.
    mutating func takeChanges() -> ChangedParts { changed.take() }

    /// Something that all texts depend on has changed, be it the time: nobody knows for how long all is quiet.
    mutating func stir() {
        changed = .everything
        era += 1
    }

    /// Something has changed of each text of a set.
    private mutating func stir(set: String) {
        for identifier in members(of: set) {
            changed.insert(identifier)
            if let found = resolved[identifier], found.quiet != nil { resolved[identifier] = found.with(nil) }
        }
    }

    /// The best text that is here, where it is known that now nothing needs to be done for it.
    func quiet(_ identifier: String) -> Resolved? {
        guard let found = resolved[identifier], found.quiet?.era == era else { return nil }
        return found
    }

    /// Looks at a text, and for how long time alone changes nothing of it: reads until then need no more than a look.
    ///
    /// - Returns: The best text that is here, and whether something is due for it; `nil` where there is none.
    mutating func see(
        _ identifier: String, at now: Date, _ instant: MonotonicInstant, _ policy: TextStorePolicy
    ) -> (text: VersionedText, isDue: Bool)? {
        guard let found = resolved[identifier] else { return nil }
        let expiredSince = manifestExpired(at: now)
        let end = endOfQuiet(of: identifier, at: now, instant, policy)
        resolved[identifier] = found.with(Quiet(era: era, from: now, until: end, expiredSince: expiredSince))
        return (found.text(ifExpired: expiredSince), isDue: end <= now)
    }
}

extension TextStoreError {
    static func unknown(_ identifier: String) -> TextStoreError {
        TextStoreError(.unknownIdentifier, identifier: identifier, "no text of that identifier is registered; register its source first")
    }
}
