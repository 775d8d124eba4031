// A client module with the main actor as its default isolation, as in new app targets. Compiling this file is the test.

internal import Foundation
public import StoreCore
internal import StoreFiles

/// A user as the client stores it.
nonisolated public struct User: Hashable, Sendable {
    /// The user's name.
    public var name: String

    /// Makes a user.
    public init(name: String) {
        self.name = name
    }
}

/// Saved in files. Without `nonisolated`, its `Codable` conformance would be isolated to the main actor and the cacher could not use it.
nonisolated struct Address: Codable, Hashable {
    var street: String
}

/// Creates a store of addresses in files with a closure as its fetcher.
func addresses(in directory: URL) -> Store<Int, Address> {
    Store(cacher: FileCacher<Int, Address>(directory: directory)) { Address(street: "\($0), Analytical Street") }
}

/// A fetcher runs in the store's own task, not on the main actor. The protocol implies `nonisolated`; writing it is harmless.
nonisolated public struct UserFetcher: Fetcher {
    /// Makes a fetcher.
    public init() {}

    /// Fetches a user.
    public func fetch(param id: Int) async throws -> User {
        User(name: "user \(id)")
    }
}

/// A revalidating fetcher.
nonisolated struct CheckedUserFetcher: RevalidatingFetcher {
    func fetch(param id: Int, revalidating validator: Validator?) async throws -> FetchResult<User> {
        validator == nil ? .modified(User(name: "user \(id)")) : .notModified()
    }
}

/// A fetcher of pages.
nonisolated struct UserListFetcher: TwoWayPaginationFetcher {
    func fetch(param list: String) async throws -> Page<User> { Page([], nextKey: "2") }
    func fetchNext(nextKey: String, param list: String) async throws -> Page<User> { Page([]) }
    func fetchPrev(prevKey: String, param list: String) async throws -> Page<User> { Page([]) }
}

/// A cacher that stores nothing; a separate actor would work too.
nonisolated struct ForgetfulUserCacher: Cacher {
    func load(param id: Int) async throws -> CacheRecord<User>? { nil }
    func save(_ record: CacheRecord<User>, param id: Int) async throws {}
    func remove(param id: Int) async throws {}
    func removeAll() async throws {}
}

/// The model of a screen, isolated to the main actor by default.
public final class UserModel {
    /// The names that were shown, one for each state.
    public private(set) var shown: [String] = []

    /// Makes a model.
    public init() {}

    /// Follows the states of a user until the task is canceled.
    public func follow(_ states: LoadingStateSequence<User>) async {
        for await state in states {
            switch state {
            case .loading(let stale): shown.append(stale.map { "\($0.name)…" } ?? "…")
            case .completed(let user, next: _, prev: _): shown.append(user.name)
            case .error(let error, content: _): shown.append("\(error)")
            }
        }
    }
}
