import Foundation
import LoopbackOrigin
import Synchronization

/// The origin of the example: an API on 127.0.0.1 that performs each star once, however often it is sent.
///
/// A performed star is a file with the idempotency key and the repository as its name. The key and the effect are kept in one step, even if
/// the program is killed, or runs several times at once.
final class StarOrigin: Sendable {
    /// The behavior, which may change at any time.
    struct Behavior: Sendable {
        /// Whether archived repositories accept stars.
        var isLenient = false
        /// Whether the origin ignores idempotency keys.
        var isForgetful = false
        /// The time between a star and its response.
        var delay = Duration.zero
    }

    /// The files of the origin have no place.
    struct UnusableDirectory: Error, CustomStringConvertible {
        var path: String
        var reason: any Error

        var description: String { "cannot make \(path): \(reason.localizedDescription); choose another directory with --directory" }
    }

    private let origin: LoopbackOrigin
    private let directory: URL
    private let behavior: Mutex<Behavior>

    var url: URL { origin.url }

    init(directory: URL, _ behavior: Behavior = Behavior()) throws {
        do {
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        } catch let error as CocoaError {
            throw UnusableDirectory(path: directory.path(percentEncoded: false), reason: error.underlying ?? error)
        }
        self.directory = directory
        self.behavior = Mutex(behavior)
        origin = try LoopbackOrigin()
        origin.on(.get, "/repositories") { [weak self] request in
            .pages(of: self?.repositories ?? [], for: request, size: 4).tagged().revalidated(by: request)
        }
        origin.on(.post, "/repositories/:repository/star") { [weak self] request in
            await self?.star(request.parameter("repository"), request.headers["Idempotency-Key"]) ?? .status(503)
        }
    }

    func goDown() { origin.goDown() }

    func stop() { origin.stop() }

    func comeBack() throws { try origin.comeBack() }

    func change(_ body: (inout Behavior) -> Void) { behavior.withLock { body(&$0) } }

    /// The idempotency keys of the requests to star a repository.
    func keys(for repository: String) -> [String] {
        origin.requests(to: Self.path(of: repository)).compactMap { $0.headers["Idempotency-Key"] }
    }

    /// Waits until a number of requests to star a repository have arrived, and are performed or refused.
    func arrived(_ count: Int, _ repository: String, performed: Int) async throws {
        try await origin.waitForRequests(count: count, to: Self.path(of: repository))
        while stars(of: repository) < performed { try await Task.sleep(for: .milliseconds(1)) }
    }

    // MARK: Stars

    /// The number of stars of the user that were performed.
    func stars(of repository: String) -> Int { performed.count { $0.hasSuffix(" \(repository)") } }

    private var performed: [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: directory.path(percentEncoded: false))) ?? []
    }

    private var repositories: [Repository] {
        let performed = performed
        return Self.names.enumerated().map { number, name in
            let own = performed.count { $0.hasSuffix(" \(name)") }
            return Repository(name: name, stars: 70_000 / (number * 20 + 1) + own, isStarred: own > 0)
        }
    }

    private func star(_ name: String, _ field: String?) async -> LoopbackOrigin.Response {
        let behavior = behavior.withLock { $0 }
        // The field is a quoted string.
        guard let key = UUID(uuidString: (field ?? "").replacing("\"", with: "")) else {
            return .problem(400, "an Idempotency-Key is missing")
        }
        guard Self.names.contains(name) else { return .problem(404, "there is no repository \(name)") }
        guard name != Self.archived || behavior.isLenient else { return .problem(422, "\(name) is archived") }
        guard performed.allSatisfy({ !$0.hasPrefix("\(key) ") || $0 == "\(key) \(name)" }) else {
            return .problem(422, "the key belongs to another star")
        }
        let id = behavior.isForgetful ? UUID() : key
        let file = directory.appending(path: "\(id) \(name)")
        do {
            try Data().write(to: file, options: .withoutOverwriting)
        } catch CocoaError.fileWriteFileExists {
            // Performed before; the response is the same.
        } catch {
            return .problem(503, "the star cannot be kept: \(error.localizedDescription)")
        }
        // The sleep throws when the client has disconnected; the response is then discarded.
        try? await Task.sleep(for: behavior.delay)
        return .status(204)
    }

    private static func path(of repository: String) -> String { "/repositories/\(repository)/star" }

    private static let names = [
        "swift", "swift-docc", "swift-syntax", archived, "swift-format", "swift-driver", "swift-nio", "swift-log", "swift-crypto",
        "swift-cmark", "swift-lmdb", "swift-build",
    ]
    private static let archived = "swift-web"
}
