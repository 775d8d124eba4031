internal import Foundation

/// A file of the folder `Snippets`, in which lines such as `//: Paginating.md: var messages` refer to Swift blocks of the documentation.
///
/// A reference names a document by the end of its path. If the document has several Swift blocks, the reference goes on with the beginning of
/// the block's first line, or of another line that no other block has. The plugin writes the file with the blocks in place of the references,
/// and the compiler reads that file.
struct SnippetTemplate: Sendable {
    /// The templates of the package.
    static let all: [SnippetTemplate] = Documentation.files(under: "Tests/DocumentationTests/Snippets", ending: ".swift").map {
        SnippetTemplate(path: $0, text: Documentation.text(of: $0))
    }

    /// The path from the package's root.
    let path: String
    let text: String

    /// The name of the written file. It differs from the template's, because the compiler refuses two files of one name.
    var outputName: String { URL(filePath: path).deletingPathExtension().lastPathComponent + "+Blocks.swift" }

    /// References that do not name one block each, in the form of the compiler's errors.
    struct Fault: Error, CustomStringConvertible {
        let description: String
    }

    /// Returns the code with the blocks in place of the references. The compiler then reports errors at their lines in the template and in the
    /// documents.
    func code(with blocks: [DocumentedBlock]) throws(Fault) -> String {
        let examples = Dictionary(grouping: blocks.filter { $0.language == "swift" }, by: \.file)
        var code = [Self.location(path, line: 1)]
        var faults: [String] = []
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let bare = line.drop { $0 == " " }
            guard bare.hasPrefix("//:") else {
                code.append(String(line))
                continue
            }
            do {
                let block = try Self.block(for: bare.dropFirst(3).drop { $0 == " " }, in: examples)
                code.append(Self.location(Self.distinctPath(of: block.file, among: examples.keys), line: block.line + 1))
                code += block.lines.map(String.init)
                code.append(Self.location(path, line: index + 2))
            } catch {
                faults.append("\(Documentation.location(of: path)):\(index + 1): error: \(error)")
            }
        }
        guard faults.isEmpty else { throw Fault(description: faults.joined(separator: "\n")) }
        return code.joined(separator: "\n")
    }

    /// Returns the block that a reference names.
    private static func block(for reference: Substring, in examples: [String: [DocumentedBlock]]) throws(Fault) -> DocumentedBlock {
        let name = reference.prefix { $0 != ":" }
        let start = reference.dropFirst(name.count + 1).drop { $0 == " " }
        let documents = examples.keys.filter { $0 == name || $0.hasSuffix("/\(name)") }.sorted()
        guard let document = documents.first, let blocks = examples[document] else {
            throw Fault(description: "no document “\(name)” has a Swift block; write the end of a document's path")
        }
        guard documents.count == 1 else {
            throw Fault(description: "“\(name)” is the name of \(documents.joined(separator: ", ")); write more of the path")
        }
        var named = blocks.filter { $0.firstLine.drop { $0 == " " }.hasPrefix(start) }
        if named.isEmpty { named = blocks.filter { $0.lines.contains { $0.drop { $0 == " " }.hasPrefix(start) } } }
        guard let block = named.first else {
            let starts = blocks.map { "“\($0.firstLine)”" }.joined(separator: ", ")
            throw Fault(description: "no Swift block of \(document) has a line that begins with “\(start)”; name one of \(starts)")
        }
        guard named.count == 1 else {
            let lines = named.map { "\($0.line)" }.joined(separator: ", ")
            throw Fault(description: "\(document) has several such blocks, in the lines \(lines); name a line of only one")
        }
        return block
    }

    /// The statement that the next line is in another file.
    private static func location(_ path: String, line: Int) -> String {
        "#sourceLocation(file: \"\(Documentation.location(of: path))\", line: \(line))"
    }

    /// A path whose last part is not that of another document, because the compiler refuses such files in one module. For a name that several
    /// documents have, the last part includes the folder.
    private static func distinctPath(of file: String, among files: some Collection<String>) -> String {
        let name = file.split(separator: "/").last ?? ""
        guard files.count(where: { $0.split(separator: "/").last == name }) > 1 else { return file }
        return "\(file.dropLast(name.count + 1)):\(name)"
    }
}
