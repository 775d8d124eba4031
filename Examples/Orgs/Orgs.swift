import Foundation
import Inspector
import RemoteRouting
import StoreCore

/// Shows organizations, their repositories in one and in two directions, a user, the API's metadata, and one star in three places, shaped
/// like GitHub's API.
///
/// An example of an app's layout on Storehouse. `Remote` describes routes and their responses, `Repositories` creates stores from them, and
/// `Screens` shows the states of the stores. `Demo` is an origin for runs without a network.
@main
struct Orgs {
    @concurrent
    static func main() async {
        do {
            let options = try Options(CommandLine.arguments.dropFirst())
            if options.helps { return print(Options.usage) }
            exit(try await run(options) ? 0 : 1)
        } catch let mistake as Options.Mistake {
            Terminal.complain("\(mistake); see orgs --help")
            exit(64)
        } catch {
            Terminal.complain("\(error)")
            exit(3)
        }
    }

    private static func show(_ repository: GitHubRepository, in inspector: Inspector) {
        inspector.attach(repository.organizations, name: "organizations")
        inspector.attach(repository.repositories, name: "repositories")
        inspector.attach(repository.repositoriesAround, name: "around")
        inspector.attach(repository.search, name: "search")
        inspector.attach(repository.details, name: "details")
        inspector.attach(repository.users, name: "users")
        inspector.attach(repository.meta, name: "meta")
    }

    /// Observes some of the content until the process is interrupted, so that the page has something to show.
    private static func stay(_ inspector: Inspector, _ repository: GitHubRepository, _ options: Options) async throws {
        print("The inspector's page: \(inspector.url)\nPress Control-C to end.")
        fflush(nil)
        let user = Task { for await _ in repository.users[options.user].publish() {} }
        defer { user.cancel() }
        for await _ in repository.repositories[options.organization].publish() {}
    }

    /// Runs all screens and returns whether all of them loaded.
    private static func run(_ options: Options) async throws -> Bool {
        let terminal = Terminal(isPlain: options.isPlain)
        let demo = try options.host == nil ? DemoOrigin() : nil
        let configuration = options.host ?? HostConfiguration("127.0.0.1", scheme: .http, port: demo.map { Int($0.port) })
        let traffic = Traffic()
        let inspector = options.inspects ? try await Inspector.start() : nil
        let host = GitHub.host(configuration).logging(to: traffic.log(to: terminal))
        let api = inspector?.attach(host) ?? host
        // The demo has another port in each run, and finds its records again.
        let name = options.host.map { host in host.port.map { "\(host.host)-\($0)" } ?? host.host } ?? "demo"
        let directory = options.directory.appending(path: name)
        if options.isFresh, FileManager.default.fileExists(atPath: directory.path(percentEncoded: false)) {
            try FileManager.default.removeItem(at: directory)
        }
        let repository = GitHubRepository(api: api, directory: directory)
        if let inspector { show(repository, in: inspector) }

        terminal.title(
            "Organizations on \(options.host?.host ?? "a host inside this process")", "stored in \(directory.path(percentEncoded: false))")
        let screens = Screens(repository: repository, terminal: terminal) { ($0 as? RemoteError)?.notice ?? "\($0)" }
        let hasOrganizations = try await screens.organizations()
        let hasRepositories = try await screens.repositories(of: options.organization, pages: options.pages)
        let hasMiddle = try await screens.repositories(around: RepositoryPage(organization: options.organization, number: options.middle))
        let hasUser = try await screens.user(options.user)
        let hasMeta = try await screens.meta()
        // Other hosts want a token for a star.
        let hasStar = if demo == nil { true } else { try await screens.star(in: options.organization) }
        terminal.summary(traffic.summary)
        if let inspector { try await stay(inspector, repository, options) }
        return hasOrganizations && hasRepositories && hasMiddle && hasUser && hasMeta && hasStar
    }
}
