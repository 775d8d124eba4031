// Checks that every public symbol has a doc comment with a short first sentence without links, that every public symbol at the top of its
// module is listed among the topics of the landing page, and that a type with a file in the catalog's folder Symbols lists all its
// members there.
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

/// The listed members of each type that has a file of its own, each without the part that distinguishes overloads.
var members: [String: [String]] = [:]
let folder = URL(filePath: landingPage).deletingLastPathComponent().appending(path: "Symbols")
for file in (try? FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)) ?? [] where file.pathExtension == "md" {
    let lines = try String(contentsOf: file, encoding: .utf8).components(separatedBy: "\n")
    let links = lines.filter { $0.hasPrefix("- ``") }.map { String($0.dropFirst(4).prefix { $0 != "`" }) }
    guard let type = lines[0].split(separator: "`").last?.split(separator: "/").last else { continue }
    members[String(type)] = links.map { link in link.prefixMatch(of: #/[^(-]+(\([^)]*\))?/#).map { String($0.0) } ?? link }
}

var count = 0
var unlisted = members
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
        if symbol.pathComponents.count == 2, let listed = unlisted[symbol.pathComponents[0]] {
            if let index = listed.firstIndex(of: symbol.pathComponents[1]) {
                unlisted[symbol.pathComponents[0]]?.remove(at: index)
            } else {
                faults.append("\(place)\(name) is not among the topics of its type in \(folder.relativePath)")
            }
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
