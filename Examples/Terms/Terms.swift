import Foundation

/// `swift run terms`: an app that starts with the terms it came with, finds newer ones, and lets nobody in who has not accepted them.
@main
struct Terms {
    static func main() async {
        var options = Gate.Options()
        var isPlain = false
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
            screen.complain("the gate could not be asked: \(error)")
            exit(1)
        }
    }

    private static let help = """
        usage: terms [--accept] [--offline] [--fresh] [--plain]

        Starts with the terms that came with the app, finds newer ones at an origin inside this process, shows what has changed,
        and asks for acceptance, which later starts remember.

          --accept   accepts what is asked, where there is no terminal
          --offline  starts without network
          --fresh    forgets earlier starts first
          --plain    plain lines, as where the output is no terminal

        exit codes: 0 the gate was shown, open or closed, 1 it could not be asked, 64 called wrongly.
        """
}
