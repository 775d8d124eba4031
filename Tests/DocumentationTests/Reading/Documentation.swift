internal import Foundation

/// The documentation in the package's folder. Paths begin there.
enum Documentation {
    /// The page of the documentation site that leads to the modules.
    static let landingPage = ".ci/Storehouse.docc/Storehouse.md"

    /// The Markdown files.
    static let articles: [String] = ["README.md", landingPage] + files(under: "Sources", ending: ".md")

    /// The Swift sources. Their doc comments are documentation too.
    static let sources: [String] = files(under: "Sources", ending: ".swift")

    /// All fenced blocks of the articles and of the doc comments.
    static let blocks: [DocumentedBlock] =
        articles.flatMap { DocumentedBlock.blocks(of: text(of: $0), file: $0) }
        + sources.flatMap { DocumentedBlock.blocks(ofDocCommentsIn: text(of: $0), file: $0) }

    /// The folder, four levels above this file and above the link to it in `Tests/Support/SnippetPlugin`.
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().path

    static func location(of path: String) -> String { "\(root)/\(path)" }

    static func text(of path: String) -> String {
        do {
            return try String(contentsOfFile: location(of: path), encoding: .utf8)
        } catch {
            preconditionFailure("reading \(path) of the package at \(root): \(error)")
        }
    }

    static func files(under folder: String, ending suffix: String) -> [String] {
        let paths = FileManager.default.enumerator(atPath: location(of: folder))?.compactMap { $0 as? String } ?? []
        return paths.filter { $0.hasSuffix(suffix) }.sorted().map { "\(folder)/\($0)" }
    }
}
