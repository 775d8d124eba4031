// Checks that every public symbol has a doc comment with a short first sentence without links, and that every public symbol at the
// top of its module is listed among the topics of the landing page.
//
// swift check-symbols.swift <landing page> <symbol graph>…

import Foundation

struct SymbolGraph: Decodable {
    struct Symbol: Decodable {
        struct Identifier: Decodable { var precise: String }
        struct Comment: Decodable {
            struct Line: Decodable { var text: String }
            var lines: [Line]
        }
        struct Location: Decodable {
            struct Position: Decodable { var line: Int }
            var uri: String
            var position: Position
        }
        var identifier: Identifier
        var pathComponents: [String]
        var docComment: Comment?
        var location: Location?
    }
    var symbols: [Symbol]
}

let arguments = CommandLine.arguments.dropFirst()
guard arguments.count >= 2, let landingPage = arguments.first else {
    fatalError("usage: swift check-symbols.swift <landing page> <symbol graph>…")
}

let page = try String(contentsOfFile: landingPage, encoding: .utf8)
let topics = page.components(separatedBy: "## Topics").dropFirst().joined()
var count = 0
var faults: [String] = []

for path in arguments.dropFirst() {
    let graph = try JSONDecoder().decode(SymbolGraph.self, from: Data(contentsOf: URL(filePath: path)))
    for symbol in graph.symbols where !symbol.identifier.precise.contains("::SYNTHESIZED::") {
        count += 1
        let name = symbol.pathComponents.joined(separator: ".")
        let place = symbol.location.map { "\(URL(string: $0.uri)?.lastPathComponent ?? $0.uri):\($0.position.line + 1): " } ?? ""
        if symbol.pathComponents.count == 1, !path.contains("@"), !topics.contains("- ``\(name)``"),
            // A type of its module's name has to be written with it.
            !topics.contains("- ``\(name)/\(name)``")
        {
            faults.append("\(place)\(name) is not among the topics of \(landingPage)")
        }
        guard let comment = symbol.docComment, comment.lines.contains(where: { !$0.text.allSatisfy(\.isWhitespace) }) else {
            faults.append("\(place)\(name) is not documented")
            continue
        }
        let summary = comment.lines.map(\.text).prefix { !$0.allSatisfy(\.isWhitespace) }.joined(separator: " ")
        if summary.count > 150 { faults.append("\(place)\(name): the first sentence has \(summary.count) characters; 150 are enough") }
        if summary.contains("``") || summary.contains("](") { faults.append("\(place)\(name): the first sentence has a link") }
    }
}

for fault in faults.sorted() { print("error: \(fault)") }
guard faults.isEmpty else { exit(1) }
print("\(count) public symbols are documented")
