internal import Foundation
internal import RemoteHTTP
import StoreCore
internal import StorePlatform

/// A fetch that the session has decided on; the store runs it and reports its end.
enum SessionAction: Sendable {
    case fetchManifest(ticket: UInt64, VersionSource, RemoteFile, ManifestRecord)
    case fetchSet(SetPlan)
}

/// A plan for the fetch of a whole set.
struct SetPlan: Sendable {
    var ticket: UInt64
    var key: String
    var items: [Item]
    /// The manifest's offers for every text of the set.
    var offers: [String: SessionState.Offer?]
    /// The digests of the unversioned texts among the items that wait for their activation when the fetch begins.
    var waiting: [String: SHA256.Digest] = [:]

    /// A text of the set, with the source of its new bytes.
    struct Item: Sendable {
        var identifier: String
        var rank: Rank
        var work: Work

        /// The validator of the conditional request; sent only to the address that supplied it, and only for bytes that are acceptable.
        ///
        /// An origin may keep its validator for new bytes, and would confirm refused ones again and again.
        var validator: Validator? {
            guard case .fetch(let file, let expected, let known?) = work, known.facts.url == file.url.absoluteString,
                TextValidation.isAcceptable(known, expected)
            else { return nil }
            return known.facts.validator
        }
    }

    /// The source of a text of the set.
    enum Work: Sendable {
        case fetch(RemoteFile, TextValidation.Expectation, known: TextRecord?)
        /// A record on the shelf or of the bundle.
        case copy(TextRecord)
        /// No source: the error keeps the whole set from being switched.
        case refuse(TextStoreError)
    }
}

extension SessionState {
    /// The version of a text that the origin offers.
    struct Offer: Equatable, Sendable {
        var rank: Rank
        /// The manifest's entry; `nil` for an unversioned text.
        var entry: VersionManifest.Entry?
    }

    /// Returns the origin's offer for a text; `nil` if none is known.
    func offer(for identifier: String) -> Offer? {
        let floor = held[identifier]?.floor
        if versionSource?.remoteFile != nil {
            guard let manifest else { return nil }
            if let entry = manifest.entries[identifier] {
                let waiting = entry.isRollback ? held[identifier]?.waiting?.rank : nil
                let rank = floor?.rankOfOffered(entry, edition: manifest.edition, fetched: waiting)
                return Offer(rank: rank ?? Rank(version: entry.version), entry: entry)
            }
            // A language that the manifest does not list is not translated yet, and unmet conditions hold a text back.
            guard unusable[identifier] == nil, languages?.owner(of: identifier) == nil, manifest.variants[identifier] == nil else {
                return nil
            }
        }
        // An unversioned text is older than every version, so it is no offer for a text that once had a version.
        guard floor == nil, sources[identifier]?.remoteFile != nil, bundledManifest?.entries[identifier] == nil else { return nil }
        return Offer(rank: Rank(), entry: nil)
    }

    /// Returns the request that confirms the bytes of an active text once; `nil` if they need no confirmation.
    ///
    /// Without a digest, the origin may have published the version before the bytes, so the next check confirms them.
    ///
    /// - Parameter isRepeated: Whether a refresh has overtaken the fetch of these bytes, so that they are confirmed now.
    private func confirmation(_ identifier: String, at now: Date, isRepeated: Bool = false) -> SetPlan.Item? {
        guard let text = held[identifier], text.checked == nil || isRepeated, let record = text.active, !record.facts.isVerified,
            let offer = offer(for: identifier), let entry = offer.entry, entry.sha256 == nil, record.rank == offer.rank,
            // A waiting record of this rank replaces the active text, and is confirmed after the switch.
            text.waiting?.rank != offer.rank, let manifestRecord, manifestRecord.failures == 0,
            let askedAt = manifestRecord.attemptedAt, case let fetchedAt = record.facts.fetchedAt,
            // A fetch in the future means that the clock was set back, and the last check in the past followed it.
            askedAt > fetchedAt || fetchedAt > now || isRepeated,
            // The address was valid when the text was fetched; if it no longer is, the text stays.
            let source = sources[identifier], let file = try? address(of: entry, source)
        else { return nil }
        return SetPlan.Item(identifier: identifier, rank: offer.rank, work: .fetch(file, expectation(source, file, entry), known: record))
    }

