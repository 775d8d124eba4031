internal import Foundation

/// The documentation as it stands in the package, and the code that vouches for it.
enum Documentation {
    /// All fenced blocks: of the README, of the catalogues' articles, of the sources' doc comments.
    static let blocks: [DocumentedBlock] =
        articles.flatMap { DocumentedBlock.blocks(of: text(of: $0), file: $0) }
        + files(under: "Sources", ending: ".swift").flatMap { DocumentedBlock.blocks(ofDocCommentsIn: text(of: $0), file: $0) }

    /// The Markdown files, as paths from the package's root.
    static let articles: [String] = ["README.md", landingPage] + files(under: "Sources", ending: ".md")

    /// The page of the documentation site that leads to the modules.
    static let landingPage = ".ci/Storehouse.docc/Storehouse.md"

    /// All links that lead to the package itself.
    static let links: [DocumentedLink] = (articles + ["CHANGELOG.md", "CONTRIBUTING.md"])
        .flatMap { DocumentedLink.links(of: text(of: $0), file: $0) }

    static func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: root.appending(path: path).path()) }

    /// What is compiled for the sake of the documentation.
    static let code = CompiledCode(
        files: [
            "Tests/DocumentationTests/Snippets", "Tests/Support/MainActorClient", "Tests/OrgsTests", "Examples",
        ].flatMap { files(under: $0, ending: ".swift") }.map(text))

    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    static func text(of path: String) -> String {
        do {
            return try String(contentsOf: root.appending(path: path), encoding: .utf8)
        } catch {
            preconditionFailure("reading \(path) of the package at \(root.path()): \(error)")
        }
    }

    /// The package's Swift sources, without tests and examples.
    static let sources: [String] = files(under: "Sources", ending: ".swift").map(text)

    static func files(under folder: String, ending suffix: String) -> [String] {
        let paths = FileManager.default.enumerator(atPath: root.appending(path: folder).path())?.compactMap { $0 as? String } ?? []
        return paths.filter { $0.hasSuffix(suffix) }.sorted().map { "\(folder)/\($0)" }
    }
}
