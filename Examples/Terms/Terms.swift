import Foundation

/// `swift run terms`: an app starts with its bundled terms, finds newer ones, and stays closed until the user has accepted them.
@main
struct Terms {
    static func main() async {
        var options = Gate.Options()
        var isPlain = false
        if CommandLine.arguments.dropFirst().first == "publish" { publish(Array(CommandLine.arguments.dropFirst(2))) }
        var unknown: [String] = []
        for argument in CommandLine.arguments.dropFirst() {
            switch argument {
            case "--accept": options.accepts = true
            case "--offline": options.isOffline = true
            case "--fresh": options.isFresh = true
            case "--plain": isPlain = true
            case "--help", "-h":
                print(help)
                exit(0)
            default: unknown.append(argument)
            }
        }
        let screen = Screen(isPlain: isPlain)
        guard unknown.isEmpty else {
            screen.complain("unknown option \(unknown.joined(separator: " ")); see terms --help")
            exit(64)
        }
        do {
            try await Gate(screen: screen, options: options).open()
        } catch {
            screen.complain("cannot open the gate: \(error)")
            exit(1)
        }
    }

    /// Runs `terms publish`, and ends.
    private static func publish(_ arguments: [String]) -> Never {
        let screen = Screen(isPlain: arguments.contains("--plain"))
        if arguments.contains("--help") || arguments.contains("-h") {
            print(PublishCommand.usage)
            exit(0)
        }
        do {
            exit(try PublishCommand(arguments.filter { $0 != "--plain" }).run(screen))
        } catch {
            screen.complain("\(error); see terms publish --help")
            exit(64)
        }
    }

    private static let help = """
        usage: terms [--accept] [--offline] [--fresh] [--plain]
               terms publish <directory> (see terms publish --help)

        Starts with bundled terms, finds newer ones at an origin in this process, shows
        the changes, and asks for an acceptance, which is saved for later starts.

          --accept   accepts the terms without asking
          --offline  starts without a network
          --fresh    deletes the state of earlier starts first
          --plain    prints plain lines, as when the output is not a terminal

        exit codes: 0 the gate was shown, open or closed; 1 the gate failed; 64 wrong
        usage.
        """
}
