// TextStore — versioned texts that never go backwards.
//
//      your app
//   ┌─▶ TextStore ◀─┐   RemoteRouting      SyncEngine
//   └───────────── StoreCore ─────────────────────────
//
// Versions are compared and texts chosen by pure functions (Versions, Resolving, Session/SessionState). The files of a session are on its
// shelf (Shelf). The server is any `RevalidatingFetcher` (Fetching). The module imports StoreCore, its platform, and RemoteHTTP, which sends
// requests; it does not import its neighbors.
//
// Texts are not keys of a `Store`, although they share its states: a floor, a pointer, and a set concern several texts at once, and a
// store's engine decides for each key alone.

public import Foundation
public import StoreCore
package import StorePlatform
internal import Synchronization

/// The versioned texts of one session: bundled with the app, replaced by newer ones from a server, and never going backwards.
///
/// ```swift
/// let texts = try TextStore(session: "legal")
/// try await texts.register(eula)
/// await texts.setVersionSource(versions)
///
/// let now = try await texts.text(for: eula)  // from memory, without waiting
/// let newest = try await texts.text(
///     for: eula, awaiting: .remote(timeout: .seconds(2)))
/// for await state in texts.publish(eula) { render(state) }
/// ```
///
/// All registered texts are held in memory, so a read takes one lock and touches neither disk nor network. Fetches belong to the store and
/// continue after their callers leave.
///
/// <doc:GettingStarted> opens a session and reads its texts.
public final class TextStore: Sendable {
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
    let ledger: AcceptanceLedger
    let increases = Broadcast<VersionIncrease>()
    /// The fetches in flight, by their tickets.
    let tasks = Lock<[UInt64: Task<Void, Never>]>([:])
    /// Whether a task is verifying the records of another process.
    let isVerifying = Atomic(false)

    /// Opens a session. The first registration reads the directory, and the first save creates it.
    ///
    /// - Parameters:
    ///   - session: The name that separates these texts from those of other stores; any string except the empty one.
    ///   - directory: The directory of all sessions; `nil` for ``defaultDirectory``. Each session has a subdirectory of its own.
    ///   - bundle: The bundle of the bundled files.
    ///   - fetcher: The client of the server. A `RevalidatingFetcher` avoids fetching unchanged files; a plain `Fetcher` also works.
    ///   - policy: The rules for refreshing and switching texts.
    ///   - time: The clock.
    ///   - verify: Verifies the bytes of fetched and saved manifests and texts, such as their signatures; `nil` for no verification.
    ///   - onEvent: Receives refusals, disk faults, and saves, from any thread and never under a lock. A trailing closure is this one.
    /// - Throws: ``TextStoreError/Code/invalidName`` if the session's name is empty, or if the directory is not a file URL.
    public convenience init(
        session: String, directory: URL? = nil, bundle: Bundle = .main,
        fetcher: some Origin<RemoteFile, RemoteText> = HTTPTextFetcher(), policy: TextStorePolicy = TextStorePolicy(),
        time: some TimeSource = .system, verify: TextVerifier? = nil, onEvent: (@Sendable (TextStoreEvent) -> Void)? = nil
    ) throws(TextStoreError) {
        try self.init(
            session: session, directory: directory, bundle: bundle, fetcher: fetcher, policy: policy, time: time,
            options: FileWriteOptions(durability: policy.durability), verify: verify, onEvent: onEvent)
    }

    package init(
        session: String, directory: URL?, bundle: Bundle, fetcher: some Origin<RemoteFile, RemoteText>,
        policy: TextStorePolicy, time: some TimeSource, options: FileWriteOptions, patience: Duration? = nil,
        verify: TextVerifier? = nil, onEvent: (@Sendable (TextStoreEvent) -> Void)? = nil
    ) throws(TextStoreError) {
        guard !session.isEmpty else { throw TextStoreError(.invalidName, "cannot open a session: its name is empty; pass one") }
        let parent = directory ?? Self.defaultDirectory
        guard parent.isFileURL else {
            throw TextStoreError(.invalidName, "cannot open the session: \(parent.absoluteString) is not on a disk; pass a file URL")
        }
        let place = Directory(path: parent.absoluteURL.path(percentEncoded: false))
        let folder = Directory(path: place.path(of: RecordName.digest(of: session).hex))
        let patience = patience ?? SessionLock.usualPatience
        self.bundle = bundle
        self.fetcher = fetcher
        self.policy = policy
        self.time = time
        isOnSystemTime = time is SystemTime
        self.verify = verify
        self.onEvent = onEvent
        shelf = Shelf(directory: folder, options: options, session: self.session, verifies: verify != nil, patience: patience)
        ledger = AcceptanceLedger(
            directory: folder, options: options, keepsEvidence: policy.evidence == .allAcceptances, patience: patience)
    }

