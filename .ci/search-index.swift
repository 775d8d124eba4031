// Writes the index of a documentation site's full-text search: one entry for each symbol, and for each section of an article.
//
// swift search-index.swift <archive> <file>

import Foundation

let arguments = CommandLine.arguments.dropFirst()
guard arguments.count == 2 else { fatalError("usage: swift search-index.swift <archive> <file>") }
let data = URL(filePath: arguments[1], directoryHint: .isDirectory).appending(path: "data")

struct Entry: Encodable {
    /// The page, relative to the site, with the section's anchor.
    var page: String
    var title: String
    /// The section; empty for the beginning of a page.
    var section = ""
    /// A word for people, such as “Article” or “Structure”.
    var kind: String
    var module: String
    var text = ""
}

/// The text of a part of a page: of its strings that are shown, in their order.
func text(_ part: Any, _ references: [String: Any]) -> [String] {
    switch part {
    case let list as [Any]: return list.flatMap { text($0, references) }
    case let object as [String: Any]:
        if let lines = object["code"] as? [String] { return lines }
        if let code = object["code"] as? String { return [code] }
        if object["type"] as? String == "reference", let name = object["identifier"] as? String {
            return [(references[name] as? [String: Any])?["title"] as? String ?? ""]
        }
        if let own = object["text"] as? String { return [own] }
        let parts = ["name", "inlineContent", "content", "parameters", "items", "rows", "term", "definition", "declarations"]
        return parts.flatMap { object[$0].map { text($0, references) } ?? [] }
    case let string as String: return [string]
    default: return []
    }
}

func joined(_ words: [String]) -> String {
    words.joined(separator: " ").split(whereSeparator: \.isWhitespace).joined(separator: " ")
}

func entries(of file: URL, at path: String) throws -> [Entry] {
    guard let page = try JSONSerialization.jsonObject(with: Data(contentsOf: file)) as? [String: Any],
        let facts = page["metadata"] as? [String: Any], let title = facts["title"] as? String
    else { return [] }
    let references = page["references"] as? [String: Any] ?? [:]
    let module = ((facts["modules"] as? [[String: Any]])?.first?["name"] as? String) ?? ""
    var entry = Entry(page: path, title: title, kind: facts["roleHeading"] as? String ?? "Page", module: module)
    var words = text(page["abstract"] ?? [], references)
    var found: [Entry] = []
    let isArticle = page["kind"] as? String == "article"
    for section in page["primaryContentSections"] as? [[String: Any]] ?? [] {
        guard isArticle, let content = section["content"] as? [[String: Any]] else {
            if ["content", "parameters"].contains(section["kind"] as? String) { words += text(section, references) }
            continue
        }
        for part in content {
            guard part["type"] as? String == "heading", let heading = part["text"] as? String, heading != "Overview" else {
                words += text(part, references)
                continue
            }
            entry.text = joined(words)
            found.append(entry)
            words = []
            entry.section = heading
            entry.page = path + "#" + (part["anchor"] as? String ?? "")
        }
    }
    entry.text = joined(words)
    return found + [entry]
}

var all: [Entry] = []
let files = FileManager.default.enumerator(atPath: data.path)?.compactMap { $0 as? String } ?? []
for name in files.sorted() where name.hasPrefix("documentation") && name.hasSuffix(".json") {
    all += try entries(of: data.appending(path: name), at: String(name.dropLast(".json".count)))
}
guard !all.isEmpty else { fatalError("search-index: \(data.path) has no pages") }
let encoder = JSONEncoder()
encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
try encoder.encode(all).write(to: URL(filePath: arguments[2]))
print("search: \(all.count) entries")
