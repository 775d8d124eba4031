import Foundation
import Testing
import Trials

@testable import StoreCore
@testable import StorePlatform

struct AtomicFileTests {
    private let place: TemporaryDirectory

    init() throws { place = try TemporaryDirectory() }

    @Test(arguments: [
        (Durability.crash, ["created", "written", "renamed"]),
        (.power, ["created", "written", "fileSynchronized", "renamed", "directorySynchronized"]),
    ])
    func `F1: a file is written, synchronized if durability requires it, then renamed`(durability: Durability, steps: [String]) throws {
        let done = Lock<[String]>([])
        let options = FileWriteOptions(durability: durability) { (step: FileWriteOptions.Step) throws(StoreError) in
            done.withLock { $0.append(step.rawValue) }
        }
        try AtomicFile.write(Array("new".utf8), as: "file", in: place.directory, kind: "test", options: options)
        #expect(done.withLock { $0 } == steps)
        #expect(try place.names == ["file"])
        #expect(try place.bytes("file") == Array("new".utf8))
    }

    @Test(arguments: FileWriteOptions.Step.allCases)
    func `F1: a failure at any step leaves either the old file or the new one, and no other file`(failing: FileWriteOptions.Step) throws {
        try AtomicFile.write(Array("old".utf8), as: "file", in: place.directory, kind: "test")
        let options = FileWriteOptions(durability: .power) { (step: FileWriteOptions.Step) throws(StoreError) in
            if step == failing { throw .fileSystem("testing", path: "/", errno: ENOSPC) }
        }
        let error = #expect(throws: StoreError.self) {
            try AtomicFile.write(Array("new".utf8), as: "file", in: place.directory, kind: "test", options: options)
        }
        #expect(error?.fileSystemErrno == ENOSPC)
        #expect(try place.names == ["file"])
        let isRenamed = failing == .renamed || failing == .directorySynchronized
        #expect(try place.bytes("file") == Array((isRenamed ? "new" : "old").utf8))
    }

    @Test func `F7: only the user can access a created directory`() throws {
        let deep = Directory(path: place.directory.path(of: "a/b/c/"))
        try deep.create(durability: .power)
        for name in ["a", "a/b", "a/b/c"] { #expect(try place.status(name)?.permissions == 0o700) }
        try deep.create()
        #expect(deep.parent == Directory(path: place.directory.path(of: "a/b")))
    }

    @Test func `F6: an error names the operation, the path, the reason and the remedy`() throws {
        try place.write([1], "file")
        let below = Directory(path: place.directory.path(of: "file/below"))
        let error = #expect(throws: StoreError.self) { try below.create() }
        #expect(error?.code == .fileSystem)
        #expect(error?.fileSystemErrno == ENOTDIR)
        #expect(error?.description.contains(below.path) == true)
        #expect(error?.description.contains("making directory") == true)
        #expect(error?.description.contains("choose another directory") == true)
        #expect((error?.underlyingError as? POSIXError)?.code == .ENOTDIR)
    }

    @Test func `writing into a missing directory fails, and listing it finds no directory`() throws {
        let missing = Directory(path: place.directory.path(of: "missing"))
        let error = #expect(throws: StoreError.self) { try AtomicFile.write([1], as: "file", in: missing, kind: "test") }
        #expect(error?.fileSystemErrno == ENOENT)
        #expect(try missing.list() == nil)
        #expect(try missing.remove("file") == false)
        #expect(try missing.status() == nil)
    }

    @Test func `a listing returns every entry once, with its kind, and does not follow links`() throws {
        var expected: [String: FileKind] = ["sub": .directory, "link": .link, "pipe": .other]
        for number in 0..<500 {
            try place.write([1], "file \(number) é")
            expected["file \(number) é"] = .regular
        }
        try FileManager.default.createDirectory(at: place.file("sub"), withIntermediateDirectories: false)
        try FileManager.default.createSymbolicLink(at: place.file("link"), withDestinationURL: place.file("file 1 é"))
        try makePipe(place.directory.path(of: "pipe"))
        var found: [String: FileKind] = [:]
        guard var listing = try place.directory.list() else {
            Issue.record("the directory is missing")
            return
        }
        while let entry = try listing.next() {
            #expect(found[entry.name] == nil)
            let status = try listing.status(of: entry)
            #expect(entry.kind == status?.kind || entry.kind == .unknown)
            found[entry.name] = status?.kind
        }
        #expect(found == expected)
    }

    @Test func `F2: a conditional removal removes only the file with the given status`() throws {
        try place.write([1], "file")
        let old = try #require(try place.status("file"))
        try place.write([1, 2], "other")
        _ = rename(place.directory.path(of: "other"), place.directory.path(of: "file"))
        #expect(try place.directory.remove("file", ifStill: old) == false)
        #expect(try place.bytes("file") == [1, 2])
        let new = try #require(try place.status("file"))
        #expect(try place.directory.remove("file", ifStill: new))
        #expect(try place.directory.remove("file", ifStill: new) == false)
        #expect(try place.names.isEmpty)
    }

    @Test func `F2: a conditional removal without a free descriptor removes nothing`() async throws {
        try place.write([1], "file")
        await #expect(processExitsWith: .success) { [url = place.url as URL] in
            let directory = Directory(path: url.path(percentEncoded: false))
            guard let status = try directory.status(of: "file") else { preconditionFailure("the file is missing") }
            limitDescriptors(to: 0)
            precondition((try? directory.remove("file", ifStill: status)) == nil)
        }
        #expect(try place.names == ["file"])
    }

    /// The removal must not move a newer file aside: a crash at that moment would lose the file.
    @Test func `F2: a conditional removal never hides a newer file`() async throws {
        var options = FileWriteOptions()
        options.locksNames = true
        let directory = place.directory, isDone = Lock(false), removed = Lock<Set<Int>>([])
        async let removals: Void = Task.detached {
            while !isDone.withLock({ $0 }) {
                guard let status = try directory.status(of: "file") else { continue }
                if try directory.remove("file", ifStill: status) { removed.withLock { _ = $0.insert(status.size) } }
            }
        }.value
        defer { isDone.withLock { $0 = true } }
        // The size identifies the version.
        for size in 1...rounds(3_000, quick: 300) {
            try AtomicFile.write([UInt8](repeating: 0, count: size), as: "file", in: directory, kind: "test", options: options)
            if try directory.status(of: "file") == nil {
                // The removal may not have returned yet.
                try await until("version \(size) was removed and not hidden") { removed.withLock { $0.contains(size) } }
            }
        }
        isDone.withLock { $0 = true }
        try await removals
    }

    @Test(arguments: [
        ("", false), ("record", false), (".record.1.0123456789abcdef.tmp", true), (".record.4194304.0123456789abcdef.tmp", true),
        (".other.1.0123456789abcdef.tmp", false), (".record.1.0123456789ABCDEF.tmp", false), (".record.1.0123456789abcde.tmp", false),
        (".record..0123456789abcdef.tmp", false), (".record.x.0123456789abcdef.tmp", false), (".record.1.0123456789abcdef.tmp.", false),
        ("record.1.0123456789abcdef.tmp", false), (".record.1.0123456789abcdef.temp", false), (".record.1.0123456789abcdeg.tmp", false),
    ])
    func `F2: only a name of the exact pattern belongs to a temporary file`(name: String, isOurs: Bool) {
        #expect(TemporaryFile.isName(name, kind: "record") == isOurs)
        #expect(TemporaryFile.isName(TemporaryFile.makeName(kind: "record"), kind: "record"))
    }
}