    /// The date for reads. The system's coarse clock may lag by some milliseconds, and expiry is then noticed that much later.
    var quickDate: Date { isOnSystemTime ? Date(timeIntervalSince1970: coarseSeconds()) : time.date }

    deinit {
        // Callers and observers retain the store, so any task still running is unwanted.
        for task in tasks.withLock({ Array($0.values) }) { task.cancel() }
    }

    /// The default directory of sessions, with the program's name: in Application Support on Apple's systems, else in `$XDG_STATE_HOME`.
    ///
    /// On Apple's systems the name is the bundle identifier, because all programs outside a sandbox share Application Support. A program
    /// without a bundle identifier uses its process's name.
    public static var defaultDirectory: URL { Directory.ofProgramState.appending(path: "texts", directoryHint: .isDirectory) }

    // MARK: Sources

    /// Registers a text. Registering it again with the same source changes nothing.
    ///
    /// Reads the text's files and raises the floor for bundled texts. With a verifier, saved texts are verified before this method returns
    /// and before the first state. A refused text is reported as an event, and the store falls back to the previous or the bundled one.
    ///
    /// - Parameter provider: The text's source.
    /// - Throws: ``TextStoreError/Code/conflictingSource`` if the identifier has another source, ``TextStoreError/Code/invalidName`` if it
    ///   is empty, and ``TextStoreError/Code/invalidLanguage`` if the languages cannot be used. The registrations are then unchanged.
    public func register(_ provider: some TextSourceProvider) async throws { try await add([provider.textSource]) }

    /// Registers several texts, all of them or none, as the method for one text does, with the same errors.
    ///
    /// - Parameter providers: The texts' sources.
    public func register(_ providers: some Sequence<some TextSourceProvider>) async throws {
        try await add(providers.map(\.textSource))
    }

