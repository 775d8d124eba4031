/// A pure state machine that orders the calls of a jar's cacher, one at a time.
///
/// The cacher lists its domains once. If it cannot, the lane loads each domain at its first use. A failed load counts as a miss, and the
/// next use of the domain repeats it. Cookies that a response sets meanwhile replace the record instead.
struct CookieLane: Sendable {
    enum Call: Hashable, Sendable {
        case list
        case load(String)
        case save(String)
        case removeAll
    }

    private(set) var running: Call?

    private enum Listing { case needed, wanted, complete, impossible }
    private var listing = Listing.needed
    /// The domains that have been loaded, or set in memory.
    private var known: Set<String> = []
    private var missed: Set<String> = []
    /// The domains to load, also those requested before the list is complete.
    private var toLoad: [String] = []

    /// The number of a change and, after a failed save, the failure.
    private struct Unsaved {
        var number: UInt64
        var failure: (any Error)?
    }
    /// The domains with changes that the cacher does not have.
    private var unsaved: [String: Unsaved] = [:]
    /// The oldest change in the running save.
    private var saving: UInt64?
    private var lastChange: UInt64 = 0

    private var clearsWanted = 0
    private var clearsServed = 0
    private var clearsDone = 0
    private(set) var clearFailure: (any Error)?

    // MARK: Requests

    mutating func want(_ domains: [String]) {
        if listing == .needed { listing = .wanted }
        for domain in domains where missed.remove(domain) != nil || !isKnown(domain) {
            if running != .load(domain), !toLoad.contains(domain) { toLoad.append(domain) }
        }
    }

    /// Requests all records, and requests the list or a record again if the cacher could not provide it.
    mutating func wantAll() {
        if listing != .complete {
            listing = .wanted
        } else {
            toLoad += missed
            missed = []
        }
    }

    private func isKnown(_ domain: String) -> Bool { listing == .complete || known.contains(domain) }

    /// Whether the records of these domains are loaded; a failed load counts as loaded.
    func isReady(_ domains: [String]) -> Bool {
        isListed
            && domains.allSatisfy { !toLoad.contains($0) && running != .load($0) && (isKnown($0) || missed.contains($0)) }
    }

    var isWholeReady: Bool {
        guard isListed, toLoad.isEmpty else { return false }
        if case .load = running { return false }
        return true
    }

    private var isListed: Bool { listing == .complete || listing == .impossible }

    var isComplete: Bool { listing == .complete && missed.isEmpty }

    mutating func changed(_ domains: Set<String>) {
        for domain in domains {
            known.insert(domain)
            missed.remove(domain)
            toLoad.removeAll { $0 == domain }
            lastChange += 1
            unsaved[domain] = Unsaved(number: unsaved[domain]?.number ?? lastChange)
        }
    }

    /// Requests the removal of all records, and drops earlier loads and saves; returns the number of the clearing.
    mutating func clear() -> Int {
        clearsWanted += 1
        listing = .complete
        (known, missed, toLoad, unsaved) = ([], [], [], [:])
        return clearsWanted
    }

    func isCleared(_ number: Int) -> Bool { clearsDone >= number }

    /// Requests the failed saves again; returns the number of the last change.
    mutating func retry() -> UInt64 {
        for domain in unsaved.keys { unsaved[domain]?.failure = nil }
        return lastChange
    }

    /// Whether each change up to a number is saved or has failed, and no clearing is pending.
    func isSettled(upTo number: UInt64) -> Bool {
        clearsDone == clearsWanted && (saving.map { $0 > number } ?? true)
            && unsaved.values.allSatisfy { $0.number > number || $0.failure != nil }
    }

    func failures(upTo number: UInt64) -> [any Error] {
        unsaved.values.filter { $0.number <= number }.compactMap(\.failure)
    }

    // MARK: Calls

    var hasWork: Bool {
        clearsDone < clearsWanted || listing == .wanted || !toLoad.isEmpty || unsaved.values.contains { $0.failure == nil }
    }

    /// Begins the next call; returns `nil` while a call is running or if there is nothing to do.
    mutating func next() -> Call? {
        guard running == nil else { return nil }
        if clearsDone < clearsWanted {
            clearsServed = clearsWanted
            running = .removeAll
        } else if listing == .wanted {
            running = .list
        } else if !toLoad.isEmpty {
            running = .load(toLoad.removeFirst())
        } else if let (domain, change) = unsaved.first(where: { $0.value.failure == nil }) {
            unsaved[domain] = nil
            saving = change.number
            running = .save(domain)
        }
        return running
    }

    /// Records the domains of the cacher; `nil` if it failed or cannot list them.
    mutating func listed(_ domains: [String]?) {
        running = nil
        guard listing == .wanted else { return }
        listing = domains == nil ? .impossible : .complete
        guard let domains else { return }
        // Each record on the list is loaded again, and a domain that is not on it has no record.
        missed = []
        let listed = Set(domains).subtracting(known)
        // Loads the domains that callers are waiting for first.
        toLoad = toLoad.filter(listed.contains)
        toLoad += listed.subtracting(toLoad)
    }

    /// Records the end of a load; returns whether to use the record: not after a failure, a change or a clearing.
    mutating func loaded(_ domain: String, failed: Bool) -> Bool {
        running = nil
        guard clearsDone == clearsWanted, !known.contains(domain) else { return false }
        if failed {
            missed.insert(domain)
        } else {
            known.insert(domain)
            missed.remove(domain)
        }
        return !failed
    }

    mutating func saved(_ domain: String, _ failure: (any Error)?) {
        let number = saving ?? lastChange
        (running, saving) = (nil, nil)
        if let failure {
            // A pending clearing removes the record, so retrying the save would restore it.
            guard clearsDone == clearsWanted else { return }
            // A newer change is saved next and includes the failed one.
            unsaved[domain] = Unsaved(number: number, failure: unsaved[domain] == nil ? failure : nil)
        } else {
            // The cacher works again, so retries the failed saves.
            for domain in unsaved.keys { unsaved[domain]?.failure = nil }
        }
    }

    mutating func cleared(_ failure: (any Error)?) {
        running = nil
        clearsDone = clearsServed
        clearFailure = failure
    }
}