    /// Returns why a set may not switch to the manifest's versions; `nil` if every member is acceptable as published.
    private func obstacle(of set: String, at now: Date) -> TextStoreError? {
        let members = members(of: set)
        guard let manifest, members.contains(where: { manifest.entries[$0] != nil || unusable[$0] != nil }) else { return nil }
        if let date = manifestExpired(at: now), members.contains(where: { resolved[$0] != nil }) { return .expiredManifest(date) }
        guard set.isGroup else { return nil }
        for identifier in members {
            if let refusal = refusalOfEntry(identifier) { return .incomplete(set, because: refusal) }
            guard offer(for: identifier)?.entry == nil else { continue }
            let reason = "the manifest lists other texts of the set but not this one; list all of them"
            return .incomplete(set, because: TextStoreError(.incompleteSet, identifier: identifier, reason))
        }
        return nil
    }

    /// Returns why a set is not as the manifest lists it, although no newer text of it is to be fetched; `nil` if it is.
    private func contradiction(of set: String) -> TextStoreError? {
        guard manifest != nil, hasMember(of: set, where: { refusalOfEntry($0) != nil }) else { return nil }
        return members(of: set).lazy.compactMap { refusalOfEntry($0) }.first.map { .incomplete(set, because: $0) }
    }

    /// Returns whether a newer text should be fetched.
    private func wants(_ identifier: String, _ offer: Offer?, at moment: SessionMoment, isForced: Bool) -> Bool {
        guard let offer else { return false }
        guard let entry = offer.entry else {
            guard !isForced, let expiry = expiry(ofUnversioned: identifier, at: moment) else { return true }
            return expiry <= moment.date
        }
        if let floor = held[identifier]?.floor, offer.rank < floor.rank { return false }
        return !isHere(identifier, offer.rank, entry)
    }

    /// Returns when an unversioned text expires; `nil` if it is missing, or if the clock was set back since its last check.
    private func expiry(ofUnversioned identifier: String, at moment: SessionMoment) -> Date? {
        lastCheck(ofUnversioned: identifier, until: moment.date)?.addingTimeInterval(moment.policy.textExpiry.timeInterval)
    }

    /// Returns when the origin last sent or confirmed an unversioned text, active or waiting; ignores dates in the future.
    func lastCheck(ofUnversioned identifier: String, until now: Date) -> Date? {
        guard let text = held[identifier] else { return nil }
        // A check is always later than the fetch, so its date is preferred even if the clock was set back.
        let active = text.active.map { text.checked ?? $0.facts.fetchedAt }
        return [active, text.waiting?.facts.fetchedAt].compactMap { $0 }.filter { $0 <= now }.max()
    }

    /// Returns the loaded texts, except unversioned ones that are here, because only their age makes a fetch of these due.
    func loadedWithoutAge(at now: Date) -> [String] {
        loaded.filter { offer(for: $0)?.entry != nil || lastCheck(ofUnversioned: $0, until: now) == nil }
    }

    /// Returns whether the newest text is active, waiting, or bundled.
    private func isHere(_ identifier: String, _ rank: Rank, _ entry: VersionManifest.Entry) -> Bool {
        func fits(_ found: Rank, _ digest: SHA256.Digest?) -> Bool {
            if found > rank { return true }
            return found == rank && digest.map(entry.allows) == true
        }
        if let waiting = held[identifier]?.waiting, fits(waiting.rank, waiting.facts.fileDigest) { return true }
        // The previous record of a damaged text may have other bytes of the same version.
        guard let found = resolved[identifier], found.text.origin == .bundle || !damaged.contains(identifier) else { return false }
        if found.text.origin == .bundle { return fits(found.rank, bundled[identifier]?.fileDigest) }
        return fits(found.rank, record(identifier)?.facts.fileDigest) || isAhead(identifier)
    }

    // MARK: Beginning

    /// Begins the fetches of some or all sets that are due.
    mutating func begin(_ keys: Set<String>? = nil, isAwaited: Bool = false, at moment: SessionMoment) -> [SessionAction] {
        if let source = versionSource, let file = source.remoteFile {
            guard manifestFlight == nil else { return [] }
            let record = manifestRecord ?? ManifestRecord(url: file.url.absoluteString)
            if isForced || isCheckDue(at: moment) || (isAwaited && isExpiryDue(at: moment)) {
                let number = ticket()
                manifestFlight = number
                return [.fetchManifest(ticket: number, source, file, record)]
            }
        }
        return beginSets(keys?.sorted() ?? sets, at: moment)
    }

