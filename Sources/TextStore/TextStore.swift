// TextStore — versioned texts that never go backwards.
//
//      your app
//   ┌─▶ TextStore ◀─┐   RemoteRouting      SyncEngine
//   └───────────── StoreCore ─────────────────────────
//
// Versions are compared and texts chosen by pure functions (Versions, Resolving, Session/SessionState); files lie on one shelf (Shelf);
// the server is any `RevalidatingFetcher` (Fetching). The module imports StoreCore, Foundation and the internal target Wire, which sends HTTP
// requests; it imports neither of its neighbors.
// Texts are no keys of a `Store`, although their states are its states: a floor, a pointer and a set are about several texts at once, and
// the engine of a store decides for one key at a time.

public import Foundation
public import StoreCore

/// The versioned texts of one session: bundled with the app, replaced by newer ones of a server, and never going backwards.
///
/// ```swift
/// let texts = try TextStore(session: "legal")
/// try await texts.register(eula)
/// await texts.setVersionSource(versions)
///
/// let now = try await texts.text(for: eula)                                    // what is here, at once
/// let newest = try await texts.text(for: eula, awaiting: .remote(timeout: .seconds(2)))
/// for await state in texts.publish(eula) { render(state) }
/// ```
///
/// All registered texts are held in memory: a read takes one lock and touches neither disk nor network. Fetches belong to the store and go
/// on when whoever waited for them leaves.
public final class TextStore: Sendable {
    @usableFromInline let engine: TextEngine

