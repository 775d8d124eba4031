internal import Foundation
import StoreCore
internal import StorePlatform

/// The state of a session and the decisions that follow from it. Pure: no lock, clock, task, or file; time and tickets are arguments.
struct SessionState: Sendable {
    // MARK: Known state
    var sources: [String: TextSource] = [:]
    /// The texts in several languages; `nil` without any.
    var languages: LanguageTable?
    /// The registered texts with files that have been read; only these are shown and fetched.
    var loaded: Set<String> = []
    var bundled: [String: BundledText] = [:]
    var bundleFaults: [String: TextStoreError] = [:]
    /// The shelf's records of each text.
    private(set) var held: [String: Held] = [:]
    var versionSource: VersionSource? { didSet { invalidateResolutions() } }
    /// The ticket of the last call that has set the version source.
    var sourceCall: UInt64 = 0
    var bundledManifest: VersionManifest?
    private(set) var manifest: VersionManifest?
    /// The newest accepted manifest; ahead of the one above until its record has been saved.
    var accepted: VersionManifest?
    /// Texts with an unusable entry in the manifest.
    private(set) var unusable: [String: VersionManifest.Problem] = [:]
    var manifestRecord: ManifestRecord? { didSet { invalidateResolutions() } }
    /// When a failed check is repeated at the latest, even if the clock is set back; `nil` if the last check succeeded.
    private(set) var manifestRetryAt: MonotonicInstant?
    /// The texts that another process has switched since this one last checked the manifest, which it did for a newer manifest.
    var foreign: Set<String> = []
    /// The last record of each text that was fetched in this process.
    var fetched: [String: TextRecord] = [:]

    // MARK: Work in progress
    var manifestFlight: UInt64? { didSet { invalidateResolutions() } }
    private(set) var flights: [String: UInt64] = [:]
    var manifestFailure: TextStoreError? { didSet { invalidateResolutions() } }
    private(set) var failures: [String: SetFailure] = [:]
    /// Whether sets are fetched even if they are not due, once the manifest has arrived.
    var isForced = false { didSet { if isForced != oldValue { invalidateResolutions() } } }
    /// Whether a refresh was called after the manifest's fetch in flight began, so that the fetch is repeated.
    var isManifestOvertaken = false
    /// The sets with a fetch that began before the last refresh, and that is repeated.
    var overtaken: Set<String> = []
    /// The number of refreshes that wait for the end of their fetches.
    var refreshing = 0
    /// The number of times that all fetches were abandoned.
    private(set) var abandonments = 0
    var observers: [String: Int] = [:]
    /// The callers with a timeout that has passed.
    private(set) var expired: Set<UInt64> = []
    var timer: (ticket: UInt64, deadline: MonotonicInstant)?
    private var lastTicket: UInt64 = 0

    // MARK: Derived state
    var resolved: [String: Resolved] = [:]
    /// Rises whenever the quiet periods of all texts may have changed.
    private var era: UInt64 = 0
    /// The texts that have changed since observers were last notified.
    var changed = ChangedParts.nothing
    /// The loaded texts of each group, by the group's key.
    private(set) var groups: [String: Set<String>] = [:]
    /// The group's key of each loaded text that has a group.
    private(set) var groupOf: [String: String] = [:]
    /// The active ranks of each group on the shelf, registered or not, by the group's key.
    private(set) var shelved: [String: [String: Rank]] = [:]
    /// The texts with active files that could not be read.
    private(set) var damaged: Set<String> = []
    /// The last choice for each group.
    var choices: [String: Choice] = [:]
    /// The texts and groups that have changed since they were last resolved.
    var unresolved: (texts: Set<String>, groups: Set<String>) = ([], [])

    mutating func ticket() -> UInt64 {
        lastTicket += 1
        return lastTicket
    }

    // MARK: Registering

