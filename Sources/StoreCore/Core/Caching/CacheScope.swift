#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// A group of stores that belong together, such as all stores of a signed-in user.
///
/// ```swift
/// let scope = CacheScope(directory: cachesDirectory.appending(path: userID))
/// let files = FileCacher<User.ID, User>(
///     directory: scope.directory(named: "users"))
/// let users = Store(
///     cacher: TieredCacher(over: files), fetcher: UserFetcher(), scope: scope)
/// ```
///
/// Signing out then ends all work for the user, and removes all of the user's data:
///
/// ```swift
/// try await scope.close(clearing: true)
/// ```
///
/// The scope holds its stores weakly and keeps none of them alive.
///
/// <doc:InASwiftUIApp> shows where an app signs out.
public final class CacheScope: Sendable {
    /// The directory for the files of the group's cachers. The module that has files gives access to it, and removes the records in it.
    package let location: URL

    /// Guards the members; adding a member removes the released ones.
    private let state = Lock(State())
    /// The number of outboxes that are being created, and of removals of records: work of the scope itself that changes files.
    private let work = WatchedState(0)
    /// The number of calls of `close(clearing: true)` that have not removed the records yet.
    private let removals = WatchedState(0)

    /// Creates an empty group. Its files, if it has any, are in a new temporary directory.
    public convenience init() {
        self.init(at: FileManager.default.temporaryDirectory.appending(path: "scope-\(UUID().uuidString)", directoryHint: .isDirectory))
    }

    /// Creates an empty group with a directory that may not exist yet.
    package init(at location: URL) { self.location = location }

    /// Sets the removal of the records of stores that do not exist now, such as a store that was not opened since the last launch.
    package func setRemoval(_ removeRecords: @escaping @Sendable () async throws -> Void) {
        state.withLock { $0.removeRecords = removeRecords }
    }

    /// Clears every store and outbox of the group, then removes the records of other stores from the group's directory.
    ///
    /// An ``Outbox`` drops its commands, and reports their number as an event. A store or an outbox that was closed is skipped, so a closed
    /// outbox keeps its commands.
    ///
    /// The removal covers the directory itself and its direct subdirectories. An observed key is fetched again. If no data may return, for
    /// example after the user has signed out, call ``close(clearing:)`` instead.
    ///
    /// Afterward, no result of a fetch that began before this call reaches an observer or a cacher.
    ///
    /// - Throws: ``StoreError/Code/closed`` if the scope is closed; the first error, after all other data is cleared. `CancellationError` if
    ///   the task is canceled; all data is cleared even then, and only the wait for the cachers ends early.
    public func clear() async throws {
        if isClosed { throw StoreError.closedScope }
        // First, so that the result of a delivery never reaches a store that is already cleared.
        var firstError = await failure { try await $0.prepareToClear() }
        // Clears all stores at once: while one cacher is slow, a fetch for the old data must not complete in another store.
        let clearError = await failure { try await $0.clear() }
        firstError = firstError ?? clearError
        do { try await removeRecordsIfOpen() } catch { firstError = firstError ?? error }
        try Task.checkCancellation()
        if let firstError { throw firstError }
    }

    /// Ends all work of the group for good, for example when the user signs out.
    ///
    /// The observations of the stores and outboxes end. Each later fetch, save, update and submission fails with
    /// ``StoreError/Code/closed``; methods that cannot throw do nothing. Running fetches and deliveries are canceled, and their results are
    /// dropped.
    ///
    /// The call returns when nothing runs. From then on, no file in the directories of the group changes, so the directory may be deleted.
    /// A store or an outbox that is created later with this scope is closed from the start.
    ///
    /// A fetcher, or the `perform` of a command, that ignores its cancellation delays the call. If one of them makes the call itself, the
    /// call does not wait for it.
    ///
    /// - Parameter clearing: Whether all data is removed, as by ``clear()``. Otherwise the stores first save all accepted content, and the
    ///   commands of an ``Outbox`` stay on disk.
    /// - Throws: The first error of a cacher or an outbox, after everything has ended. `CancellationError` if the task is canceled;
    ///   everything is closed even then, and only the wait ends early. Call the method again to wait.
    public func close(clearing: Bool = false) async throws {
        if clearing { removals.update { $0 += 1 } }
        state.withLock { $0.isClosed = true }
        try await ClosingCall.wait { [self] in
            // First, so that the result of a delivery or a fetch reaches no other member.
            _ = await failure { await $0.refuse() }
            var firstError = await failure { try await $0.close(clearing: clearing) }
            do { try await waitForReleasedMembers() } catch { firstError = firstError ?? error }
            // Once: the directory may belong to a new scope afterward.
            if clearing, !state.withLock({ $0.isEmptied }) {
                do { try await state.withLock({ $0.removeRecords })?() } catch { firstError = firstError ?? error }
                if firstError == nil { state.withLock { $0.isEmptied = true } }
            }
            if clearing { removals.update { $0 -= 1 } }
            // The other calls may wait for the call of a cacher that makes this one.
            if !StoreEngine.isInCacherCall { try await removals.wait { $0 == 0 ? () : nil } }
            try Task.checkCancellation()
            if let firstError { throw firstError }
        }
    }

