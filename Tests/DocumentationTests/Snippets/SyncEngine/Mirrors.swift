internal import Foundation
internal import RemoteRouting
internal import SyncEngine
internal import Testing
internal import Trials
import RemoteRoutingTesting

// The examples of the article on mirrors of files.

//: MirrorsOfFiles.md: struct Films

struct MirrorTests {
    @Test func `a listed file has a version or a digest`() throws {
        func read(_ file: String) throws -> ListedFile { try JSONDecoder().decode(ListedFile.self, from: Data(file.utf8)) }
        #expect(try read(#"{"path": "a", "sha256": "9f86d0"}"#) == ListedFile(path: "a", sha256: "9f86d0"))
        #expect(
            try read(#"{"path": "a", "version": "7", "sha256": "9f86d0", "byteCount": 5}"#)
                == ListedFile(path: "a", version: "7", byteCount: 5, sha256: "9f86d0"))
        let written = try JSONEncoder().encode(ListedFile(path: "a", sha256: "9f86d0"))
        #expect(try JSONDecoder().decode(ListedFile.self, from: written) == ListedFile(path: "a", sha256: "9f86d0"))
        let error = #expect(throws: DecodingError.self) { try read(#"{"path": "a", "byteCount": 5}"#) }
        #expect(error.map { "\($0)" }?.contains("“a” has neither version nor sha256") == true)
    }

    @Test func `a sync makes a directory equal to the list`() async throws {
        let transport = MemoryTransport { request in
            request.url.path() == "/films.ndjson"
                ? .init(body: Data("{\"path\": \"1927/metropolis.txt\", \"version\": \"1\"}\n{\"count\": 1}\n".utf8))
                : .init(body: Data("frame 1".utf8))
        }
        let host = RemoteHost("films.example.com", transport: transport)
        let directory = temporaryURL()
        let printed = Printed()
        try await Printed.$page.withValue(printed) {
            //: MirrorsOfFiles.md: let films = Films
        }
        #expect(printed.lines == ["1 added, 0 updated, 0 removed, 0 unchanged"])
        #expect(try String(contentsOf: directory.appending(path: "1927/metropolis.txt"), encoding: .utf8) == "frame 1")
        #expect(transport.requests.map { $0.url.path() } == ["/films.ndjson", "/films/1927/metropolis.txt"])
    }

    /// The host of two films, and the directory of their copies.
    private func films() -> (films: Films, directory: URL) {
        let transport = MemoryTransport { request in
            request.url.path() == "/films.ndjson"
                ? .init(
                    body: Data("{\"path\": \"a.tmp\", \"version\": \"1\"}\n{\"path\": \"b\", \"version\": \"1\"}\n{\"count\": 2}\n".utf8))
                : .init(body: Data("frame 1".utf8))
        }
        return (Films(host: RemoteHost("films.example.com", transport: transport)), temporaryURL())
    }

    @Test func `a plan shows moves`() async throws {
        let (films, directory) = films()
        let target = DirectoryTarget(directory: directory, transfer: films) { films.list() }
        let printed = Printed()
        try await Printed.$page.withValue(printed) {
            //: MovedFiles.md
        }
        #expect(printed.lines == [])
    }

    @Test func `a filter leaves files out`() async throws {
        let (films, directory) = films()
        //: FilteringFiles.md
        let report = try await OneWaySynchronizer(processor: target).sync()
        #expect((report.addedCount, report.excludedCount) == (1, 1))
    }

    @Test func `backups and a reserve of space are layers`() async throws {
        let (films, directory) = films()
        let backups = temporaryURL()
        //: LimitsBackupsAndChecks.md: var layers = MirrorLayers
        #expect(try await OneWaySynchronizer(processor: target).plan().additions.count == 2)
    }

    @Test func `metadata is a layer`() async throws {
        let (films, directory) = films()
        //: TimesModesAndLinks.md
        #expect(try await OneWaySynchronizer(processor: target).plan().metadata.isEmpty)
    }

    @Test func `a plan with a check of contents shows damaged files`() async throws {
        let (films, directory) = films()
        //: LimitsBackupsAndChecks.md: var check = MirrorLayers
        #expect(damaged.isEmpty)
    }
}
