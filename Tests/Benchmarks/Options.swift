/// What the command line asks for.
struct Options: Sendable {
    /// Rows are measured whose name or title contains one of these; all rows where there are none.
    var filters: [String] = []
    var checks = false
    var scale = Scale.full
    var format = Format.table
    var lists = false
    var helps = false

    /// How the result is printed.
    enum Format: Sendable {
        case table
        case json
        case markdown
    }

    static let usage = """
        Measures Storehouse beside what one would write by hand, in one process, and prints a table.

        usage: swift run -c release benchmarks [options]

          --filter <text>   only rows whose name or title contains the text; given again, rows with either
          --check           exit with status 1 when a budget is broken beyond doubt
          --quick           short rounds; with --check, only budgets that hold on a noisy machine
          --json            print JSON
          --markdown        print the table of the README
          --list            print the names of all rows and their budgets
          --help            print this

        """

    /// Reads the arguments.
    ///
    /// - Parameter arguments: The arguments, without the program's name.
    /// - Throws: ``Mistake`` where one of them is not understood.
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

    /// A command line that is not understood.
    struct Mistake: Error, CustomStringConvertible {
        var description: String
    }
}