    /// Registers sources, all of them or none.
    mutating func register(_ new: [TextSource]) throws(TextStoreError) {
        // Validating before storing avoids a copy of all sources, which would make each registration as expensive as all earlier ones.
        var places: [String: Int] = [:]
        for (place, source) in new.enumerated() {
            guard !source.identifier.isEmpty else {
                throw TextStoreError(.invalidName, "cannot register a text: its identifier is empty; pass one")
            }
            if let known = places.updateValue(place, forKey: source.identifier).map({ new[$0] }) ?? sources[source.identifier],
                known != source
            {
                throw TextStoreError(
                    .conflictingSource, identifier: source.identifier,
                    "cannot register it: the identifier already has another source; choose another identifier for one of them")
            }
        }
        try speak(new)
        sources.reserveCapacity(sources.count + places.count)
        for source in new { sources[source.identifier] = source }
    }

    /// Marks registered texts as loaded, with the results of reading their bundled files.
    mutating func load(_ identifiers: [String], _ bundled: [String: Result<BundledText, TextStoreError>]) {
        for (identifier, outcome) in bundled {
            switch outcome {
            case .success(let text): self.bundled[identifier] = text
            case .failure(let fault): bundleFaults[identifier] = fault
            }
        }
        loaded.formUnion(identifiers)
        for identifier in identifiers { note(identifier) }
    }

    /// Takes over the shelf's records of some texts, the texts with damaged active files, and the active ranks of each group.
    mutating func take(_ texts: [(identifier: String, held: Held)], damaged: Set<String>, of groups: [String: [String: Rank]]) {
        shelved = groups
        held.reserveCapacity(held.count + texts.count)
        for text in texts {
            if let known = held[text.identifier], let active = text.held.active, !active.hasText(of: known.active),
                !active.hasText(of: fetched[text.identifier])
            {
                foreign.insert(text.identifier)
            }
            held[text.identifier] = text.held
            if damaged.contains(text.identifier) { self.damaged.insert(text.identifier) } else { self.damaged.remove(text.identifier) }
            if loaded.contains(text.identifier) { join(text.identifier) }
        }
        touch(texts.lazy.map(\.identifier))
    }

    // MARK: Sets

    /// Replaces the manifest, which may move texts to other sets.
    mutating func replaceManifest(_ new: VersionManifest?) {
        (manifest, accepted) = (new, new)
        invalidateResolutions()
        unusable = Dictionary((new?.problems ?? []).map { ($0.identifier, $0) }) { first, _ in first }
        groups = [:]
        groupOf = [:]
        choices = [:]
        for identifier in loaded { join(identifier) }
        if !failures.isEmpty {
            // A failure of a set that no longer exists would concern no text, and no fetch would clear it.
            let known = Set(sets)
            failures = failures.filter { known.contains($0.key) }
        }
        touchAll()
    }

