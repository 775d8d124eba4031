internal import Foundation

#if os(macOS) || os(Linux)

/// The compiler of the toolchain, run against the modules of the package.
public struct SwiftCompiler: Sendable {
    /// The compiler's path; `nil` where it or the built module is not found.
    public static let found: SwiftCompiler? = {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        let programs = path.split(separator: ":").map { "\($0)/swiftc" } + ["/usr/bin/swiftc"]
        guard let program = programs.first(where: { FileManager.default.isExecutableFile(atPath: $0) }),
            // The build puts modules beside the programs of the package.
            let other = try? ChildProcess.path(of: "HostileClient")
        else { return nil }
        let products = URL(filePath: other).deletingLastPathComponent()
        let modules = products.appending(path: "Modules").path
        guard FileManager.default.fileExists(atPath: modules + "/RemoteRouting.swiftmodule") else { return nil }
        // The module map of the C target, which the module's own import needs.
        return SwiftCompiler(program: program, flags: ["-I", modules, "-I", products.appending(path: "CurlShim.build").path])
    }()

    private let program: String
    private let flags: [String]

    /// A compiler that fails without a message.
    public struct Failure: Error {
        /// The start of its output.
        public var output: String
    }

    /// Type-checks a source text, without blocking a thread of the pool.
    ///
    /// - Returns: The errors and warnings with their lines, which count from 1; without notes.
    public func diagnostics(of source: String) async throws -> [(line: Int, text: String)] { try await onOwnThread { try check(source) } }

    private func check(_ source: String) throws -> [(line: Int, text: String)] {
        let directory = temporaryURL()
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let file = directory.appending(path: "source.swift")
        try Data(source.utf8).write(to: file)
        let arguments = ["-swift-version", "6", "-diagnostic-style", "llvm"] + flags + ["-typecheck", file.path]
        // The compiler leaves an empty directory among the temporary files.
        let script = #"TMPDIR=$0 exec "$@" 2>&1"#
        let process = try ChildProcess("/bin/sh", ["-c", script, directory.path(), program] + arguments)
        let output = process.rest
        let succeeded = process.wait()
        var found: [(line: Int, text: String)] = []
        for text in output.split(separator: "\n") where text.contains(": error: ") || text.contains(": warning: ") {
            // A message about no place of this file, such as a module that cannot be loaded, has line 0.
            let line = text.hasPrefix(file.path + ":") ? Int(text.dropFirst(file.path.count + 1).prefix { $0.isNumber }) : 0
            found.append((line ?? 0, String(text)))
        }
        if !succeeded, found.isEmpty { throw Failure(output: String(output.prefix(500))) }
        return found
    }
}
#endif
