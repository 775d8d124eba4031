internal import Foundation
import StoreCore
internal import StorePlatform

/// Drives a session: carries out the fetches that its state decides on, and returns their results to it.
@usableFromInline
final class TextEngine: Sendable {
    /// The session's state, guarded by a single lock, so that a read needs one lookup under it.
    let session = WatchedState(SessionState()) { $0.changed.take() }
    let shelf: Shelf
    let fetcher: any Origin<RemoteFile, RemoteText>
    let bundle: Bundle
    let policy: TextStorePolicy
    let time: any TimeSource
    /// Whether the clock is the system's, which has a cheaper, coarse variant.
    private let isOnSystemTime: Bool
    let verify: TextVerifier?
    let onEvent: (@Sendable (TextStoreEvent) -> Void)?
    let acceptances: AcceptanceLedger
    let increases = Broadcast<VersionIncrease>()
    /// The fetches in flight, by their tickets.
    let tasks = Lock<[UInt64: Task<Void, Never>]>([:])
    /// Whether a task is verifying the records of another process.
    let isVerifying = Lock(false)

    init(
        directory: Directory, bundle: Bundle, fetcher: any Origin<RemoteFile, RemoteText>, policy: TextStorePolicy,
        time: any TimeSource, options: FileWriteOptions, patience: Duration, verify: TextVerifier?,
        onEvent: (@Sendable (TextStoreEvent) -> Void)?
    ) {
        self.bundle = bundle
        self.fetcher = fetcher
        self.policy = policy
        self.time = time
        isOnSystemTime = time is SystemTime
        self.verify = verify
        self.onEvent = onEvent
        shelf = Shelf(directory: directory, options: options, session: session, verifies: verify != nil, patience: patience)
        acceptances = AcceptanceLedger(
            directory: directory, options: options, keepsEvidence: policy.evidence == .allAcceptances, patience: patience)
    }

    deinit {
        // Callers and observers retain the engine, so any task still running is unwanted.
        for task in tasks.withLock({ Array($0.values) }) { task.cancel() }
    }

    /// The date for reads. The system's coarse clock may lag by some milliseconds, and expiry is then noticed that much later.
    var quickDate: Date { isOnSystemTime ? Date(timeIntervalSince1970: coarseSeconds()) : time.date }

    // MARK: Registering

    func register(_ sources: [TextSource]) async throws {
        let result = session.update { session in
            Result { () throws(TextStoreError) in try session.register(sources) }
        }
        try result.get()
        let plain = session.read { $0.languages == nil } ? sources : sources.filter { $0.languages == nil }
        await admit(plain + session.update { $0.missingMembers() })
        if plain.count < sources.count { await finishSwitch() }
    }

    /// Reads the files of registered texts.
    func admit(_ sources: [TextSource]) async {
        let bundled = await BundleReading.texts(of: sources, in: bundle)
        for case .failure(let fault) in bundled.values { report(.refused(fault)) }
        let identifiers = sources.map(\.identifier)
        if verify != nil {
            // A fault of the bundle was reported above.
            await verifyKept(identifiers, bundled.compactMapValues { try? $0.get().fileDigest })
        }
        let outcome = await shelf.admit(identifiers, bundled, activatesPending: policy.activation != .manually)
        report(outcome)
        // The version source is usually set next. Without one, the first read of a text begins its refresh.
        let isLookedAt = session.read { session in
            session.versionSource != nil || identifiers.contains { session.isObserved($0) }
        }
        if isLookedAt { begin(identifiers) }
        if session.read({ !$0.observers.isEmpty }) { updateFollowing() }
    }

    func setVersionSource(_ source: VersionSource) async {
        let call = session.update { $0.ticket() }
        let (bundled, fault) = await BundleReading.manifest(of: source, in: bundle)
        if let fault { report(.refused(fault)) }
        for problem in bundled?.problems ?? [] { report(.refused(problem.refusal)) }
        var ordered: [String] = []
        if let bundled {
            let (changed, outcome) = await shelf.carryOut(bundled)
            ordered = changed
            report(outcome)
        }
        let (record, manifest) = await keptManifest(of: source, call)
        let moment = moment
        let outcome = await shelf.publish(ordered) { session in
            // A later call counts, even if this one has verified its saved manifest for longer.
            guard call > session.sourceCall else { return }
            session.sourceCall = call
            // If the same source was set meanwhile, its manifest may be newer than the file read above.
            guard session.versionSource != source else { return }
            session.versionSource = source
            session.bundledManifest = bundled
            // Earlier fetches were planned without these versions.
            session.forgetFetches()
            session.setManifestRecord(record, at: moment)
            session.replaceManifest(manifest)
        }
        report(outcome)
        begin()
    }

