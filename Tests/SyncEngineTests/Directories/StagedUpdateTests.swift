import Foundation
import StoreCore
import StorePlatform
import Testing
@testable import SyncEngine

/// S3: updates that the list cannot check wait until all are downloaded.
struct StagedUpdateTests {
    private static func number(_ number: Int) -> SHA256.Digest { SHA256.digest(of: Array("\(number)".utf8)) }

    // The numbers of changed files, of files with the shared new content, and of files that were equal before → whether they are refused.
    @Test(
        arguments: [
            (19, 19, 1, false), (20, 11, 1, true), (20, 10, 1, false), (21, 11, 1, true), (21, 10, 1, false), (100, 51, 1, true),
            (100, 50, 1, false), (20, 20, 20, false), (20, 20, 11, false), (20, 20, 10, true), (20, 11, 11, false), (20, 11, 10, true),
            (0, 0, 0, false),
        ])
    func `S3: staged updates are refused if more than half of at least 20 newly share a digest`(
        count: Int, shared: Int, alike: Int, isRefused: Bool
    ) {
        for isKnown in [true, false] {
            let changes = (0..<count).map { index in
                (before: isKnown ? Self.number(index < alike ? 0 : index + 1) : nil, after: Self.number(index < shared ? -1 : -2 - index))
            }
            let refusal = SharedContent.refusal(of: changes)
            // Unknown contents do not count as equal.
            #expect((refusal != nil) == (isKnown ? isRefused : count >= 20 && 2 * shared > count))
            if refusal != nil { #expect(refusal?.message.contains("\(shared) of \(count) changed files") == true) }
        }
        let emptied = (0..<count).map { (before: Self.number($0), after: $0 < shared ? SHA256().digest() : Self.number(-2 - $0)) }
        #expect(SharedContent.refusal(of: emptied) == nil)
    }

    /// A directory with files of a list of versions.
    private func bench(_ count: Int) throws -> DirectoryBench {
        let bench = try DirectoryBench()
        for number in 0..<count { bench["f\(number)"] = "content \(number)" }
        list(bench, count, version: "1")
        return bench
    }

    private func list(_ bench: DirectoryBench, _ count: Int, version: String) {
        bench.origin.withLock { $0.listed = (0..<count).map { ListedFile(path: "f\($0)", version: version) } }
    }

    @Test func `S3, S5: staged updates that were installed in a directory elsewhere do not count`() async throws {
        let bench = try bench(3)
        try await bench.sync()
        for number in 0..<3 { bench["f\(number)"] = "new \(number)" }
        list(bench, 3, version: "2")
        let (place, other) = (bench.url, bench.url.deletingLastPathComponent().appending(path: bench.url.lastPathComponent + "-other"))
        defer { try? FileManager.default.removeItem(at: other) }
        bench.onStep { step in
            guard case .renames = step, !FileManager.default.fileExists(atPath: other.path(percentEncoded: false)) else { return }
            try FileManager.default.moveItem(at: place, to: other)
        }
        let error = await syncError { try await bench.sync(concurrency: 1) }
        #expect((error?.report?.updatedCount, error?.report?.pendingDownloadCount) == (0, 3))
        #expect(codes(error) == [.targetVanished])
    }

    @Test(arguments: [Durability.crash, .power])
    func `S3: a page served for many files replaces none of them unless it is overridden`(durability: Durability) async throws {
        let bench = try bench(30)
        try await bench.sync(durability: durability)
        let before = try bench.files
        for number in 0..<30 { bench["f\(number)"] = "<html>sign in</html>" }
        list(bench, 30, version: "2")
        let error = await syncError { try await bench.sync(.everythingChanged, durability: durability) }
        #expect(error?.code == .sharedContent)
        #expect(error?.message.contains("30 of 30 changed files") == true)
        #expect((error?.report?.updatedCount, error?.report?.pendingDownloadCount) == (0, 30))
        #expect(try bench.files == before)
        #expect(!bench.exists(".storehouse/parts/" + PartNames(path: "f0").bytes), "the staged parts are discarded")
        let report = try await bench.sync([.everythingChanged, .sharedContent], durability: durability)
        #expect(report.updatedCount == 30)
        #expect(try Set(bench.files.values) == ["<html>sign in</html>"])
        bench.origin.withLock { $0.transfers = [] }
        #expect(try await bench.sync(durability: durability).unchangedCount == 30)
        #expect(bench.transferred > 0 && bench.origin.withLock { $0.transfers.isEmpty })
    }

    @Test func `S3: a page served for many files replaces none of them if a failure ends the pass early`() async throws {
        let bench = try bench(30)
        try await bench.sync()
        let before = try bench.files
        for number in 0..<30 { bench["f\(number)"] = "<html>sign in</html>" }
        list(bench, 30, version: "2")
        bench.origin.withLock { $0.onTransfer = { path in if path == "f9" { throw Trouble.lasting } } }
        let error = await syncError { try await bench.sync(.everythingChanged, stopsOnError: true, concurrency: 1) }
        #expect(error?.code == .sharedContent)
        #expect(try bench.files == before)
    }

    @Test(arguments: [POSIXErrorCode.EACCES, .EPERM, .EIO])
    func `S3, S5, S25: an update replaces a file that cannot be read`(code: POSIXErrorCode) async throws {
        let bench = try bench(3)
        try await bench.sync()
        bench["f1"] = "new"
        bench.origin.withLock { $0.listed?[1] = ListedFile(path: "f1", version: "2") }
        bench.onStep { step in if step == .reads("f1") { throw StoreError.fileSystem("opening", path: "f1", errno: code.rawValue) } }
        try await bench.sync()
        #expect(try bench.files["f1"] == "new")
    }

    @Test func `S3: different updates are installed, and unchanged content with a new version is kept`() async throws {
        let bench = try bench(40)
        try await bench.sync()
        let file = bench.url.appending(path: "f0").path(percentEncoded: false)
        let inode = try FileStatus.of(path: file)?.inode
        for number in 20..<40 { bench["f\(number)"] = "new \(number)" }
        list(bench, 40, version: "2")
        #expect(try await bench.sync(.everythingChanged).updatedCount == 40)
        #expect(try bench.files == bench.origin.withLock { $0.contents })
        #expect(try FileStatus.of(path: file)?.inode == inode, "the file was not replaced")
        #expect(try await bench.sync().unchangedCount == 40)
    }

    @Test func `S3: updates with sizes or digests are checked and not staged`() async throws {
        for hasDigest in [true, false] {
            let bench = try DirectoryBench()
            for number in 0..<30 { bench["f\(number)"] = "content \(number + 10)" }
            func files(_ version: String) -> [ListedFile] {
                (0..<30).map {
                    let text = "content \($0 + (version == "1" ? 10 : 50))"
                    return ListedFile(
                        path: "f\($0)", version: version, byteCount: hasDigest ? nil : Int64(text.utf8.count),
                        sha256: hasDigest ? digest(text) : nil)
                }
            }
            bench.origin.withLock { $0.listed = files("1") }
            try await bench.sync()
            let before = try bench.files
            for number in 0..<30 { bench["f\(number)"] = "<html>sign in</html>" }
            bench.origin.withLock { $0.listed = files("2") }
            let error = await syncError { try await bench.sync(.everythingChanged) }
            #expect(error?.report?.failures.count == 30)
            #expect(error?.report?.failures.allSatisfy { ($0.error as? SyncError)?.code == .wrongContent } == true)
            #expect(try bench.files == before)
        }
    }

    @Test func `S3, S15: a file edited while its update is staged is left alone`() async throws {
        let bench = try bench(3)
        try await bench.sync()
        for number in 0..<3 { bench["f\(number)"] = "new \(number)" }
        list(bench, 3, version: "2")
        bench.origin.withLock { origin in
            origin.onTransfer = { [url = bench.url] path in
                // The first update is staged when the last file is transferred.
                if path == "f2" { try Data("edited".utf8).write(to: url.appending(path: "f0")) }
            }
        }
        let error = await syncError { try await bench.sync(concurrency: 1) }
        #expect(codes(error) == [.changedLocally])
        #expect(error?.report?.updatedCount == 2)
        #expect(try bench.files == ["f0": "edited", "f1": "new 1", "f2": "new 2"])
    }

    @Test func `S9: a lost journal is rebuilt from a list of versions without replacing files`() async throws {
        let bench = try bench(30)
        try await bench.sync()
        try Data("damaged".utf8).write(to: bench.journal)
        #expect(try await bench.sync().isComplete)
        #expect(try bench.files == bench.origin.withLock { $0.contents })
        bench.origin.withLock { $0.transfers = [] }
        #expect(try await bench.sync().unchangedCount == 30)
        #expect(bench.origin.withLock { $0.transfers } == [])
    }

    @Test func `S3, S9: a page served for many files is refused after the loss of the journal`() async throws {
        let bench = try bench(30)
        try await bench.sync()
        let before = try bench.files
        try Data("damaged".utf8).write(to: bench.journal)
        for number in 0..<30 { bench["f\(number)"] = "<html>sign in</html>" }
        #expect(await syncError { try await bench.sync() }?.code == .sharedContent)
        #expect(try bench.files == before)
        #expect(await syncError { try await bench.sync(localEdits: .keepLocal) } == nil)
        #expect(try bench.files == before)
    }

    // Four attempts are allowed; the test counts the requests.
    @Test(arguments: [true, false])
    func `S10: wrong content of one attempt is not requested again, but that of two attempts is, once`(hasSize: Bool) async throws {
        let text = String(repeating: "0123456789", count: 10_000)
        let bench = try DirectoryBench(["film": text])
        let size = hasSize ? Int64(text.utf8.count) : nil
        let stale = ListedFile(path: "film", sha256: digest("other"), byteCount: size)
        let options = SyncOptions(stopsOnError: false, retry: RetryPolicy.exponential(attempts: 4, base: .zero))
        bench.origin.withLock { $0.listed = [stale] }
        _ = await syncError { try await OneWaySynchronizer(processor: bench.target(), options: options).sync() }
        #expect(bench.origin.withLock { $0.transfers } == ["film"])
        // The first 50 000 bytes belong to other content with the same validator.
        bench["film"] = String(text.reversed())
        bench.origin.withLock { origin in
            origin.listed = [ListedFile(path: "film", sha256: digest(text), byteCount: size)]
            origin.breaks = ["film": 50_000]
            origin.transfers = []
        }
        _ = await syncError { try await bench.sync() }
        bench["film"] = text
        bench.origin.withLock { $0.breaks = [:] }
        try await OneWaySynchronizer(processor: bench.target(), options: options).sync()
        #expect(bench.origin.withLock { $0.transfers } == ["film", "film", "film"])
        #expect(try bench.files == ["film": text])
    }
}
