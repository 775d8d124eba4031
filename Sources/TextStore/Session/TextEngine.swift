internal import Foundation
import StoreCore

/// Drives a session: does what its state decides, and tells the state how it ended.
final class TextEngine: Sendable {
    /// One lock for all that is known: a read is one look under it.
    let session = WatchedState(SessionState())
    let shelf: Shelf
    let fetcher: any RevalidatingFetcher<RemoteFile, RemoteText>
    let bundle: Bundle
    let policy: TextStorePolicy
    let time: any TimeSource
    let verify: (@Sendable (TextVerification) throws -> Void)?
    let onEvent: (@Sendable (TextStoreEvent) -> Void)?
    let manifestFile: KeptValue<ManifestRecord>
    let acceptances: AcceptanceLedger
    private let increases = Broadcast<VersionIncrease>()

    init(
        directory: Directory, bundle: Bundle, fetcher: any RevalidatingFetcher<RemoteFile, RemoteText>, policy: TextStorePolicy,
        time: any TimeSource, options: FileWriteOptions, verify: (@Sendable (TextVerification) throws -> Void)?,
        onEvent: (@Sendable (TextStoreEvent) -> Void)?
    ) {
        self.bundle = bundle
        self.fetcher = fetcher
        self.policy = policy
        self.time = time
        self.verify = verify
        self.onEvent = onEvent
        shelf = Shelf(directory: directory, options: options)
        manifestFile = KeptValue(name: "manifest", directory: directory, copies: 1, options: options)
        acceptances = AcceptanceLedger(directory: directory, options: options)
    }

    // MARK: Registering

    func register(_ sources: [TextSource]) async throws {
        let result = session.update { session in
            Result { () throws(TextStoreError) in try session.register(sources) }
        }
        try result.get()
        let bundled = await BundleReading.texts(of: sources, in: bundle)
        for case .failure(let fault) in bundled.values { tell(.refused(fault)) }
        let identifiers = sources.map(\.identifier)
        let turn = await shelf.admit(identifiers, activatesPending: policy.activation != .manually)
        await take(turn) { session in
            for (identifier, outcome) in bundled {
                switch outcome {
                case .success(let text): session.bundled[identifier] = text
                case .failure(let fault): session.bundleFaults[identifier] = fault
                }
            }
            session.loaded.formUnion(identifiers)
        }
        // Whether these texts have versions may be said only next; without that, the first look at one begins to refresh it.
        if session.read({ $0.versionSource != nil }) { begin() }
    }

    func setVersionSource(_ source: VersionSource) async {
        let (bundled, fault) = await BundleReading.manifest(of: source, in: bundle)
        if let fault { tell(.refused(fault)) }
        for refusal in bundled?.refusals ?? [] { tell(.refused(refusal)) }
        let (record, manifest) = await keptManifest(of: source)
        await take(nil) { session in
            // Set again: a manifest that has come meanwhile is newer than the file that was read before.
            guard session.versionSource != source else { return }
            session.versionSource = source
            session.bundledManifest = bundled
            // What is under way was decided without these versions.
            session.manifestFlight = nil
            session.flights = [:]
            session.manifestFailure = nil
            session.failures = [:]
            session.manifestRecord = record
            session.manifest = manifest
        }
        begin()
    }

    /// The manifest as it was saved; nothing where it is of another address, or older than one that was seen.
    @concurrent
    private func keptManifest(of source: VersionSource) async -> (ManifestRecord?, VersionManifest?) {
        guard let file = source.remoteFile else { return (nil, nil) }
        let (copies, faults) = manifestFile.load()
        for fault in faults { tell(.fault(fault)) }
        guard let record = copies.first?.value, record.url == file.url.absoluteString else { return (nil, nil) }
        guard let body = record.body else { return (record, nil) }
        // What was read before is read again, unless the source is read more strictly now; then it is asked for anew.
        guard let manifest = try? VersionManifest(parsing: body, mode: source.mode, limit: file.limit).taken(by: source),
            let turn = try? await shelf.accept(revision: manifest.revision)
        else { return (nil, nil) }
        await take(turn)
        return (record, manifest)
    }

    // MARK: Taking what the shelf says

    /// Takes over what the shelf says, unless something newer was taken already, and raises the floors of bundled texts.
    func take(_ turn: Shelf.Turn?, _ change: @Sendable (inout SessionState) -> Void = { _ in }) async {
        var turn = turn
        var changes = true
        repeat {
            let taken = turn
            let isFirst = changes
            changes = false
            let risen = session.update { session in
                if isFirst { change(&session) }
                if let contents = taken?.contents, contents.number > session.shelf.number { session.shelf = contents }
                session.resolve()
                return session.risen
            }
            if let taken {
                for fault in taken.faults { tell(.fault(fault)) }
                for increase in taken.increases { increases.send(increase) }
            }
            turn = risen.isEmpty ? nil : await shelf.raise(risen)
        } while turn != nil
    }

    // MARK: Fetching

    /// Begins what is due, and sees to it that observers are served when more becomes due.
    func begin(isForced: Bool = false) {
        let now = time.date, instant = time.now
        let actions = session.update { session in
            isForced ? session.beginForced(at: now, instant, policy) : session.begin(at: now, instant, policy)
        }
        perform(actions)
    }

    func perform(_ actions: [SessionAction]) {
        for action in actions {
            switch action {
            case .fetchManifest(let ticket, let source, let file, let record):
                Task { await fetchManifest(ticket, source, file, record) }
            case .fetchSet(let plan):
                Task { await fetchSet(plan) }
            }
        }
        arm()
    }

    /// Sets the timer for observers, where there are any.
    func arm() {
        let now = time.date, instant = time.now
        let armed = session.update { session -> (ticket: UInt64, deadline: MonotonicInstant)? in
            guard let deadline = session.nextDeadline(at: now, instant) else { return nil }
            if let timer = session.timer, timer.deadline <= deadline, timer.deadline > instant { return nil }
            session.timer = (session.ticket(), deadline)
            return session.timer
        }
        guard let armed else { return }
        Task { [weak self, time] in
            // Never cancelled: a timer that is no longer needed finds another ticket than its own.
            guard (try? await time.sleep(until: armed.deadline)) != nil, let self else { return }
            let isMine = session.update { session in
                guard session.timer?.ticket == armed.ticket else { return false }
                session.timer = nil
                return true
            }
            if isMine { begin() }
        }
    }

    // MARK: Telling

    func tell(_ event: TextStoreEvent) { onEvent?(event) }

    func makeIncreases() -> AsyncStream<VersionIncrease> { increases.makeStream() }
}

/// What a text store's own verification looks at.
public struct TextVerification: Sendable {
    /// The text; `nil` for a manifest.
    public var identifier: String?
    /// The version that the bytes are said to be.
    public var version: SemanticVersion?
    /// The bytes as the origin sent them.
    public var bytes: [UInt8]
}

/// Sends elements to all who listen at that moment.
final class Broadcast<Element: Sendable>: Sendable {
    private struct State {
        var listeners: [UInt64: AsyncStream<Element>.Continuation] = [:]
        var last: UInt64 = 0
    }

    /// Guards who listens.
    private let state = Lock(State())

    func makeStream() -> AsyncStream<Element> {
        let (stream, continuation) = AsyncStream<Element>.makeStream()
        let number = state.withLock { state in
            state.last += 1
            state.listeners[state.last] = continuation
            return state.last
        }
        continuation.onTermination = { [weak self] _ in
            // Taken out of the lock first: releasing it may run code of the listener's.
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
