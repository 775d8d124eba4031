import Console
import Foundation
import TextStore

/// `swift run terms`: an app's gate, which opens after the user has accepted the current texts, and the publisher's tool for such texts.
@main
struct Terms {
    static func main() async {
        // A reader such as `head` may close the output before an acceptance is saved.
        signal(SIGPIPE, SIG_IGN)
        var arguments = Array(CommandLine.arguments.dropFirst())
        let screen = Screen(isPlain: arguments.contains("--plain"))
        arguments.removeAll { $0 == "--plain" }
        let publishes = arguments.first == "publish"
        if arguments.contains("--help") || arguments.contains("-h") {
            print(publishes ? PublishCommand.usage : GateCommand.usage)
            exit(0)
        }
        do {
            if publishes { exit(try PublishCommand(Array(arguments.dropFirst())).run(screen)) }
            exit(try await GateCommand(arguments).run(screen))
        } catch {
            screen.complain("\(error); see terms \(publishes ? "publish " : "")--help")
            exit(64)
        }
    }
}

/// A mistake of the command line, or a failure with its remedy.
struct Mistake: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }

    /// Returns why an operation failed; the errors of Foundation have a longer description for programmers.
    static func reason(of error: any Error) -> String {
        // The name of the type and the code are for programmers too.
        if let error = error as? TextStoreError { return error.description.replacing("TextStoreError.\(error.code.rawValue): ", with: "") }
        if let reason = Console.reason(ofFileError: error) { return reason }
        return (error as? Mistake)?.description ?? (error as? Refusal)?.description ?? error.localizedDescription
    }
}
