public import Foundation
internal import Synchronization

/// A group of stores that belong together, such as everything of the user who is signed in.
///
/// ```swift
/// let scope = CacheScope(directory: cachesDirectory.appending(path: userID))
/// let users = Store(cacher: MemoryCacher<User.ID, User>(), fetcher: UserFetcher(), scope: scope)
/// …
/// try await scope.clear()                                         // signing out leaves nothing behind
/// ```
///
/// The scope holds its stores weakly: it keeps none of them alive.
public final class CacheScope: Sendable {
    /// The directory under which the group's cachers keep their files; `nil` where all is in memory.
    public let directory: URL?

    /// Guards the members; those whose store is gone are swept out when one is added.
    private let members = Mutex<[Member]>([])

    /// Makes an empty group.
    ///
    /// - Parameter directory: The directory under which the group's cachers keep their files.
    public init(directory: URL? = nil) {
        self.directory = directory
    }

    /// The directory for one kind of data within the scope's.
    ///
    /// - Parameter name: The name of the kind; one path component.
    /// - Returns: The directory's URL; `nil` where the scope has none. It is not created.
    public func directory(named name: String) -> URL? {
        directory?.appending(path: name, directoryHint: .isDirectory)
    }

    /// Clears every store of the group, then removes what is left in its directory from stores that are not there now.
    ///
    /// What is fetched for the old data and still under way when this is called reaches neither observers nor cachers.
    ///
    /// - Throws: The first error, after everything else has been cleared all the same.
    public func clear() async throws {
        let clears = members.withLock { $0.compactMap { $0.clear() } }
        var firstError: (any Error)?
        for clear in clears {
            do { try await clear() } catch { firstError = firstError ?? error }
        }
        if let directory {
            do { try await removeRecords(in: directory) } catch { firstError = firstError ?? error }
        }
        if let firstError { throw firstError }
    }

    func add<Param, Content>(_ engine: StoreEngine<Param, Content>) {
        let member = Member { [weak engine] in
            guard let engine else { return nil }
            return { try await engine.clearAll() }
        }
        members.withLock { members in
            members.removeAll { $0.clear() == nil }
            members.append(member)
        }
    }

    @concurrent
    private func removeRecords(in directory: URL) async throws {
        try RecordFiles.removeAll(in: Directory(path: directory.standardizedFileURL.path(percentEncoded: false)), depth: .tree)
    }

    /// A store, held weakly; gives what clears it, or `nil` once it is gone.
    private struct Member: Sendable {
        let clear: @Sendable () -> (@Sendable () async throws -> Void)?
    }
}