    /// Returns the saved manifest; `nil` if it has another address, or is older than one that was accepted.
    @concurrent
    private func keptManifest(of source: VersionSource, _ call: UInt64) async -> (ManifestRecord?, VersionManifest?) {
        guard let file = source.remoteFile else { return (nil, nil) }
        let (copies, faults) = shelf.manifestFile.load()
        for fault in faults { report(.fault(fault)) }
        guard let record = copies.first?.value.bounded(by: policy), record.url == file.url.absoluteString else { return (nil, nil) }
        guard let body = record.body else { return (record, nil) }
        if let refusal = await refusal(of: TextVerification(bytes: Array(body), headers: record.headers ?? [:])) {
            report(.refused(refusal))
            return (nil, nil)
        }
        // A saved manifest parses again unless the source's mode is stricter now, and is accepted unless another process has accepted a
        // higher revision. Otherwise it is fetched again.
        guard let manifest = try? await manifest(in: body, of: source),
            // The source may be set twice: the first call may accept a newer manifest while the second one verifies this one.
            let outcome = try? await shelf.accept(
                manifest, policy, isVerified: verify != nil, where: { call > $0.sourceCall && $0.versionSource != source })
        else { return (nil, nil) }
        report(outcome)
        return (record, manifest)
    }

    // MARK: Fetching

    /// The time on both clocks, with the policy that applies to it.
    var moment: SessionMoment { SessionMoment(date: time.date, instant: time.now, policy: policy) }

    /// Begins the fetches that are due, and sets the timer for the next ones.
    func begin(isForced: Bool = false) {
        // The clock is read under the lock: otherwise a check that ends in between would appear to be in the future, and be repeated.
        let actions = session.update { session in
            isForced ? session.beginForced(at: moment) : session.begin(at: moment)
        }
        perform(actions)
    }

    /// Begins the fetches that are due for some texts; the cost does not depend on the other texts.
    ///
    /// - Parameters:
    ///   - identifiers: The texts.
    ///   - isAwaited: Whether a caller waits for the origin.
    func begin(_ identifiers: [String], isAwaited: Bool = false) {
        let actions = session.update { session in
            session.begin(session.sets(of: identifiers), isAwaited: isAwaited, at: moment)
        }
        perform(actions, of: identifiers)
    }

    /// Carries out actions and sets the timer.
    ///
    /// - Parameter identifiers: The texts for which an action may be due; `nil` for all.
    func perform(_ actions: [SessionAction], of identifiers: [String]? = nil) {
        for action in actions {
            switch action {
            case .fetchManifest(let ticket, let source, let file, let record): beginManifest(ticket, source, file, record)
            case .fetchSet(let plan): beginSet(plan)
            }
        }
        arm(identifiers)
    }

    /// Sets the timer if texts are observed.
    ///
    /// - Parameter identifiers: The texts that have changed; `nil` for all. The current timer already covers the others.
    func arm(_ identifiers: [String]? = nil) {
        guard session.read({ !$0.observers.isEmpty }) else { return }
        let moment = moment
        let armed = session.update { session -> (ticket: UInt64, deadline: MonotonicInstant)? in
            guard let deadline = session.nextDeadline(of: identifiers, at: moment) else { return nil }
            // A timer that is over still begins what is due, and sets the next one.
            if let timer = session.timer, timer.deadline <= deadline { return nil }
            session.timer = (session.ticket(), deadline)
            return session.timer
        }
        guard let armed else { return }
        Task { [weak self, time] in
            // The timer is never canceled: an outdated timer finds a different ticket and does nothing.
            guard (try? await time.sleep(until: armed.deadline)) != nil, let self else { return }
            let isMine = session.update { session in
                guard session.timer?.ticket == armed.ticket else { return false }
                session.timer = nil
                session.invalidateResolutions()
                // Without observers, the next read or observer begins the fetches.
                return !session.observers.isEmpty
            }
            if isMine { begin() }
        }
    }

    // MARK: Reporting

    func report(_ event: TextStoreEvent) { onEvent?(event) }

    func report(_ outcome: Shelf.Outcome) {
        for fault in outcome.faults { report(.fault(fault)) }
        for event in outcome.events { report(event) }
        for increase in outcome.increases { increases.send(increase) }
        if outcome.hasUnverified { verifyChanges() }
    }
}

/// Sends each element to the streams that are open at that time.
final class Broadcast<Element: Sendable>: Sendable {
    private struct State {
        var listeners: [UInt64: AsyncStream<Element>.Continuation] = [:]
        var last: UInt64 = 0
    }

    /// Guards the continuations of the streams.
    private let state = Lock(State())

    func makeStream() -> AsyncStream<Element> {
        let (stream, continuation) = AsyncStream<Element>.makeStream()
        let number = state.withLock { state in
            state.last += 1
            state.listeners[state.last] = continuation
            return state.last
        }
        continuation.onTermination = { [weak self] _ in
            // The continuation outlives the critical section, because releasing it may run code of the stream's consumer.
            _ = self?.state.withLock { $0.listeners.removeValue(forKey: number) }
        }
        return stream
    }

    func send(_ element: Element) {
        let listeners = state.withLock { state in state.listeners.sorted { $0.key < $1.key }.map(\.value) }
        for listener in listeners { listener.yield(element) }
    }

    deinit {
        for listener in state.withLock({ Array($0.listeners.values) }) { listener.finish() }
    }
}
