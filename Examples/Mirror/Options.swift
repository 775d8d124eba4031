import Foundation
import RemoteHTTP
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
    /// The directory of `mirror make`, and the file that it writes; `nil` for the standard output.
    var made: URL?
    var output: URL?
    var patterns: [String] = []
    var rate: TransferRate?
    var backup: URL?
    var freeSpace: Int64?
    /// The metadata that `mirror make` writes and a run reads.
    var metadata: MetadataOptions = []
    /// Whether every installed file is read, and whether damaged ones are downloaded again.
    var verifies = false
    var repairs = false
    /// Fields of the requests to the manifest's own host, such as `Authorization`.
    var fields: [(name: String, value: String)] = []

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
                      [--exclude <pattern>] [--exclude-from <file>]
                      [--limit-rate <bytes>] [--keep-free <bytes>]
                      [--backup-dir <directory>] [--verify | --repair]
                      [--times] [--modes] [--empty-dirs] [--links] [--metadata]
                      [--token-file <file>] [--header-file <file>]
               mirror make <directory> [<manifest>] [--exclude <pattern>]
                      [--exclude-from <file>] [--times] [--modes] [--empty-dirs]
                      [--links] [--metadata]

        Makes a directory equal to a manifest: an object {"path", "size", "sha256" or
        "version", "url", "mtime", "mode"} per file, one per line (NDJSON) or all in one
        array (JSON). A manifest in lines needs an end marker: a last line
        {"count": <files>}, or a Content-Length from the server. URLs may be relative to
        the manifest's. Interrupted transfers are resumed; files that mirror has not
        installed are kept. Without arguments, mirror runs a demonstration with an
        origin in its own process and a temporary directory. Files with another path in
        the manifest are moved, not downloaded.

        mirror make writes the manifest of a directory, with a digest of each file. Put
        it into the directory and serve both with any web server. Special files and
        .storehouse are left out, and without options also links, empty directories,
        times and permissions.

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
            --exclude <pattern>    neither downloads nor removes what the pattern
                                   matches, by the rules of gitignore; may be repeated
            --exclude-from <file>  reads patterns from a file, such as a .gitignore
            --limit-rate <bytes>   the bytes per second of all downloads and of
                                   --verify, such as 500k or 2M
            --keep-free <bytes>    refuses a run that would leave less space free
            --backup-dir <directory>
                                   keeps each file that is replaced or removed there,
                                   under its path
            --verify               reads every installed file, prints those that are
                                   damaged, missing, or edited, and changes nothing
            --repair               reads them too, and downloads such files again
            --times                applies, or writes, the times of files
            --modes                the same for their permissions, without set-user and
                                   similar bits; the owner can always read and write
            --empty-dirs           the same for directories, even if they are empty
            --links                the same for symbolic links that are relative and
                                   stay inside the directory
            --metadata             all four of them
            --token-file <file>    sends the token in the file as “Authorization:
                                   Bearer” to the manifest's host, and nowhere else
            --header-file <file>   sends the fields in the file, one “Name: value” per
                                   line, to the manifest's host, and nowhere else

        The variable MIRROR_TOKEN is an alternative to --token-file. A token on the
        command line would be visible to every user of the machine.

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
        func text(of option: String) throws -> String {
            guard let text = rest.popFirst(), !text.isEmpty else { throw Mistake(description: "\(option) needs a value") }
            return text
        }
        func bytes(of option: String) throws -> Int64 {
            let text = try text(of: option)
            let factors: [Character: Int64] = ["k": 1_000, "K": 1_000, "m": 1_000_000, "M": 1_000_000, "G": 1_000_000_000]
            let factor = text.last.flatMap { factors[$0] }
            let number = Int64(factor == nil ? text : String(text.dropLast()))
            guard let number, number >= 0, case let (bytes, overflow) = number.multipliedReportingOverflow(by: factor ?? 1), !overflow
            else {
                throw Mistake(description: "\(option) \(text): use a number of bytes, such as 800000, 500k, 2M or 1G")
            }
            return bytes
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
            case "--exclude": patterns.append(try text(of: argument))
            case "--exclude-from":
                // Ends of lines are trimmed as in a gitignore file.
                patterns += try Self.content(of: text(of: argument)).trimmingPrefix("\u{FEFF}").split(whereSeparator: \.isNewline)
                    .map(String.init)
            case "--limit-rate":
                let bytes = try bytes(of: argument)
                do { rate = try TransferRate(bytesPerSecond: bytes) } catch {
                    throw Mistake(description: "--limit-rate \(bytes): nothing would arrive; use a rate of 1 or more")
                }
            case "--keep-free": freeSpace = try bytes(of: argument)
            case "--backup-dir": backup = URL(filePath: try text(of: argument), directoryHint: .isDirectory)
            case "--times": metadata.insert(.times)
            case "--modes": metadata.insert(.modes)
            case "--empty-dirs": metadata.insert(.directories)
            case "--links": metadata.insert(.links)
            case "--metadata": metadata = .all
            case "--verify": verifies = true
            case "--repair": repairs = true
            case "--token-file": try addToken(Self.content(of: text(of: argument)))
            case "--header-file": try addFields(Self.content(of: text(of: argument)))
            case "--help", "-h": helps = true
            case _ where argument.hasPrefix("-"): throw Mistake(description: "unknown option \(argument)")
            default: plain.append(argument)
            }
        }
        let isAuthorized = fields.contains { $0.name.lowercased() == "authorization" }
        if !isAuthorized, let token = ProcessInfo.processInfo.environment["MIRROR_TOKEN"], !token.isEmpty { try addToken(token) }
        guard !plain.isEmpty else { return }
        if plain[0] == "make" {
            guard plain.count == 2 || plain.count == 3, !plain.contains("") else {
                throw Mistake(description: "give the directory to make a manifest of")
            }
            made = URL(filePath: plain[1], directoryHint: .isDirectory)
            output = plain.count == 3 ? URL(filePath: plain[2], directoryHint: .notDirectory) : nil
            return
        }
        guard plain.count == 2, !plain[1].isEmpty else { throw Mistake(description: "give the manifest's URL and a directory") }
        guard let url = WebAddress.resolve(plain[0], from: nil), url.host() != nil else {
            throw Mistake(description: "\(plain[0]): use a URL with http or https")
        }
        manifest = url
        directory = URL(filePath: plain[1], directoryHint: .isDirectory)
    }

    /// The layers of the target.
    var layers: MirrorLayers {
        var layers = MirrorLayers()
        layers.filter = FileFilter(patterns)
        layers.backup = backup
        layers.freeSpace = freeSpace
        layers.metadata = metadata
        if verifies || repairs { layers.verification = .digests(at: rate) }
        return layers
    }

    private static func content(of path: String) throws -> String {
        do { return try String(contentsOfFile: path, encoding: .utf8) } catch {
            throw Mistake(description: "cannot read \(path): \(error.localizedDescription)")
        }
    }

    private mutating func addToken(_ text: String) throws {
        let token = text.trimmingCharacters(in: .whitespacesAndNewlines)
        // The message does not repeat the text, which is a secret.
        guard !token.isEmpty, token.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw Mistake(description: "the token must be one word of printable ASCII characters")
        }
        fields.append(("Authorization", "Bearer \(token)"))
    }

    private mutating func addFields(_ text: String) throws {
        for line in text.split(whereSeparator: \.isNewline) where !line.allSatisfy(\.isWhitespace) {
            guard let colon = line.firstIndex(of: ":"), colon > line.startIndex else {
                throw Mistake(description: "a line of the header file has no “Name: value”")
            }
            fields.append((String(line[..<colon]), line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)))
        }
    }
}
