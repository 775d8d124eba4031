import Foundation
import RemoteRouting
import StoreCore
import StoreOutbox

/// `swift run stars`: repositories to star, also offline.
///
/// An example of changes that survive. `StarList` has the store and the outbox, `StarRow` marks what waits or was refused, `StarOrigin`
/// shows what exactly once needs from an origin, and `Story` runs the program as a user would, and kills it.
@main
struct Stars {
    @concurrent
    static func main() async {
        do {
            let options = try Options(CommandLine.arguments.dropFirst())
            if options.helps { return print(Options.usage) }
            if options.action == .story { exit(try await Story(options).run() ? 0 : 1) }
            exit(try await run(options))
        } catch let mistake as Options.Mistake {
            Screen.complain("\(mistake); see stars --help")
            exit(64)
        } catch let unknown as StarList.UnknownRepository {
            Screen.complain("\(unknown)")
            exit(64)
        } catch {
            Screen.complain("\(error)")
            exit(3)
        }
    }

    /// Runs the program once.
    ///
    /// - Returns: The exit code.
    private static func run(_ options: Options) async throws -> Int32 {
        if options.isFresh {
            // Only what the program has written: the directory may have other files.
            for name in ["repositories", "outbox", "origin"].map({ options.directory.appending(path: $0) })
            where FileManager.default.fileExists(atPath: name.path(percentEncoded: false)) {
                try FileManager.default.removeItem(at: name)
            }
        }
        guard let address = options.origin else {
            let origin = try StarOrigin(directory: options.directory.appending(path: "origin"), options.behavior)
            defer { origin.stop() }
            if options.isOffline { origin.goDown() }
            return try await run(options, origin.url)
        }
        return try await run(options, address)
    }

    private static func run(_ options: Options, _ origin: URL) async throws -> Int32 {
        let list = try await StarList(api: StarsAPI.host(origin), directory: options.directory)
        let screen = Screen(isPlain: options.isPlain)
        screen.write("")
        switch options.action {
        case .add(let repository):
            if try await !list.star(repository) { screen.write("  \(repository) is starred already") }
        case .more:
            switch await list.more() {
            case .noPage: screen.write("  the list has no further page")
            case .failed, .notLoadedYet: screen.write("  ▲ the next page could not be fetched")
            case .loaded, .joined, .superseded: break
            }
        case .retry: if try await !list.retry() { screen.write("  no star was refused") }
        case .discard: if try await !list.discard() { screen.write("  no star was refused") }
        case .show, .story: break
        }
        let shown = try await Session(list: list, screen: screen).run(patience: options.patience)
        screen.write("")
        return shown.pendingCount > 0 ? 1 : shown.failedCount > 0 ? 2 : 0
    }
}
