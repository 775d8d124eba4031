internal import Foundation
internal import StoreCore
import StoreCoreTesting

// Types that the examples use and do not show: an API, a screen.

/// A scripted origin of users.
final class UserAPI: Sendable {
    let script: ScriptedFetcher<Int, User>
    private let whileRenaming: @Sendable () async throws -> Void

    init(
        _ script: ScriptedFetcher<Int, User> = ScriptedFetcher { .success(User(id: $0.param, name: "Ada")) },
        whileRenaming: @escaping @Sendable () async throws -> Void = {}
    ) {
        self.script = script
        self.whileRenaming = whileRenaming
    }

    func user(_ id: Int) async throws -> User {
        guard case .modified(let user, _, _) = try await script.fetch(param: id, revalidating: nil) else { throw Offline() }
        return user
    }

    /// Returns after `whileRenaming`.
    func rename(_ id: Int, to name: String) async throws { try await whileRenaming() }
}

/// The error of an unreachable origin.
struct Offline: Error, CustomStringConvertible {
    var description: String { "offline" }
}

/// A screen that records its content.
@MainActor
final class Screen {
    let shown = Printed()

    func show(_ user: User?, isLoading: Bool = false, error: (any Error)? = nil) {
        shown.add("\(user?.name ?? "nothing")\(isLoading ? ", loading" : "")\(error.map { ", \($0)" } ?? "")")
    }
}

/// Runs a story that prints to a page of its own.
func tell(_ story: (_ printed: Printed) async throws -> [[String]]) async throws -> [[String]] {
    let printed = Printed()
    return try await Printed.$page.withValue(printed) { try await story(printed) }
}
