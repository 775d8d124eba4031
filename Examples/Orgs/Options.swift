import Foundation

/// What the command line says.
struct Options {
    var host: String?
    var organisation = "swiftlang"
    var user = "octocat"
    var pages = 3
    var middle = 2
    var isPlain = false
    var isFresh = false
    var helps = false
    var directory = Options.defaultDirectory

    struct Mistake: Error, CustomStringConvertible {
        var description: String
    }

    static let usage = """
        usage: orgs [<organisation>] [--user <login>] [--pages <count>] [--middle <page>] [--host <name>] [--directory <path>]
                    [--fresh] [--plain]

        Shows organisations, the repositories of one of them page by page and from the middle in both directions, a user, and the API's
        description of itself. Without --host it talks to an origin inside its own process. Run it twice: the second run starts from
        disk and revalidates with 304s.

          --host api.github.com   the real thing; no token is needed for a few requests an hour
          --directory <path>      where answers are kept; default \(defaultDirectory.path(percentEncoded: false))
          --fresh                 forgets what was kept
          --pages <count>         how many pages of repositories are shown, 1 to 100; 3 without it
          --middle <page>         the page at which the list in both directions starts, 1 to 100; 2 without it
          --user <login>          who is shown; octocat without it
          --plain                 plain lines, as where the output is no terminal

        exit codes: 0 all was shown, 1 something could not be had, 3 the directory cannot be used, 64 called wrongly.
        """

    init(_ arguments: some Sequence<String>) throws {
        var rest = Array(arguments)[...]
        func value(of option: String) throws -> String {
            guard let value = rest.popFirst() else { throw Mistake(description: "\(option) needs a value") }
            return value
        }
        func number(of option: String) throws -> Int {
            let text = try value(of: option)
            guard let number = Int(text), (1...100).contains(number) else {
                throw Mistake(description: "\(option) \(text): a number from 1 to 100 is needed")
            }
            return number
        }
        while let argument = rest.popFirst() {
            switch argument {
            case "--host": host = try value(of: argument)
            case "--user": user = try value(of: argument)
            case "--directory": directory = URL(filePath: try value(of: argument), directoryHint: .isDirectory)
            case "--fresh": isFresh = true
            case "--plain": isPlain = true
            case "--help", "-h": helps = true
            case "--pages": pages = try number(of: argument)
            case "--middle": middle = try number(of: argument)
            case _ where argument.hasPrefix("-"): throw Mistake(description: "unknown option \(argument)")
            default: organisation = argument
            }
        }
    }

    private static var defaultDirectory: URL {
        let caches = FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask).first ?? FileManager.default.temporaryDirectory
        return caches.appending(path: "storehouse-orgs")
    }
}
