extension Documentation {
    /// The code that is compiled for the documentation, and programs that it quotes. A template with a fault is not compiled.
    static let code = CompiledCode(
        files: SnippetTemplate.all.compactMap { try? $0.code(with: blocks) }
            + ["Tests/Support/MainActorClient", "Tests/OrgsTests", "Examples"].flatMap { files(under: $0, ending: ".swift") }.map(text))
}

/// Compiled source in which documented code must stand.
struct CompiledCode: Sendable {
    private let files: [[Line]]
    /// The places of each line's text.
    private let places: [String: [Place]]

    private struct Place {
        var file: Int
        var line: Int
    }

    /// One line, apart from how deep it stands and how wide its gaps are, which are set to line up comments.
    private struct Line {
        var indentation: Int
        var text: String

        init(_ line: some StringProtocol) {
            indentation = line.prefix { $0 == " " }.count
            text = line.split(separator: " ").joined(separator: " ")
        }
    }

    init(files: [String]) {
        self.files = files.map { $0.split(separator: "\n", omittingEmptySubsequences: false).map(Line.init) }
        var places: [String: [Place]] = [:]
        for (file, lines) in self.files.enumerated() {
            for (number, line) in lines.enumerated() { places[line.text, default: []].append(Place(file: file, line: number)) }
        }
        self.places = places
    }

    /// Whether the lines stand there one after the other, all of them equally deeper or less deep.
    func contains(_ lines: [Substring]) -> Bool {
        let wanted = lines.map(Line.init)
        guard let first = wanted.firstIndex(where: { !$0.text.isEmpty }) else { return false }
        return places[wanted[first].text, default: []].contains { place in
            let (file, start) = (files[place.file], place.line - first)
            guard start >= 0, start + wanted.count <= file.count else { return false }
            let window = file[start..<start + wanted.count]
            let depth = file[place.line].indentation - wanted[first].indentation
            return zip(wanted, window).allSatisfy { $0.text == $1.text && ($0.text.isEmpty || $1.indentation - $0.indentation == depth) }
        }
    }
}
