import Foundation
import RemoteRouting

/// The options of the command line.
struct Options {
    /// The host of the API; `nil` for an origin inside this process.
    var host: HostConfiguration?
    var organization = "swiftlang"
    var user = "octocat"
    var pages = 3
    var middle = 2
    var isPlain = false
    var isFresh = false
    var inspects = false
    var helps = false
    var directory = Options.defaultDirectory

    struct Mistake: Error, CustomStringConvertible {
        var description: String
    }

    static let usage = """
        usage: orgs [<organization>] [--user <login>] [--pages <count>]
                    [--middle <page>] [--host <name>] [--directory <path>] [--fresh]
                    [--plain] [--inspect]

        Shows organizations, the repositories of one of them page by page and from the
        middle in both directions, a user, and the API's metadata. Without --host, an
        origin inside the process responds, and a star shows in a list, a search and
        a detail. Run it twice: the second run starts from disk and revalidates with
        304s.

          --host api.github.com   GitHub itself; a few requests an hour need no token
          --directory <path>      the directory of the records; default
                                  \(defaultDirectory.path(percentEncoded: false))
          --fresh                 removes the records of earlier runs
          --pages <count>         the number of pages of repositories, 1 to 100;
                                  default 3
          --middle <page>         the first page of the list in both directions, 1 to
                                  100; default 2
          --user <login>          the user to show; default octocat
          --plain                 plain lines, as for output that is not a terminal
          --inspect               prints the address of a page that shows the stores,
                                  and runs until interrupted

        exit codes: 0 all screens loaded, 1 a screen failed to load, 3 the directory
        cannot be used, 64 invalid arguments.
        """

    init(_ arguments: some Sequence<String>) throws {
        var rest = Array(arguments)[...]
        func value(of option: String) throws -> String {
            guard let value = rest.popFirst(), !value.isEmpty else { throw Mistake(description: "\(option) needs a value") }
            return value
        }
        func number(of option: String) throws -> Int {
            let text = try value(of: option)
            guard let number = Int(text), (1...100).contains(number) else {
                throw Mistake(description: "\(option) \(text): must be a number from 1 to 100")
            }
            return number
        }
        while let argument = rest.popFirst() {
            switch argument {
            case "--host":
                let name = try value(of: argument)
                // A host names a directory that --fresh removes, so it must not be a path.
                guard let url = URL(string: name.contains("://") ? name : "https://\(name)"), let valid = try? HostConfiguration(url: url)
                else { throw Mistake(description: "\(argument) \(name): must be a host such as api.github.com") }
                host = valid
            case "--user": user = try value(of: argument)
            case "--directory": directory = URL(filePath: try value(of: argument), directoryHint: .isDirectory)
            case "--fresh": isFresh = true
            case "--plain": isPlain = true
            case "--inspect": inspects = true
            case "--help", "-h": helps = true
            case "--pages": pages = try number(of: argument)
            case "--middle": middle = try number(of: argument)
            case _ where argument.hasPrefix("-"): throw Mistake(description: "unknown option \(argument)")
            case "": throw Mistake(description: "the organization is empty")
            default: organization = argument
            }
        }
    }

    private static var defaultDirectory: URL {
        let caches = FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask).first ?? FileManager.default.temporaryDirectory
        return caches.appending(path: "storehouse-orgs")
    }
}