    /// Removes the records of stores that do not exist now, unless the scope was closed: the directory may belong to a new scope since.
    private func removeRecordsIfOpen() async throws {
        // In one step with the look, so that a call that closes the scope either waits for the removal or prevents it.
        let mayRemove = state.withLock { state in
            if !state.isClosed { work.update { $0 += 1 } }
            return !state.isClosed
        }
        guard mayRemove else { throw StoreError.closedScope }
        defer { work.update { $0 -= 1 } }
        try await state.withLock({ $0.removeRecords })?()
    }

    /// Waits for the work of the scope itself, and for work that has outlived its store or outbox, such as a canceled fetch.
    private func waitForReleasedMembers() async throws {
        try await work.wait { $0 == 0 ? () : nil }
        let counters = state.withLock { $0.members.compactMap(\.running) }
        for counter in counters { try await counter.wait { $0 == 0 ? () : nil } }
    }

    /// Creates an outbox, which a call of `close(clearing:)` waits for: the creation changes files.
    package func creating<Member>(_ create: () throws -> Member) rethrows -> Member {
        work.update { $0 += 1 }
        defer { work.update { $0 -= 1 } }
        return try create()
    }

    package var isClosed: Bool { state.withLock { $0.isClosed } }

    /// Waits until the cachers of all stores have saved everything accepted so far; call it before the program ends.
    ///
    /// The call waits for all stores at once, each by the rules of ``Store/waitUntilSaved()``.
    ///
    /// - Throws: The first error, after all other records are saved: ``StoreError/Code/cacherFailed`` if a cacher failed.
    ///   `CancellationError` as soon as the task is canceled; no save is affected.
    public func waitUntilSaved() async throws {
        let firstError = await failure { try await $0.waitUntilSaved() }
        if let firstError { throw firstError }
    }

    /// Runs an operation on every store of the group concurrently; returns the first error after all operations have ended.
    private func failure(of body: @escaping @Sendable (any CacheScopeMember) async throws -> Void) async -> (any Error)? {
        let members = state.withLock { $0.members.compactMap { $0.object() } }
        return await withTaskGroup { group in
            for member in members { group.addTask { await StoreEngine.failure { try await body(member) } } }
            return await group.reduce(nil) { $0 ?? $1 }
        }
    }

    /// Adds a member without retaining it; `running` is the number of running pieces of work that may outlive the member.
    package func add(_ object: some CacheScopeMember, running: WatchedState<Int>? = nil) {
        let member = Member(running: running) { [weak object] in object }
        state.withLock { state in
            state.members.removeAll { $0.object() == nil && ($0.running?.current ?? 0) == 0 }
            state.members.append(member)
        }
    }

    private struct State: Sendable {
        var members: [Member] = []
        var removeRecords: (@Sendable () async throws -> Void)?
        var isClosed = false
        var isEmptied = false
    }

    private struct Member: Sendable {
        let running: WatchedState<Int>?
        let object: @Sendable () -> (any CacheScopeMember)?
    }
}

extension StoreError {
    fileprivate static var closedScope: StoreError {
        StoreError(.closed, "clearing a closed scope: call close(clearing: true), or create a new scope")
    }
}

/// An object with data that belongs to a scope: the engine of a store, an outbox, or the cookies or credentials of a host.
package protocol CacheScopeMember: AnyObject, Sendable {
    /// Drops work with results that would reach other members of the scope; called before any member is cleared.
    ///
    /// - Throws: An error of the member; all members are cleared even then.
    func prepareToClear() async throws

    /// Removes all content from memory and from the cacher.
    func clear() async throws

    /// Waits until the cacher has saved everything accepted so far.
    func waitUntilSaved() async throws

    /// Refuses new work and cancels what runs; called before any member waits for the end of its work.
    func refuse() async

    /// Refuses new work, cancels what runs, and returns when nothing runs.
    ///
    /// - Throws: The cacher's error, after everything has ended; `CancellationError` if the task is canceled.
    func close(clearing: Bool) async throws
}

extension CacheScopeMember {
    /// Does nothing, for a member that delivers no results to other members.
    package func prepareToClear() async throws {}

    /// Does nothing, for a member that works only when it is called.
    package func refuse() async {}

    /// Clears the member, or waits until everything is saved.
    package func close(clearing: Bool) async throws {
        if clearing { try await clear() } else { try await waitUntilSaved() }
    }
}

extension StoreEngine: CacheScopeMember {
    package func clear() async throws {
        forgetEntities()
        try await clearEverything(unlessClosed: true)
    }

    package func refuse() async { shut() }

    package func waitUntilSaved() async throws { try await waitUntilSaved(nil) }
}