    /// Opens a session; the directory is read at the first registration, and made at the first save.
    ///
    /// - Parameters:
    ///   - session: What separates these texts from those of other stores; any string but an empty one.
    ///   - directory: Where sessions are kept; `nil` for ``defaultDirectory``. Each session has a directory of its own in it.
    ///   - bundle: Where bundled files are.
    ///   - fetcher: How files of servers are got; a `RevalidatingFetcher` saves fetching what has not changed, a plain `Fetcher` will do.
    ///   - policy: How texts are refreshed and switched.
    ///   - time: The clock.
    ///   - verify: Verifies the bytes of manifests and texts, fetched and kept, such as their signatures; `nil` for no verification.
    ///   - onEvent: Receives refusals, disk faults and saves, from any thread and never under a lock. A trailing closure is always this one.
    /// - Throws: ``TextStoreError/Code/invalidName``.
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
        policy: TextStorePolicy, time: some TimeSource, options: FileWriteOptions,
        verify: TextVerifier? = nil, onEvent: (@Sendable (TextStoreEvent) -> Void)? = nil
    ) throws(TextStoreError) {
        guard !session.isEmpty else { throw TextStoreError(.invalidName, "opening a session: its name is empty; give it one") }
        let parent = directory ?? Self.defaultDirectory
        guard parent.isFileURL else {
            throw TextStoreError(.invalidName, "opening a session: \(parent.absoluteString) is no directory of a disk; give a file URL")
        }
        let place = Directory(path: parent.absoluteURL.path(percentEncoded: false))
        engine = TextEngine(
            directory: Directory(path: place.path(of: FileNames.digest(of: session).hex)), bundle: bundle, fetcher: fetcher, policy: policy,
            time: time, options: options, verify: verify, onEvent: onEvent)
    }

    /// Where sessions are kept by default: Application Support on Apple's systems, `$XDG_STATE_HOME` elsewhere.
    public static var defaultDirectory: URL {
        #if canImport(Darwin)
        return URL.applicationSupportDirectory.appending(path: "Storehouse/Texts", directoryHint: .isDirectory)
        #else
        let environment = ProcessInfo.processInfo.environment
        // Relative paths are to be ignored (XDG Base Directory Specification).
        let given = environment["XDG_STATE_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
        let base = given.map { URL(filePath: $0, directoryHint: .isDirectory) } ?? URL.homeDirectory.appending(path: ".local/state")
        return base.appending(path: "\(ProcessInfo.processInfo.processName)/texts", directoryHint: .isDirectory)
        #endif
    }

    // MARK: Sources

    /// Registers a text; again with the same source changes nothing.
    ///
    /// Reads the text's files and raises the floor for what came with the app. Order and number of registrations play no
    /// part, nor whether the version source is set before or after. With a verifier, kept texts are verified before this returns and before the
    /// first state; a refused one is reported as an event, and the text falls back to the previous or the bundled one.
    ///
    /// - Parameter provider: The text's source.
    /// - Throws: ``TextStoreError/Code/conflictingSource``, ``TextStoreError/Code/invalidName``; nothing has changed then.
    public func register(_ provider: some TextSourceProvider) async throws { try await engine.register([provider.textSource]) }

    /// Registers texts, all of them or none; see above.
    ///
    /// - Parameter providers: The texts' sources.
    public func register(_ providers: some Sequence<some TextSourceProvider>) async throws {
        try await engine.register(providers.map(\.textSource))
    }

    /// Says where versions come from; the last one said counts.
    ///
    /// A manifest of the bundle that cannot be read is told as an event, and its texts are without version.
    ///
    /// - Parameter source: The manifests.
    public func setVersionSource(_ source: VersionSource) async { await engine.setVersionSource(source) }

    // MARK: Reading

    /// The best text there is.
    ///
    /// Without waiting it answers from memory and begins a refresh where one is due. With `.remote` one deadline spans manifest and text; what
    /// is not here by then is fetched and saved all the same, and the answer carries the reason as its `fallbackReason`.
    ///
    /// - Parameters:
    ///   - provider: The text.
    ///   - awaiting: Whether to wait for the origin.
    /// - Throws: ``TextStoreError/Code/unknownIdentifier``, ``TextStoreError/Code/notAvailable``; `CancellationError` as soon as the task is
    ///   cancelled while it waits.
    @inlinable  // A text that is here is a look under a lock, which costs less than a generic call.
    public func text(for provider: some TextSourceProvider, awaiting: TextAwaiting = .nothing) async throws -> VersionedText {
        let identifier = provider.textIdentifier
        if awaiting == .nothing, let text = engine.resident(identifier) { return text }
        return try await engine.text(identifier, awaiting)
    }

    /// Returns the best text of an identifier, as the method with a provider does.
    ///
    /// - Parameters:
    ///   - identifier: The identifier of a registered text.
    ///   - awaiting: How long to wait for the server.
    /// - Throws: ``TextStoreError/Code/unknownIdentifier``, ``TextStoreError/Code/notAvailable``; `CancellationError` as soon as the task is
    ///   canceled while it waits.
    @inlinable
    public func text(for identifier: String, awaiting: TextAwaiting = .nothing) async throws -> VersionedText {
        if awaiting == .nothing, let text = engine.resident(identifier) { return text }
        return try await engine.text(identifier, awaiting)
    }

    /// The states of a text: at once what is here, then every change.
    ///
    /// - Parameter provider: The text; one that is not registered yet is an error until it is.
    public func publish(_ provider: some TextSourceProvider) -> LoadingStateSequence<VersionedText> {
        publish(provider.textIdentifier)
    }

    /// Returns the states of the text of an identifier: at once what is here, then every change.
    ///
    /// - Parameter identifier: The identifier of the text; one that is not registered yet is an error until it is.
    public func publish(_ identifier: String) -> LoadingStateSequence<VersionedText> {
        LoadingStateSequence { [engine] in TextObserver(engine, identifier) }
    }

    /// The increases of versions from now on, each once and after it was saved; ask before registering to miss none.
    public var versionIncreases: AsyncStream<VersionIncrease> { engine.makeIncreases() }

    // MARK: Refreshing and switching

    /// Requests everything from the server, regardless of intervals and back-off, and waits for the responses.
    ///
    /// - Throws: The first ``TextStoreError``; the other texts are stored all the same. ``TextStoreError/Code/incompleteSet`` if a set stays because
    ///   one of its texts is not acceptable as published. `CancellationError`; the fetches go on.
    public func refresh() async throws { try await engine.refresh() }

    /// Activates the sets that wait. With a verifier, it verifies them first.
    ///
    /// Drops a set that is damaged, below a floor, or not listed by the newest manifest, and reports it as an event.
    ///
    /// - Returns: Whether any text was switched; `false` if no set waits.
    /// - Throws: ``TextStoreError/Code/fileSystem``; the old sets are then active and whole.
    @discardableResult
    public func activate() async throws -> Bool {
        try await engine.activate()
    }

    /// Forgets all cached texts and the manifest, but not the floors and acceptances; where observed, fetches again.
    ///
    /// - Throws: ``TextStoreError/Code/fileSystem``; nothing is forgotten then.
    public func clear() async throws { try await engine.clear() }

    // MARK: Acceptance

    /// Saves that the user has accepted a text.
    ///
    /// An acceptance never replaces one of another version or wording, so a store that still shows an older text loses no newer acceptance.
    ///
    /// - Parameter text: The text as the user has seen it.
    /// - Throws: ``TextStoreError/Code/fileSystem``; the text is not accepted then.
    public func accept(_ text: VersionedText) async throws {
        let acceptance = Acceptance(identifier: text.identifier, version: text.version, digest: text.digest, date: engine.time.date)
        for fault in try await engine.acceptances.accept(acceptance) { engine.tell(.fault(fault)) }
    }

    /// Returns the newest acceptance of a text: of its highest accepted version, and the last one among equal versions.
    ///
    /// - Parameter provider: The text.
    /// - Returns: The acceptance; `nil` if the text was never accepted.
    /// - Throws: ``TextStoreError/Code/damagedFile`` or ``TextStoreError/Code/fileSystem`` if the acceptances cannot be read.
    public func acceptance(of provider: some TextSourceProvider) async throws -> Acceptance? {
        try await acceptance(of: provider.textIdentifier)
    }

    /// Returns the newest acceptance of the text of an identifier, as the method with a provider does.
    ///
    /// - Parameter identifier: The identifier of the text.
    /// - Throws: ``TextStoreError/Code/damagedFile`` or ``TextStoreError/Code/fileSystem`` if the acceptances cannot be read.
    public func acceptance(of identifier: String) async throws -> Acceptance? {
        try await engine.acceptances.history(of: identifier).newest
    }

    /// Returns whether a shown text needs acceptance: unless the same or a higher version was accepted.
    ///
    /// If the acceptances cannot be read, the text needs acceptance, and the fault is reported as an event.
    ///
    /// - Parameters:
    ///   - text: The text as the user sees it; pass the same one to ``accept(_:)``.
    ///   - granularity: The size of a change that requires another acceptance.
    public func needsAcceptance(of text: VersionedText, granularity: Acceptance.Granularity = .any) async -> Bool {
        do { return try await engine.acceptances.history(of: text.identifier).isNeeded(for: text, granularity) } catch {
            // Asking once too often is safe, and the opposite is not.
            engine.tell(.fault(.wrapping(error, .damagedFile, "reading acceptances")))
            return true
        }
    }

    /// Returns whether the best text at this moment needs acceptance, for a badge or a menu.
    ///
    /// A gate passes the ``VersionedText`` that it shows instead, because the best text may change between two calls.
    ///
    /// - Parameters:
    ///   - provider: The text.
    ///   - granularity: The size of a change that requires another acceptance.
    /// - Throws: ``TextStoreError/Code/unknownIdentifier``, ``TextStoreError/Code/notAvailable``.
    public func needsAcceptance(of provider: some TextSourceProvider, granularity: Acceptance.Granularity = .any) async throws -> Bool {
        try await needsAcceptance(of: provider.textIdentifier, granularity: granularity)
    }

    /// Returns whether the best text of an identifier needs acceptance at this moment, for a badge or a menu.
    ///
    /// - Parameters:
    ///   - identifier: The identifier of a registered text.
    ///   - granularity: The size of a change that requires another acceptance.
    /// - Throws: ``TextStoreError/Code/unknownIdentifier``, ``TextStoreError/Code/notAvailable``.
    public func needsAcceptance(of identifier: String, granularity: Acceptance.Granularity = .any) async throws -> Bool {
        await needsAcceptance(of: try await text(for: identifier), granularity: granularity)
    }
}
