internal import Foundation
internal import PackagePlugin

/// Plans how the files of `DocumentationTests/Snippets` are written with the blocks of the documentation, before they are compiled.
///
/// The other files of this folder are links to files of the tests, which read the same documents.
struct SnippetPlugin: BuildToolPlugin {
    func createBuildCommands(context: PluginContext, target: any Target) -> [Command] {
        let program = URL(filePath: CommandLine.arguments[0])
        let output = context.pluginWorkDirectoryURL
        let inputs = Documentation.articles + Documentation.sources + SnippetTemplate.all.map(\.path)
        return [
            .buildCommand(
                displayName: "Writing the examples of the documentation", executable: program, arguments: ["write", output.path],
                inputFiles: [program] + inputs.map { URL(filePath: Documentation.location(of: $0)) },
                outputFiles: SnippetTemplate.all.map { output.appending(path: $0.outputName) })
        ]
    }
}

/// The program of the plugin, which SwiftPM starts for the plan and the plan starts to write the files.
///
/// A tool of its own would be built before the first build of any target, also of `hello`.
@main struct Program {
    static func main() async throws {
        guard CommandLine.arguments.dropFirst().first == "write" else { return try await SnippetPlugin.main() }
        let output = URL(filePath: CommandLine.arguments[2])
        var isFaulty = false
        for template in SnippetTemplate.all {
            do {
                let code = try template.code(with: Documentation.blocks)
                let file = output.appending(path: template.outputName)
                // An unchanged file keeps its date, so the compiler does not read it again.
                if (try? String(contentsOf: file, encoding: .utf8)) != code { try code.write(to: file, atomically: false, encoding: .utf8) }
            } catch {
                print(error)
                isFaulty = true
            }
        }
        if isFaulty { exit(1) }
    }
}
