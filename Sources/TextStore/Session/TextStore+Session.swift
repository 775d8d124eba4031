internal import Foundation
import StoreCore
internal import StoreFiles
internal import StorePlatform

/// Drives the session: carries out the fetches that its state decides on, and returns their results to it.
extension TextStore {
    // MARK: Registering

    func add(_ sources: [TextSource]) async throws {
        try session.update { session in Result { () throws(TextStoreError) in try session.register(sources) } }.get()
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

    /// Returns the saved manifest; `nil` if it has another address, or is older than one that was accepted.
    @concurrent
    func keptManifest(of source: VersionSource, _ call: UInt64) async -> (ManifestRecord?, VersionManifest?) {
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
    ///
    /// - Parameters:
    ///   - identifiers: The texts, so that the cost does not depend on the others; `nil` for all.
    ///   - isAwaited: Whether a caller waits for the origin.
    ///   - isForced: Whether all fetches begin, due or not.
    func begin(_ identifiers: [String]? = nil, isAwaited: Bool = false, isForced: Bool = false) {
        // The clock is read under the lock: otherwise a check that ends in between would appear to be in the future, and be repeated.
        let actions = session.update { session -> [SessionAction] in
            if isForced { return session.beginForced(at: moment) }
            let sets = identifiers.map { session.sets(of: $0) }
            return session.begin(sets, isAwaited: isAwaited, at: moment)
        }
        perform(actions, of: identifiers)
    }

    /// Carries out actions and sets the timer, both for some or all texts.
    func perform(_ actions: [SessionAction], of identifiers: [String]? = nil) {
        for action in actions {
            switch action {
            case .fetchManifest(let ticket, let source, let file, let record): beginManifest(ticket, source, file, record)
            case .fetchSet(let plan): beginSet(plan)
            }
        }
        arm(identifiers)
    }

    /// Sets the timer if texts are observed. The current timer already covers texts that have not changed.
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

    // MARK: Other processes

    /// Begins to follow other processes if texts are observed, publishes their changes, and otherwise ends following.
    ///
    /// Many calls in a row cause one pass.
    func updateFollowing() {
        shelf.follower.schedule { [weak self] in
            Task { [weak self] in await self?.follow() }
        }
    }

    private func follow() async {
        let look: @Sendable () -> Void = { [weak self] in self?.updateFollowing() }
        shelf.follower.passBegan()
        do {
            let outcome = try await shelf.follow(onEvent: look)
            shelf.follower.passSucceeded()
            // The process that removes the directory may still be removing it, so it is made again later.
            guard let outcome else { return shelf.follower.schedule(after: .seconds(1), look) }
            report(outcome)
        } catch {
            guard shelf.follower.passFailed(then: look) else { return }
            report(.fault(.wrapping(error, .fileSystem, "cannot follow other processes")))
        }
    }

    // MARK: Reporting

    func report(_ event: TextStoreEvent) { onEvent?(event) }

    func report(_ outcome: Shelf.Outcome) {
        for fault in outcome.faults { report(.fault(fault)) }
        for event in outcome.events { report(event) }
        for increase in outcome.increases { increases.send(increase) }
        guard !outcome.hasUnverified else { return verifyChanges() }
        // Another process may have deleted a text; a record without a verdict does not count as missing.
        if outcome.isForeign { begin(session.read { $0.loadedWithoutAge(at: time.date) }) }
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
