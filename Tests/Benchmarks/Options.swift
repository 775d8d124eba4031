/// The parsed command line.
struct Options: Sendable {
    /// Texts that the name or title of a measured row contains; empty for all rows.
    var filters: [String] = []
    var checks = false
    var scale = Scale.full
    var format = Format.table
    var lists = false
    var helps = false

    /// The output format.
    enum Format: Sendable {
        case table
        case json
        case markdown
    }

    static let usage = """
        Measures Storehouse and comparable handwritten code in one process, and prints a table.

        usage: swift run -c release benchmarks [options]

          --filter <text>   only rows with the text in their name or title; repeat for several texts
          --check           exit with status 1 if a budget is certainly broken
          --quick           short rounds; with --check, only budgets that hold on a noisy machine
          --json            print JSON
          --markdown        print a Markdown table
          --list            print the names of all rows and their budgets
          --help            print this help

        """

    /// Parses the arguments.
    ///
    /// - Parameter arguments: The arguments, without the program's name.
    /// - Throws: ``Mistake`` for an invalid argument.
    init(_ arguments: some Sequence<String>) throws(Mistake) {
        var rest = arguments.makeIterator()
        while let argument = rest.next() {
            switch argument {
            case "--filter":
                guard let text = rest.next(), !text.isEmpty, !text.hasPrefix("--") else {
                    throw Mistake(description: "--filter needs a text, such as --filter hit")
                }
                filters.append(text.lowercased())
            case "--check": checks = true
            case "--quick": scale = .quick
            case "--json": format = try format(.json)
            case "--markdown": format = try format(.markdown)
            case "--list": lists = true
            case "--help", "-h": helps = true
            default: throw Mistake(description: "unknown argument \(argument)")
            }
        }
    }

    private func format(_ wanted: Format) throws(Mistake) -> Format {
        guard format == .table || format == wanted else { throw Mistake(description: "--json and --markdown exclude each other") }
        return wanted
    }

    func selects(_ figure: Figure) -> Bool {
        filters.isEmpty || filters.contains { figure.name.lowercased().contains($0) || figure.title.lowercased().contains($0) }
    }

    /// An invalid command line.
    struct Mistake: Error, CustomStringConvertible { var description: String }
}
