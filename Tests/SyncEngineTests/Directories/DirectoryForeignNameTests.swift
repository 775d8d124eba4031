import Foundation
import StoreCore
import Testing
import Trials
@testable import SyncEngine

#if os(Linux)
import Glibc

/// Names that are not UTF-8: a directory can contain them, a list cannot, and Swift may show several of them as one text.
struct DirectoryForeignNameTests {
    private let bench: DirectoryBench

    init() throws { bench = try DirectoryBench(["a": "one", "d/x": "1", "d/y": "2"]) }

    /// Creates a file or a directory with a name of the given bytes.
    private func make(_ name: [UInt8], in directory: String = "", isDirectory: Bool = false, text: String = "mine") throws {
        let path = Array((bench.url.path(percentEncoded: false) + "/" + directory).utf8) + [UInt8(ascii: "/")] + name + [0]
        let isMade = path.map { CChar(bitPattern: $0) }.withUnsafeBufferPointer { path -> Bool in
            guard let path = path.baseAddress else { return false }
            if isDirectory { return mkdir(path, 0o755) == 0 }
            let file = open(path, O_CREAT | O_WRONLY, 0o644)
            defer { close(file) }
            return file >= 0 && write(file, text, text.utf8.count) == text.utf8.count
        }
        try #require(isMade)
    }

    @Test(arguments: [ForeignFiles.keep, .remove])
    func `S5, S8: foreign files with names that are not UTF-8 do not fail a pass`(foreignFiles: ForeignFiles) async throws {
        for name in [[0x61, 0xFF], [0x61, 0xFE], Array("a\u{FFFD}".utf8)] { try make(name) }
        for _ in 0..<3 { try await bench.sync(foreignFiles: foreignFiles) }
        let names = try FileManager.default.contentsOfDirectory(atPath: bench.url.path(percentEncoded: false))
        #expect(names.count == (foreignFiles == .keep ? 6 : 5))
    }

    @Test func `S5, S8: a foreign directory with a name that is not UTF-8 is not confused with a similar name`() async throws {
        try make([0x64, 0xFF], isDirectory: true)
        try bench.write("mine", "d\u{FFFD}/own")
        try await bench.sync()
        #expect(try await bench.sync().unchangedCount == 3)
        #expect(try bench.files["d\u{FFFD}/own"] == "mine")
    }

    @Test func `S5: a directory that contains a name that is not UTF-8 stays unchanged`() async throws {
        try await bench.sync()
        try make([0xFF], in: "d")
        bench.origin.withLock { $0.contents = ["a": "one", "d": "file now"] }
        let error = await syncError { try await bench.sync() }
        #expect(codes(error) == [.nameTaken])
        #expect(bench.exists("d/x") && bench.exists("d/y"))
        #expect(error?.report?.pendingRemovals.count == 2)
    }
}
#endif