    /// Returns whether an expired manifest is to be checked for a caller that waits for the origin (T8).
    ///
    /// The first check follows the expiry at once. If the origin still has the expired manifest, each further check waits as long as the
    /// manifest had been expired at the last one, within the policy's first pause and its interval.
    private func isExpiryDue(at moment: SessionMoment) -> Bool {
        guard let record = manifestRecord, record.failures == 0, let checkedAt = record.attemptedAt,
            let expiredAt = manifestExpired(at: moment.date)
        else { return false }
        guard checkedAt >= expiredAt else { return true }
        let pause = max(checkedAt.timeIntervalSince(expiredAt), moment.policy.backOff.base.timeInterval)
        return checkedAt.addingTimeInterval(pause) <= moment.date
    }

    /// Begins all fetches, due or not. Fetches in flight began before, so they are repeated after their end (T17).
    mutating func beginForced(at moment: SessionMoment) -> [SessionAction] {
        isForced = true
        overtaken.formUnion(flights.keys)
        isManifestOvertaken = manifestFlight != nil
        retryAll(at: moment.instant)
        return begin(at: moment)
    }

    private mutating func beginSets(_ keys: [String], at moment: SessionMoment) -> [SessionAction] {
        var actions: [SessionAction] = []
        for key in keys where flights[key] == nil {
            if let retryAt = failures[key]?.retryAt, retryAt > moment.instant { continue }
            let isRepeated = overtaken.remove(key) != nil, now = moment.date
            let isWanted = hasMember(of: key, where: { wants($0, offer(for: $0), at: moment, isForced: isForced || isRepeated) })
            if let reason = isWanted ? obstacle(of: key, at: now) : contradiction(of: key) {
                hold(key, reason)
                continue
            }
            var items: [SetPlan.Item] = []
            if isWanted {
                let kept = failures[key]?.kept ?? [:]
                items = members(of: key).compactMap { item($0, kept[$0], now) }
            } else if hasMember(of: key, where: { confirmation($0, at: now, isRepeated: isRepeated) != nil }),
                // Confirms no bytes of a set that is held back.
                obstacle(of: key, at: now) == nil
            {
                items = members(of: key).compactMap { confirmation($0, at: now, isRepeated: isRepeated) }
            }
            guard !items.isEmpty else {
                if !isWanted { setFailure(nil, of: key) }
                continue
            }
            let number = ticket()
            setFlight(number, of: key)
            let offers = Dictionary(uniqueKeysWithValues: members(of: key).map { ($0, offer(for: $0)) })
            let waiting = items.reduce(into: [String: SHA256.Digest]()) { waiting, item in
                guard let record = held[item.identifier]?.waiting, record.rank.version == nil else { return }
                waiting[item.identifier] = record.facts.digest
            }
            actions.append(.fetchSet(SetPlan(ticket: number, key: key, items: items, offers: offers, waiting: waiting)))
        }
        isForced = false
        return actions
    }

    /// Holds a set back until another manifest arrives.
    private mutating func hold(_ set: String, _ obstacle: TextStoreError) {
        guard failures[set]?.error != obstacle else { return }
        setFailure(SetFailure(error: obstacle, count: 0, retryAt: nil, kept: failures[set]?.kept ?? [:]), of: set)
    }

    private func item(_ identifier: String, _ kept: TextRecord?, _ now: Date) -> SetPlan.Item? {
        guard let offer = offer(for: identifier), let work = work(identifier, offer, kept, now) else { return nil }
        return SetPlan.Item(identifier: identifier, rank: offer.rank, work: work)
    }

    private func work(_ identifier: String, _ offer: Offer, _ kept: TextRecord?, _ now: Date) -> SetPlan.Work? {
        guard let source = sources[identifier] else { return nil }
        let active = held[identifier]?.active
        guard let entry = offer.entry else {
            return source.remoteFile.map { .fetch($0, expectation(source, $0, nil), known: active) }
        }
        func fits(_ rank: Rank, _ digest: SHA256.Digest) -> Bool { rank == offer.rank && entry.allows(digest) }
        // An active text that matches needs no item: a switch leaves it active.
        if let active, fits(active.rank, active.facts.fileDigest) { return nil }
        if let floor = held[identifier]?.floor, offer.rank < floor.rank { return nil }
        for here in [held[identifier]?.waiting, kept].compactMap({ $0 }) where fits(here.rank, here.facts.fileDigest) {
            return .copy(here)
        }
        if let found = bundled[identifier], let version = bundledManifest?.entries[identifier]?.version,
            version == entry.version, entry.allows(found.fileDigest)
        {
            let facts = TextRecord.Facts(
                version: version, epoch: offer.rank.epoch, digest: found.digest, fileDigest: found.fileDigest, isVerified: true,
                fetchedAt: now)
            return .copy(TextRecord(identifier: identifier, text: found.text, facts: facts, headers: [:]))
        }
        do throws(TextStoreError) {
            let file = try address(of: entry, source)
            return .fetch(file, expectation(source, file, entry), known: active)
        } catch {
            return .refuse(error.about(identifier))
        }
    }

