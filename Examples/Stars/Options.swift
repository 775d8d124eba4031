import Foundation
import RemoteRouting

/// The options of the command line.
struct Options {
    enum Action: Hashable {
        case show, more, add(String), retry, discard, story
    }

    var action = Action.show
    /// The address of an origin in another process; `nil` for an origin in this one.
    var origin: URL?
    var isOffline = false
    var behavior = StarOrigin.Behavior()
    /// The longest time that a run waits for the origin.
    var patience = Duration.seconds(5)
    var directory = Options.defaultDirectory
    var isFresh = false
    var isPlain = false
    var helps = false

    struct Mistake: Error, CustomStringConvertible {
        var description: String
    }

    static let usage = """
        usage: stars [show | more | add <repository> | retry | discard | story]
                     [--offline] [--lenient] [--slow <seconds>] [--forgetful]
                     [--wait <seconds>] [--origin <url>] [--directory <path>]
                     [--fresh] [--plain]

        Shows repositories and lets you star them, also offline: a star is kept in an
        outbox until the origin has it. The origin is part of the program. Try:

          stars                            the whole story, in seconds
          stars add swift-docc --offline   the star is shown, and waits
          stars show --offline             the program was quit: it still waits
          stars show                       the origin is up: it is sent, once
          stars add swift-web              the origin refuses it, and says why
          stars retry --lenient            the refused star is sent again

          show                 shows the repositories; the default with an option
          more                 shows the next page, too, in this run and later ones
          add <repository>     stars a repository
          retry                sends refused stars again
          discard              gives up refused stars
          story                runs all of this with an origin that fails, and programs
                               that are killed; checks the result; the default
          --offline            the origin is down
          --lenient            the origin accepts stars for archived repositories
          --slow <seconds>     the origin takes that long to respond, 1 to 3600
          --forgetful          the origin ignores the idempotency key
          --wait <seconds>     waits that long for the origin, 1 to 3600; default 5
          --origin <url>       the address of another program's origin
          --directory <path>   the directory of the list, the outbox and the origin;
                               default \(defaultDirectory.path(percentEncoded: false))
          --fresh              removes what earlier runs have written
          --plain              plain lines, as for output that is not a terminal

        exit codes: 0 nothing waits; the story's checks hold. 1 a star waits; a check of
        the story fails. 2 a star was refused. 3 the directory cannot be used.
        64 invalid arguments.
        """

    init(_ arguments: some Sequence<String>) throws {
        var rest = Array(arguments)[...]
        func value(of option: String) throws -> String {
            guard let value = rest.popFirst(), !value.isEmpty else { throw Mistake(description: "\(option) needs a value") }
            return value
        }
        func seconds(of option: String) throws -> Duration {
            let text = try value(of: option)
            guard let seconds = Int(text), (1...3_600).contains(seconds) else {
                throw Mistake(description: "\(option) \(text): must be a number from 1 to 3600")
            }
            return .seconds(seconds)
        }
        var words: [String] = []
        var given: [String] = []
        while let argument = rest.popFirst() {
            if argument.hasPrefix("-") { given.append(argument) }
            switch argument {
            case "--offline": isOffline = true
            case "--lenient": behavior.isLenient = true
            case "--forgetful": behavior.isForgetful = true
            case "--slow": behavior.delay = try seconds(of: argument)
            case "--wait": patience = try seconds(of: argument)
            case "--origin":
                let text = try value(of: argument)
                guard let url = URL(string: text), (try? HostConfiguration(url: url)) != nil else {
                    throw Mistake(description: "\(argument) \(text): must be an address such as http://127.0.0.1:8080")
                }
                origin = url
            case "--directory": directory = URL(filePath: try value(of: argument), directoryHint: .isDirectory)
            case "--fresh": isFresh = true
            case "--plain": isPlain = true
            case "--help", "-h": helps = true
            case _ where argument.hasPrefix("-"): throw Mistake(description: "unknown option \(argument)")
            default: words.append(argument)
            }
        }
        switch (words.first, words.count) {
        // The first run of a newcomer is the story; a run with options is one of its steps.
        case (nil, _): action = given.allSatisfy { $0 == "--plain" } ? .story : .show
        case ("show", 1): action = .show
        case ("more", 1): action = .more
        case ("add", 2): action = .add(words[1])
        case ("retry", 1): action = .retry
        case ("discard", 1): action = .discard
        case ("story", 1): action = .story
        case ("add", _): throw Mistake(description: "add needs one repository")
        default: throw Mistake(description: "unknown command \(words.joined(separator: " "))")
        }
        let ofRuns = ["--offline", "--wait", "--origin", "--directory", "--fresh"]
        if action == .story, let option = given.first(where: { ofRuns.contains($0) }) {
            throw Mistake(description: "\(option) has no effect on the story, which has its own origin and directory")
        }
        if origin != nil, let option = given.first(where: { ["--offline", "--lenient", "--slow", "--forgetful"].contains($0) }) {
            throw Mistake(description: "\(option) concerns the origin of this program; leave out --origin")
        }
    }

    /// Changes that are not sent yet exist nowhere else, so the system must not purge them.
    private static var defaultDirectory: URL {
        let support = FileManager.default.urls(for: .applicationSupportDirectory, in: .userDomainMask).first
        return (support ?? FileManager.default.temporaryDirectory).appending(path: "storehouse-stars", directoryHint: .isDirectory)
    }
}
