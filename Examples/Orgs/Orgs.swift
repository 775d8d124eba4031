import Foundation
import RemoteRouting

/// Organisations, their repositories in one and in two directions, a user, and the API's own description, shaped like GitHub's API.
///
/// How an app is laid out on Storehouse: `Remote` describes routes and what they answer, `Repositories` makes stores of them,
/// `Screens` shows what the stores publish. `Demo` is an origin to run against where there is no network.
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

    /// Shows everything, and whether all of it came.
    private static func run(_ options: Options) async throws -> Bool {
        let terminal = Terminal(isPlain: options.isPlain)
        let demo = try options.host == nil ? DemoOrigin() : nil
        let configuration =
            demo.map { HostConfiguration("127.0.0.1", scheme: .http, port: Int($0.port)) } ?? HostConfiguration(options.host ?? "")
        let traffic = Traffic()
        let api = GitHub.host(configuration).logging(to: traffic.log(to: terminal))
        // By host and not by port: a demo that runs a second time finds what the first one kept.
        let directory = options.directory.appending(path: options.host ?? "demo")
        if options.isFresh, FileManager.default.fileExists(atPath: directory.path(percentEncoded: false)) {
            try FileManager.default.removeItem(at: directory)
        }
        let repository = GitHubRepository(api: api, directory: directory)

        terminal.title(
            "Organisations on \(options.host ?? "a host inside this process")", "kept in \(directory.path(percentEncoded: false))")
        let screens = Screens(repository: repository, terminal: terminal)
        let hasOrganisations = try await screens.organisations()
        let hasRepositories = try await screens.repositories(of: options.organisation, pages: options.pages)
        let hasMiddle = try await screens.repositories(around: RepositoryPage(organisation: options.organisation, number: options.middle))
        let hasUser = try await screens.user(options.user)
        let hasMeta = try await screens.meta()
        terminal.summary(traffic.summary)
        return hasOrganisations && hasRepositories && hasMiddle && hasUser && hasMeta
    }
}