    private func expectation(_ source: TextSource, _ file: RemoteFile, _ entry: VersionManifest.Entry?) -> TextValidation.Expectation {
        TextValidation.Expectation(
            mediaTypes: file.mediaTypes, emptiness: source.emptiness, limit: file.limit, length: entry?.length, sha256: entry?.sha256)
    }

    /// Returns the file of a text that a manifest lists.
    private func address(of entry: VersionManifest.Entry, _ source: TextSource) throws(TextStoreError) -> RemoteFile {
        let base = versionSource?.remoteFile?.url
        var file: RemoteFile
        if let written = entry.url {
            guard let url = WebAddress.resolve(written, from: base),
                url.scheme == "https" || base?.scheme?.lowercased() == "http"
            else {
                throw TextStoreError(.malformedEntry, "cannot use its address in the manifest, “\(written.prefix(64))”; use HTTPS")
            }
            file = source.remoteFile ?? RemoteFile(url: url)
            // Header fields such as an API key are meant for the source's origin only.
            if !file.url.hasOrigin(of: url) { file.headers = [:] }
            file.url = url
        } else {
            guard let remote = source.remoteFile else {
                throw TextStoreError(.notAvailable, "cannot fetch the new version: neither source nor manifest has an address; add one")
            }
            file = remote
        }
        file.expectedLength = entry.length
        file.caching = entry.sha256 == nil ? .revalidated : .allowed
        return file
    }

    // MARK: Ending

    /// Takes the result of the manifest's fetch, and returns the fetches that begin next; `nil` if it was abandoned meanwhile.
    mutating func manifestEnded(
        ticket: UInt64, _ record: ManifestRecord, _ manifest: VersionManifest?, _ failure: TextStoreError?, at moment: SessionMoment
    ) -> [SessionAction]? {
        guard manifestFlight == ticket else { return nil }
        manifestFlight = nil
        setManifestRecord(record, at: moment)
        manifestFailure = failure
        if failure == nil { foreign = [] }
        if let manifest { replaceManifest(manifest) } else { touchAll() }
        // The floors that this raises are saved by the shelf's next publication, which follows immediately.
        _ = resolve()
        touchAll()
        guard isManifestOvertaken else { return beginSets(sets, at: moment) }
        isManifestOvertaken = false
        return begin(at: moment)
    }

    /// Takes the result of a set's fetch, unless it was abandoned meanwhile.
    ///
    /// - Parameter kept: Verified texts that the next attempt need not fetch again.
    mutating func setEnded(
        _ plan: SetPlan, _ failure: TextStoreError?, keeping kept: [TextRecord] = [], at moment: SessionMoment
    ) {
        // An outdated or overtaken fetch stays in flight until `restart` replaces it.
        guard flights[plan.key] == plan.ticket, !isOutdated(plan), !overtaken.contains(plan.key) else { return }
        setFlight(nil, of: plan.key)
        let failure = failure.map { failure in
            let count = (failures[plan.key]?.count ?? 0) + 1
            // A withdrawn set is fetched again as soon as this process accepts the newer manifest.
            let retryAt =
                failure.code == .withdrawn ? nil : moment.instant.advanced(by: moment.policy.delay(after: failure, failures: count))
            return SetFailure(
                error: failure, count: count, retryAt: retryAt,
                kept: Dictionary(kept.map { ($0.identifier, $0) }) { first, _ in first })
        }
        setFailure(failure, of: plan.key)
    }

    /// Fetches a set again if its plan came from an older manifest, so that callers wait for the newest version.
    mutating func restart(_ plan: SetPlan, at moment: SessionMoment) -> [SessionAction] {
        guard flights[plan.key] == plan.ticket else { return [] }
        setFlight(nil, of: plan.key)
        // The manifest's arrival begins all fetches.
        return manifestFlight == nil ? beginSets([plan.key], at: moment) : []
    }

    /// Returns whether the members of a set, or the offers for them, have changed since its fetch began.
    func isOutdated(_ plan: SetPlan) -> Bool {
        members(of: plan.key).count != plan.offers.count
            || plan.offers.contains { identifier, offered in offer(for: identifier) != offered || set(of: identifier) != plan.key }
    }

