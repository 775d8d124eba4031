// Rewrites the symbol links of one module that lead to other modules, in articles and in symbol graphs. DocC resolves ``Store/update(_:)``
// only in the module that declares `Store`. A link to a module that was documented before becomes `<doc:/StoreCore/Store/update(_:)>`; a
// link to any other module becomes code, and a link to its article becomes text.
//
// swift foreign-links.swift <directory of all graphs> <module> <all modules in the order of their documentation, with commas> <file>…

import Foundation

struct SymbolGraph: Decodable {
    struct Symbol: Decodable { var pathComponents: [String] }
    var symbols: [Symbol]
}

let arguments = Array(CommandLine.arguments.dropFirst())
guard arguments.count >= 3 else { fatalError("usage: swift foreign-links.swift <graphs> <module> <all modules> <file>…") }
let (graphs, module) = (URL(filePath: arguments[0]), arguments[1])

/// The paths of a module's own symbols.
func paths(_ module: String) throws -> Set<String> {
    let file = graphs.appending(path: "\(module).symbols.json")
    return Set(try JSONDecoder().decode(SymbolGraph.self, from: Data(contentsOf: file)).symbols.map { $0.pathComponents.joined(separator: "/") })
}

let all = try arguments[2].split(separator: ",").map { (name: String($0), paths: try paths(String($0))) }
let documented = all.prefix { $0.name != module }
let own = all.first { $0.name == module }?.paths ?? []
let foreign = Set(all.filter { $0.name != module }.flatMap(\.paths)).subtracting(own)

func link(_ path: String) -> String {
    // The symbols of a type are linked without its name on the type's own page.
    guard let first = path.split(separator: "/").first, foreign.contains(String(first)) else { return "``\(path)``" }
    // A suffix such as `-5bqz1` distinguishes overloads.
    let plain = path.replacing(#/-[0-9a-z.]+$/#, with: "")
    for (name, paths) in documented where paths.contains(plain) { return "<doc:/\(name)/\(path)>" }
    return "`\(path)`"
}

for file in arguments.dropFirst(3) {
    let text = try String(contentsOfFile: file, encoding: .utf8)
    // A quotation mark ends the text of a line in a symbol graph. Without it, the end of a fence would pair with the next link.
    let linked = text.replacing(#/``([^`\s"]+)``/#) { link(String($0.1)) }
        .replacing(#/\[([^\]]*)\]\(doc:\/([A-Za-z]+)\/[^)]*\)/#) { match in
            match.2 == module || documented.contains { $0.name == match.2 } ? String(match.0) : String(match.1)
        }
    if linked != text { try linked.write(toFile: file, atomically: true, encoding: .utf8) }
}