    /// Sets the manifests that list the versions; the last call counts.
    ///
    /// If the bundled manifest cannot be read, the fault is reported as an event and the bundled texts are unversioned. If the bundled
    /// manifest is above every accepted one, its epoch and its rollbacks count, like those of a verified manifest.
    ///
    /// - Parameter source: The manifests.
    public func setVersionSource(_ source: VersionSource) async {
        let call = session.update { $0.ticket() }
        let read = await BundleReading.manifest(of: source, in: bundle), bundled = try? read?.get()
        if case .failure(let fault)? = read { report(.refused(fault)) }
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

    /// Sets the preferred languages, the best first, and switches all texts in several languages in one step; the last call counts.
    ///
    /// Observers see the switch at once, also offline: from the cache or the bundle, whichever is newer. Texts of a language that was not
    /// preferred before are then fetched. Without a call, the languages of `Locale.preferredLanguages` are preferred. The store saves no
    /// languages, so call this method at each start if the app has a setting of its own.
    ///
    /// - Parameter languages: Tags of BCP 47, such as `de-AT`; 1 000 at most. A text that has no file for `de-AT` falls back to `de`, then
    ///   to the next preferred language, and at last to its development language.
    /// - Throws: ``TextStoreError/Code/invalidLanguage`` for an empty list or a malformed tag; the languages are then unchanged.
    public func setLanguages(_ languages: [String]) async throws {
        let preferred = try LanguageChoice.preferred(languages)
        let call = session.update { $0.ticket() }
        await finishSwitch(to: preferred, of: call)
        begin()
    }

    // MARK: Reading

    /// Returns the best available text.
    ///
    /// Without waiting, returns from memory and begins a refresh if one is due. With `.remote`, one deadline covers manifest and text.
    /// After the deadline the fetch continues and is saved, and the returned text carries the reason as its `fallbackReason`.
    ///
    /// - Parameters:
    ///   - provider: The text.
    ///   - awaiting: How long to wait for the server.
    /// - Throws: ``TextStoreError/Code/unknownIdentifier`` if the text is not registered, ``TextStoreError/Code/notAvailable`` if no text
    ///   is available, and `CancellationError` as soon as the task is canceled while it waits.
    @inlinable  // Reading a resident text takes one lock, which costs less than an unspecialized generic call.
    public func text(for provider: some TextSourceProvider, awaiting: TextAwaiting = .nothing) async throws -> VersionedText {
        let identifier = provider.textIdentifier
        if awaiting == .nothing, let text = resident(identifier) { return text }
        return try await self.text(identifier, awaiting)
    }

    /// Returns the best available text for an identifier, as the method with a provider does, with the same errors.
    ///
    /// - Parameters:
    ///   - identifier: The identifier of a registered text.
    ///   - awaiting: How long to wait for the server.
    @inlinable
    public func text(for identifier: String, awaiting: TextAwaiting = .nothing) async throws -> VersionedText {
        if awaiting == .nothing, let text = resident(identifier) { return text }
        return try await self.text(identifier, awaiting)
    }

    /// Returns the states of a text: the current one at once, then every change.
    ///
    /// - Parameter provider: The text. An unregistered text is in an error state until it is registered.
    public func publish(_ provider: some TextSourceProvider) -> LoadingStateSequence<VersionedText> {
        publish(provider.textIdentifier)
    }

    /// Returns the states of the text of an identifier: the current one at once, then every change.
    ///
    /// - Parameter identifier: The identifier of the text. An unregistered text is in an error state until it is registered.
    public func publish(_ identifier: String) -> LoadingStateSequence<VersionedText> {
        LoadingStateSequence { [self] in TextObserver(self, identifier) }
    }

    /// The version increases from now on, each reported once after its save; read this property before registering to miss none.
    public var versionIncreases: AsyncStream<VersionIncrease> { increases.makeStream() }

    // MARK: Refreshing and switching

    /// Requests everything from the server, regardless of intervals and back-off, and waits for the responses.
    ///
    /// Joins no request that was sent before the call: a fetch in flight is used when it arrives, and then repeated. Several calls during a
    /// fetch share one repetition.
    ///
    /// - Throws: The first ``TextStoreError``; the other texts are stored nevertheless. ``TextStoreError/Code/malformedEntry`` or
    ///   ``TextStoreError/Code/belowFloor`` if the entry of a text is not acceptable as published, ``TextStoreError/Code/incompleteSet`` if
    ///   a set stays because of such a text. `CancellationError` if the task is canceled; the fetches continue.
    public func refresh() async throws {
        session.update { $0.refreshing += 1 }
        defer { session.update { $0.refreshing -= 1 } }
        begin(isForced: true)
        let failure = try await session.wait { session -> TextStoreError?? in
            guard session.manifestFlight == nil, session.flights.isEmpty, !session.isForced else { return nil }
            return .some(session.manifestFailure ?? session.failures.sorted { $0.key < $1.key }.first?.value.error)
        }
        if let failure { throw failure }
    }

    /// Activates the waiting sets. With a verifier, verifies them first.
    ///
    /// Drops a set that is damaged, below a floor, or not listed by the newest manifest, and reports it as an event.
    ///
    /// - Returns: Whether any text was switched; `false` if no set waits.
    /// - Throws: ``TextStoreError/Code/fileSystem`` if the disk fails; ``TextStoreError/Code/damagedFile`` if another version of the
    ///   framework has written the session. The old sets remain active and whole.
    @discardableResult
    public func activate() async throws -> Bool {
        if verify != nil { await verifyKept(nil, withPending: true) }
        let outcome = try await shelf.activatePending()
        report(outcome)
        return outcome.hasSwitched
    }

    /// Deletes all cached texts and the manifest, but not the floors and acceptances; fetches observed texts again.
    ///
    /// - Throws: ``TextStoreError/Code/fileSystem`` if the disk fails; ``TextStoreError/Code/damagedFile`` if another version of the
    ///   framework has written the session. All texts then remain.
    public func clear() async throws {
        let moment = moment
        let outcome = try await shelf.clear { session in
            // Fetches in flight belong to the deleted state.
            session.forgetFetches()
            session.replaceManifest(nil)
            session.setManifestRecord(nil, at: moment)
            session.fetched = [:]
        }
        report(outcome)
        if session.read({ !$0.observers.isEmpty || $0.refreshing > 0 }) { begin(isForced: true) }
    }
}