    /// Marks all loaded texts as changed, so that they are resolved again.
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
        // A malformed entry may lack its group. The group of the last switch is then used, or else the group in the bundle.
        if problem != nil { return held[identifier]?.group ?? bundledManifest?.entries[identifier]?.group.map { "group/" + $0 } }
        // Until the manifest has arrived, the group of the last switch is used.
        return manifest == nil && versionSource?.remoteFile != nil ? held[identifier]?.group : nil
    }

    /// Returns the set that a text is fetched and switched with; a text without a group is a set of its own.
    func set(of identifier: String) -> String {
        groupOf[identifier] ?? groupKey(of: identifier) ?? "text/" + identifier
    }

    /// Returns the loaded texts of a set, sorted.
    func members(of set: String) -> [String] {
        if set.isGroup { return (groups[set] ?? []).sorted() }
        let identifier = String(set.nameInSet)
        return loaded.contains(identifier) && groupOf[identifier] == nil ? [identifier] : []
    }

    /// Returns whether a text of a set satisfies a condition. Called at each registration, so it does not sort.
    func hasMember(of set: String, where isSo: (String) -> Bool) -> Bool {
        set.isGroup ? groups[set]?.contains(where: isSo) ?? false : members(of: set).contains(where: isSo)
    }

    /// All sets of loaded texts, sorted.
    var sets: [String] { (loaded.lazy.filter { groupOf[$0] == nil }.map { "text/" + $0 } + groups.keys).sorted() }

    // MARK: Fetches

    /// Sets the record of the last check, and with it the instant of the next one after a failure.
    mutating func setManifestRecord(_ record: ManifestRecord?, at moment: SessionMoment) {
        manifestRecord = record
        manifestRetryAt = record.flatMap { record in
            guard record.failures > 0 else { return nil }
            // The difference of two dates may exceed the pause by a rounding error.
            let rest = min(record.pause, record.dueAt(moment.date).timeIntervalSince(moment.date))
            return moment.instant.advanced(by: Duration(saturating: rest))
        }
    }

    /// Returns whether the manifest is to be checked.
    func isCheckDue(at moment: SessionMoment) -> Bool {
        guard let manifestRecord else { return true }
        return manifestRecord.isDue(at: moment.date) || manifestRetryAt.map { $0 <= moment.instant } ?? false
    }

    mutating func setFlight(_ flight: UInt64?, of set: String) {
        flights[set] = flight
        invalidateResolutions(ofSet: set)
    }

    mutating func setFailure(_ failure: SetFailure?, of set: String) {
        if failure == nil, failures[set] == nil { return }
        failures[set] = failure
        invalidateResolutions(ofSet: set)
    }

    /// Makes all failed sets due for an attempt now.
    mutating func retryAll(at instant: MonotonicInstant) {
        for (set, failure) in failures where failure.retryAt != nil { failures[set]?.retryAt = instant }
        invalidateResolutions()
    }

    /// Abandons all fetches and failures, because the state that they were planned for has changed.
    mutating func forgetFetches() {
        manifestFlight = nil
        flights = [:]
        manifestFailure = nil
        failures = [:]
        isManifestOvertaken = false
        overtaken = []
        abandonments += 1
        // A waiting refresh still needs its fetches.
        if refreshing > 0 { isForced = true }
    }

    /// Records that a caller's timeout has passed, or that the caller no longer waits.
    mutating func setExpired(_ isExpired: Bool, _ caller: UInt64, of identifier: String) {
        if isExpired { expired.insert(caller) } else { expired.remove(caller) }
        changed.insert(identifier)
    }

    // MARK: Changes and quiet

    /// Marks all texts as changed and ends their quiet periods, for example because time has passed.
    mutating func invalidateResolutions() {
        changed = .everything
        era += 1
    }

    /// Marks the texts of a set as changed and ends their quiet periods.
    private mutating func invalidateResolutions(ofSet set: String) {
        for identifier in members(of: set) {
            note(identifier)
            if let found = resolved[identifier], found.quiet != nil { resolved[identifier] = found.with(nil) }
        }
    }

    /// Returns the best available text if its quiet period is known and of this era.
    func quiet(_ identifier: String) -> Resolved? {
        guard let found = resolved[identifier], found.quiet?.era == era else { return nil }
        return found
    }

    /// Returns the best available text and computes its quiet period, during which further reads need no action.
    ///
    /// - Returns: The text, and whether an action is due for it; `nil` if no text is available.
    mutating func see(_ identifier: String, at moment: SessionMoment) -> (text: VersionedText, isDue: Bool)? {
        let (identifier, isSecond) = shown(identifier)
        guard let found = resolved[identifier] else { return nil }
        let expiredSince = manifestExpired(at: moment.date)
        let end = endOfQuiet(of: identifier, at: moment)
        let quiet = Quiet(era: era, from: moment.date, until: end, deadline: retryDeadline(of: identifier), expiredSince: expiredSince)
        resolved[identifier] = found.with(quiet)
        let isOver = quiet.deadline.map { $0 <= moment.instant } ?? false
        return (found.text(ifExpired: expiredSince), isDue: isOver || isSecond || end <= moment.date)
    }
}

extension String {
    /// Whether a set is a group, and not a text of its own. Compares bytes, because a name may begin with a combining character.
    var isGroup: Bool { utf8.starts(with: "group/".utf8) }

    /// The name of a set's group, or of its only text.
    var nameInSet: Substring { Substring(utf8.dropFirst(isGroup ? 6 : 5)) }
}

/// One moment of a session on both clocks, with the policy of the session.
struct SessionMoment: Sendable {
    let date: Date
    let instant: MonotonicInstant
    let policy: TextStorePolicy
}

extension TextStoreError {
    static func unknown(_ identifier: String) -> TextStoreError {
        TextStoreError(
            .unknownIdentifier, identifier: identifier, "cannot find the text: its identifier is not registered; register its source first")
    }
}
