import Foundation
import RemoteRouting
import StoreCore
import StoreFiles
import StoreOutbox

/// A change that survives: the user stars a repository.
struct Star: Command, Hashable {
    static let name = "star"
    var repository: String
}

/// The data of the app: the repositories, and the stars that the origin does not have yet.
struct StarList: Sendable {
    /// All repositories, page by page.
    let repositories: PaginationStore<UnitParam, Repository>
    let outbox: Outbox

    /// Opens the data of the last run; shows the stars that are still to be sent.
    init(api: RemoteHost, directory: URL) async throws {
        repositories = PaginationStore(
            // Several runs of the program may use the directory at the same time, like an app and its extension.
            cacher: FileCacher(directory: directory.appending(path: "repositories"), sharing: .processes),
            fetcher: api.pages { (_: UnitParam) in StarsAPI.repositories },
            // A run shows the pages that earlier runs have loaded.
            policy: StorePolicy(refreshScope: .loadedPages))
        outbox = try Outbox(directory: directory.appending(path: "outbox"))
        await outbox.register(
            Star.self, patching: repositories, element: \.repository,
            // A star that waits does not hold up those of other repositories.
            lane: \.repository,
            patch: { _, repository in
                // The page may have been fetched after the origin has performed the command.
                guard !repository.isStarred else { return }
                repository.isStarred = true
                repository.stars += 1
            },
            perform: api.delivery {
                StarsAPI.star(repository: $0.repository)
            } explaining: { failure in
                failure.problem?.title ?? failure.notice
            })
    }

    /// Stars a repository; returns when the star is on disk and visible. Sends a refused star again.
    ///
    /// - Returns: Whether the repository was not starred before.
    func star(_ repository: String) async throws -> Bool {
        if let known = await known {
            guard let entry = known.first(where: { $0.name == repository }) else {
                throw UnknownRepository(name: repository, known: known.map(\.name))
            }
            if entry.isStarred { return false }
        }
        for command in await outbox.commands(limit: .max) where (try? command.value(as: Star.self))?.repository == repository {
            return command.status == .failed ? try await outbox.retry(command.id) : false
        }
        try await outbox.submit(Star(repository: repository))
        return true
    }

    /// Loads the next page of the list.
    func more() async -> PageRequest {
        // The first run has no list yet.
        _ = await repositories.flowable.getData()
        let request = await repositories.flowable.requestNextData()
        // The list was out of date, for example after a star, so the request has fetched the list first.
        if case .notLoadedYet = request { return await repositories.flowable.requestNextData() }
        return request
    }

    /// Sends all refused stars again.
    ///
    /// - Returns: Whether there are any.
    func retry() async throws -> Bool {
        let refused = await refused
        for command in refused { try await outbox.retry(command.id) }
        return !refused.isEmpty
    }

    /// Gives up all refused stars.
    ///
    /// - Returns: Whether there are any.
    func discard() async throws -> Bool {
        let refused = await refused
        for command in refused { try await outbox.discard(command.id) }
        return !refused.isEmpty
    }

    private var refused: [OutboxCommand] {
        get async { await outbox.commands(limit: .max).filter { $0.status == .failed } }
    }

    /// The repositories of the last run, valid or not, or else those of the origin; `nil` if there are none.
    private var known: [Repository]? {
        get async {
            do {
                return try await repositories.flowable.requireData(from: .cache)
            } catch {
                if let stale = (error as? StoreError)?.staleContent as? [Repository] { return stale }
                // Without a list, a star that the origin has would be given again.
                return await repositories.flowable.getData()
            }
        }
    }

    /// A name that is not in the loaded pages.
    struct UnknownRepository: Error, CustomStringConvertible {
        var name: String
        var known: [String]

        var description: String {
            "the loaded pages have no repository \(name); they have \(known.joined(separator: ", ")); stars more loads another page"
        }
    }
}
