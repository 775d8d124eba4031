#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
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
/// Signing out then removes all of the user's data:
///
/// ```swift
/// try await scope.clear()
/// ```
///
/// The scope holds its stores weakly and keeps none of them alive.
public final class CacheScope: Sendable {
    /// The directory that contains the files of the group's cachers.
    public let directory: URL

    /// Guards the members; adding a member removes the released ones.
    private let members = Lock<[Member]>([])

    /// Creates an empty group.
    ///
    /// - Parameter directory: The directory that contains the files of the group's cachers; by default a new temporary directory. It is
    ///   created at the first save.
    public init(directory: URL? = nil) {
        self.directory =
            directory
            ?? FileManager.default.temporaryDirectory.appending(path: "scope-\(UUID().uuidString)", directoryHint: .isDirectory)
    }

    /// Returns the subdirectory for one kind of data.
    ///
    /// - Parameter name: The name of the kind; one path component.
    /// - Returns: The URL of the directory. The call does not create it.
    public func directory(named name: String) -> URL {
        directory.appending(path: name, directoryHint: .isDirectory)
    }

    /// Clears every store and outbox of the group, then removes the records of other stores from the group's directory.
    ///
    /// An ``Outbox`` drops its commands, and reports their number as an event.
    ///
    /// The removal covers the directory itself and its direct subdirectories. An observed key is fetched again, so end the observation
    /// first if nothing may return.
    ///
    /// A fetch that began before this call reaches neither observers nor cachers.
    ///
    /// - Throws: The first error, after all other data is cleared. `CancellationError` if the task is canceled; all data is cleared even
    ///   then, and only the wait for the cachers ends early.
    public func clear() async throws {
        // First, so that the result of a delivery never reaches a store that is already cleared.
        var firstError = await failure { try await $0.prepareToClear() }
        // Clears all stores at once: while one cacher is slow, a fetch for the old data must not complete in another store.
        let clearError = await failure { try await $0.clear() }
        firstError = firstError ?? clearError
        do { try await Self.removeRecords(in: directory) } catch { firstError = firstError ?? error }
        try Task.checkCancellation()
        if let firstError { throw firstError }
    }

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

    /// Runs an operation on every store of the group concurrently.
    ///
    /// - Returns: The first error, after all operations have ended.
    private func failure(of body: @escaping @Sendable (any CacheScopeMember) async throws -> Void) async -> (any Error)? {
        let members = members.withLock { $0.compactMap { $0.object() } }
        return await withTaskGroup { group in
            for member in members {
                group.addTask { () -> (any Error)? in
                    do { try await body(member) } catch { return error }
                    return nil
                }
            }
            return await group.reduce(nil) { $0 ?? $1 }
        }
    }

    /// Adds a member without retaining it.
    package func add(_ object: some CacheScopeMember) {
        let member = Member { [weak object] in object }
        members.withLock { members in
            members.removeAll { $0.object() == nil }
            members.append(member)
        }
    }

    /// Removes the files of stores that do not exist now, such as a store that was not opened since the last launch.
    @concurrent
    private static func removeRecords(in directory: URL) async throws {
        try RecordFiles.removeAll(in: Directory(path: directory.standardizedFileURL.path(percentEncoded: false)), depth: .children)
    }

    /// A weak reference to a store or another member.
    private struct Member: Sendable {
        let object: @Sendable () -> (any CacheScopeMember)?
    }
}

/// An object with data that belongs to a scope: the engine of a store, an outbox, or the cookies of a host.
package protocol CacheScopeMember: AnyObject, Sendable {
    /// Drops work with results that would reach other members of the scope; called before any member is cleared.
    ///
    /// - Throws: An error of the member; all members are cleared even then.
    func prepareToClear() async throws

    /// Removes all content from memory and from the cacher.
    ///
    /// - Throws: The cacher's error.
    func clear() async throws

    /// Waits until the cacher has saved everything accepted so far.
    ///
    /// - Throws: The cacher's error; `CancellationError` if the task is canceled.
    func waitUntilSaved() async throws
}

extension CacheScopeMember {
    /// Does nothing.
    package func prepareToClear() async throws {}
}

extension StoreEngine: CacheScopeMember {
    package func clear() async throws { try await clearAll() }

    package func waitUntilSaved() async throws { try await waitUntilSaved(nil) }
}
