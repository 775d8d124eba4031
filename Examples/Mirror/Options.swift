import Foundation
import StoreCore
import SyncEngine

/// The parsed command line.
struct Options {
    var manifest: URL?
    var directory: URL?
    var isDryRun = false
    var isJSON = false
    var isPlain = false
    var helps = false
    /// The refusals of the safety gate that are overridden.
    var overrides: SyncOverrides = []
    var maxDelete: Int?
    var maxUpdate: Int?
    var maxFiles: Int?
    var removalCondition = RemovalCondition.afterSuccess
    var localEdits = LocalEdits.overwrite
    var concurrency = 8
    var retries = 3

    /// A mistake in the arguments or in the manifest; another attempt would repeat it.
    struct Mistake: Error, CustomStringConvertible, FailureAdvising {
        var description: String
        var failureKind: FailureKind { .permanent }
    }

    static let usage = """
        usage: mirror [<manifest-url> <directory>] [--dry-run] [--json] [--plain]
                      [--max-delete <count>] [--allow-empty] [--max-update <count>]
                      [--allow-all-changed] [--allow-same-content] [--keep-local]
                      [--delete-despite-failures] [--max-files <count>]
                      [--concurrency <count>] [--retries <count>]

        Makes a directory equal to a manifest: an object {"path", "size", "sha256" or
        "version", "url"} per file, one per line (NDJSON) or all in one array (JSON). A
        manifest in lines needs an end marker: a last line {"count": <files>}, or a
        Content-Length from the server. URLs may be relative to the manifest's.
        Interrupted transfers are resumed; files that mirror has not installed are
        kept. Without arguments, mirror runs a demonstration with an origin in its own
        process and a temporary directory.

            --dry-run              prints the plan with its reasons, and changes
                                   nothing
            --json                 prints the report as JSON, for scripts
            --plain                prints plain lines, as if the output were not a
                                   terminal
            --max-delete <count>   refuses to remove more files than this; by default,
                                   more than half of at least 20
            --allow-empty          lets an empty manifest empty the directory
            --max-update <count>   refuses to replace more files than this; by default,
                                   more than half of at least 20
            --allow-all-changed    lets a run replace or remove every file of at least
                                   20
            --allow-same-content   lets a run give the same content to most of at least
                                   20 files that differed
            --keep-local           keeps files that were edited in the directory, and
                                   files of the manifest's names that mirror has not
                                   installed; by default they are overwritten
            --delete-despite-failures
                                   removes files that left the manifest even if other
                                   files failed; by default removals then wait
            --max-files <count>    refuses a longer manifest; 1000000 by default
            --concurrency <count>  the number of concurrent downloads, 1 to 64; 8 by
                                   default
            --retries <count>      the number of retries after a transient failure, 0
                                   to 100; 3 by default

        exit codes: 0 synchronized (or the plan was printed), 1 some files failed, 2
        refused for safety, 3 the manifest or the directory cannot be used, 64 invalid
        arguments, 130 stopped by ctrl-C; the next run resumes an interrupted one.
        """

    init(_ arguments: some Sequence<String>) throws {
        var rest = Array(arguments)[...]
        var plain: [String] = []
        func value(of option: String, from range: ClosedRange<Int>) throws -> Int {
            guard let text = rest.popFirst() else { throw Mistake(description: "\(option) needs a value") }
            guard let number = Int(text), range.contains(number) else {
                throw Mistake(description: "\(option) \(text): use a number from \(range.lowerBound) to \(range.upperBound)")
            }
            return number
        }
        while let argument = rest.popFirst() {
            switch argument {
            case "--dry-run": isDryRun = true
            case "--json": isJSON = true
            case "--plain": isPlain = true
            case "--allow-empty": overrides.insert(.emptySource)
            case "--allow-all-changed": overrides.insert(.everythingChanged)
            case "--allow-same-content": overrides.insert(.sharedContent)
            case "--keep-local": localEdits = .keepLocal
            case "--delete-despite-failures": removalCondition = .despiteFailures
            case "--max-files": maxFiles = try value(of: argument, from: 1...1_000_000_000)
            case "--max-update": maxUpdate = try value(of: argument, from: 0...1_000_000_000)
            case "--max-delete": maxDelete = try value(of: argument, from: 0...1_000_000_000)
            case "--concurrency": concurrency = try value(of: argument, from: 1...64)
            case "--retries": retries = try value(of: argument, from: 0...100)
            case "--help", "-h": helps = true
            case _ where argument.hasPrefix("-"): throw Mistake(description: "unknown option \(argument)")
            default: plain.append(argument)
            }
        }
        guard !plain.isEmpty else { return }
        guard plain.count == 2 else { throw Mistake(description: "give the manifest's URL and a directory") }
        guard let url = URL(string: plain[0]), ["http", "https"].contains(url.scheme?.lowercased()), url.host() != nil else {
            throw Mistake(description: "\(plain[0]): use a URL with http or https")
        }
        manifest = url
        directory = URL(filePath: plain[1], directoryHint: .isDirectory)
    }
}
