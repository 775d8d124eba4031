public import Foundation

/// A group of stores that belong together, such as everything of the user who is signed in.
///
/// ```swift
/// let scope = CacheScope(directory: cachesDirectory.appending(path: userID))
/// let files = FileCacher<User.ID, User>(directory: scope.directory(named: "users"))
/// let users = Store(cacher: TieredCacher(over: files), fetcher: UserFetcher(), scope: scope)
/// ```
///
/// Signing out then leaves nothing behind:
///
/// ```swift
/// try await scope.clear()
/// ```
///
/// The scope holds its stores weakly: it keeps none of them alive.
public final class CacheScope: Sendable {
    /// The directory under which the group's cachers keep their files.
    public let directory: URL

    /// Guards the members; those whose store is gone are swept out when one is added.
    private let members = Lock<[Member]>([])

    /// Makes an empty group.
    ///
    /// - Parameter directory: The directory under which the group's cachers keep their files; by default one of its own among the
    ///   system's temporary files. It is not created before something is saved in it.
    public init(directory: URL? = nil) {
        self.directory =
            directory
            ?? FileManager.default.temporaryDirectory.appending(path: "scope-\(UUID().uuidString)", directoryHint: .isDirectory)
    }

    /// The directory for one kind of data within the scope's.
    ///
    /// - Parameter name: The name of the kind; one path component.
    /// - Returns: The directory's URL. It is not created.
    public func directory(named name: String) -> URL {
        directory.appending(path: name, directoryHint: .isDirectory)
    }

    /// Clears every store of the group, then removes the records that stores which are not there now have left in its directory.
    ///
    /// Those are the records in the directory itself and in the directories directly below it. A key that is observed is fetched anew: end
    /// the observation first where nothing must come back.
    ///
    /// What is fetched for the old data and still under way when this is called reaches neither observers nor cachers.
    ///
    /// - Throws: The first error, after everything else is cleared. `CancellationError` if the task is canceled; everything is cleared all
    ///   the same, and only the wait for the cachers is cut short.
    public func clear() async throws {
        // All at once: while one cacher is slow, what is under way for the old data must not get through in the other stores.
        var firstError = await failure { try await $0.clear() }
        do { try await Self.removeRecords(in: directory) } catch { firstError = firstError ?? error }
        try Task.checkCancellation()
        if let firstError { throw firstError }
    }

    /// Waits until the cachers of all stores of the group have everything that was accepted before: for a program that is about to end.
    ///
    /// All stores are waited for at once, each as ``Store/waitUntilSaved()`` says.
    ///
    /// - Throws: The first error, after everything else is saved all the same: ``StoreError/Code/cacherFailed`` where a cacher failed.
    ///   `CancellationError` as soon as the task is cancelled, which does no save any harm.
    public func waitUntilSaved() async throws {
        let firstError = await failure { try await $0.waitUntilSaved() }
        if let firstError { throw firstError }
    }

    /// Does something with every store of the group at once.
    ///
    /// - Returns: The first error, when all have ended.
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

    /// Adds a member, which the scope does not keep alive.
    package func add(_ object: some CacheScopeMember) {
        let member = Member { [weak object] in object }
        members.withLock { members in
            members.removeAll { $0.object() == nil }
            members.append(member)
        }
    }

    /// Removes the files of stores that are not there now, such as one that was not opened since the last start.
    @concurrent
    private static func removeRecords(in directory: URL) async throws {
        try RecordFiles.removeAll(in: Directory(path: directory.standardizedFileURL.path(percentEncoded: false)), depth: .children)
    }

    /// A store or another member, held weakly.
    private struct Member: Sendable {
        let object: @Sendable () -> (any CacheScopeMember)?
    }
}

/// An object whose data belongs to a ``CacheScope``: the engine of a store, the cookies of a host.
package protocol CacheScopeMember: AnyObject, Sendable {
    /// Forgets everything, in memory and in the cacher.
    ///
    /// - Throws: The cacher's failure.
    func clear() async throws

    /// Waits until the cacher has everything that was accepted before.
    ///
    /// - Throws: The cacher's failure, `CancellationError`.
    func waitUntilSaved() async throws
}

extension StoreEngine: CacheScopeMember {
    package func clear() async throws { try await clearAll() }

    package func waitUntilSaved() async throws { try await waitUntilSaved(nil) }
}
