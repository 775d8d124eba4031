extension Documentation {
    /// The code that is compiled for the documentation, and programs that it quotes. A template with a fault is not compiled.
    static let code = CompiledCode(
        files: SnippetTemplate.all.compactMap { try? $0.code(with: blocks) }
            + ["Tests/Support/MainActorClient", "Tests/OrgsTests", "Examples"].flatMap { files(under: $0, ending: ".swift") }.map(text))
}

/// Compiled source in which documented code must stand.
struct CompiledCode: Sendable {
    private let files: [[Line]]

    /// One line, apart from how deep it stands and how wide its gaps are, which are set to line up comments.
    private struct Line: Hashable {
        var indentation: Int
        var text: String

        init(_ line: some StringProtocol) {
            indentation = line.prefix { $0 == " " }.count
            text = line.split(separator: " ").joined(separator: " ")
        }
    }

    init(files: [String]) {
        self.files = files.map { $0.split(separator: "\n", omittingEmptySubsequences: false).map(Line.init) }
    }

    /// Whether the lines stand there one after the other, all of them equally deeper or less deep.
    func contains(_ lines: [Substring]) -> Bool {
        let wanted = lines.map(Line.init)
        guard let first = wanted.first(where: { !$0.text.isEmpty }) else { return false }
        return files.contains { file in
            file.indices.contains { start in
                guard start + wanted.count <= file.count else { return false }
                let window = file[start..<start + wanted.count]
                guard zip(wanted, window).allSatisfy({ $0.text == $1.text }) else { return false }
                let depth = zip(wanted, window).first { $0.0 == first }.map { $1.indentation - $0.indentation } ?? 0
                return zip(wanted, window).allSatisfy { $0.text.isEmpty || $1.indentation - $0.indentation == depth }
            }
        }
    }
}