    // MARK: Time

    /// Returns the next time at which observers of some or all texts need an action; `nil` if time alone changes nothing.
    func nextDeadline(of identifiers: [String]?, at moment: SessionMoment) -> MonotonicInstant? {
        guard !observers.isEmpty else { return nil }
        var next: MonotonicInstant?
        func add(_ deadline: MonotonicInstant) { if deadline > moment.instant { next = min(next ?? deadline, deadline) } }
        func add(_ date: Date) { add(moment.instant.advanced(by: Duration(saturating: date.timeIntervalSince(moment.date)))) }
        if versionSource?.remoteFile != nil, let record = manifestRecord {
            add(record.dueAt(moment.date))
            if let manifestRetryAt { add(manifestRetryAt) }
        }
        if let expires = manifest?.expires { add(expires) }
        func add(_ identifier: String) {
            if let retryAt = failures[set(of: identifier)]?.retryAt { add(retryAt) }
            guard let offer = offer(for: identifier), offer.entry == nil else { return }
            if let expiry = expiry(ofUnversioned: identifier, at: moment) { add(expiry) }
        }
        let observed = identifiers?.filter { isObserved($0) } ?? Array(observers.keys)
        for identifier in observed { for member in spoken(identifier) { add(member) } }
        return next
    }

    /// Returns the time until which a read of a text needs no action; a time in the past if an action is due.
    func endOfQuiet(of identifier: String, at moment: SessionMoment) -> Date {
        var end = Date.distantFuture
        if let expires = manifest?.expires, expires > moment.date { end = expires }
        // A fetch in flight ends this period itself, and nothing else begins before the manifest has arrived.
        guard manifestFlight == nil else { return end }
        if versionSource?.remoteFile != nil {
            end = isCheckDue(at: moment) ? .distantPast : min(end, manifestRecord?.dueAt(moment.date) ?? .distantPast)
        }
        guard flights.isEmpty || flights[set(of: identifier)] == nil else { return end }
        let offer = offer(for: identifier)
        if wants(identifier, offer, at: moment, isForced: isForced)
            || (confirmation(identifier, at: moment.date) != nil && obstacle(of: set(of: identifier), at: moment.date) == nil)
        {
            guard !failures.isEmpty, let failure = failures[set(of: identifier)] else { return .distantPast }
            if let retryAt = failure.retryAt {
                return min(end, moment.date.addingTimeInterval(moment.instant.duration(to: retryAt).timeInterval))
            }
            // The clock may have been set back to a time before the expiry.
            return failure.error.code == .expiredManifest && manifestExpired(at: moment.date) == nil ? .distantPast : end
        }
        guard let offer, offer.entry == nil else { return end }
        return min(end, expiry(ofUnversioned: identifier, at: moment) ?? .distantPast)
    }

    /// Returns the instant at which a failed fetch for a text is repeated; `nil` if none is, or if a fetch is in flight.
    func retryDeadline(of identifier: String) -> MonotonicInstant? {
        guard manifestFlight == nil else { return nil }
        let manifestRetryAt = versionSource?.remoteFile == nil ? nil : manifestRetryAt
        guard !failures.isEmpty, case let set = set(of: identifier), flights[set] == nil else { return manifestRetryAt }
        return [manifestRetryAt, failures[set]?.retryAt].compactMap { $0 }.min()
    }
}

extension URL {
    /// Returns whether both have the same scheme, host, and port.
    fileprivate func hasOrigin(of other: URL) -> Bool {
        scheme?.lowercased() == other.scheme?.lowercased() && host()?.lowercased() == other.host()?.lowercased() && port == other.port
    }
}

extension TextStoreError {
    /// Makes the error of a set that cannot switch because of one of its texts; for a text without a group, the fault itself.
    static func incomplete(_ set: String, because fault: TextStoreError) -> TextStoreError {
        guard set.isGroup else { return fault }
        return TextStoreError(
            .incompleteSet, identifier: fault.identifier, "cannot switch its set “\(set.nameInSet)”: \(fault.message)",
            underlyingError: fault, retryAfter: fault.retryAfter)
    }

    static func expiredManifest(_ date: Date) -> TextStoreError {
        TextStoreError(
            .expiredManifest,
            "cannot use the manifest's versions: it expired at \(date.formatted(.iso8601)); publish a newer manifest, or correct the "
                + "device's clock")
    }
}
