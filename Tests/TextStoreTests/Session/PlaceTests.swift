import Foundation
import LoopbackOrigin
import StoreCore
import StorePlatform
import Testing
import Trials

@testable import TextStore

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// T4, T11, T13: sockets in place of a session's files, and the errors of its disk.
struct PlaceTests {
    let bench: Bench

    init() throws { bench = try Bench() }

    /// Replaces a file with a socket, which cannot be opened.
    private func replaceWithSocket(_ name: String) throws {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM_VALUE), 0)
        defer { _ = close(descriptor) }
        let place = bench.place.file(name)
        // A short path, because the path of a socket is limited to about a hundred bytes.
        let directory = "/tmp/\(UUID().uuidString.prefix(8))"
        try #require(symlink(place.deletingLastPathComponent().path(percentEncoded: false), directory) == 0)
        defer { unlink(directory) }
        let short = "\(directory)/\(place.lastPathComponent)"
        unlink(short)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: short.utf8) }
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
        }
        try #require(result == 0)
    }

    /// Starts a store whose text is cached and accepted, and returns the session's files.
    private func prepared() async throws -> [String] {
        bench.serve(eula: 2)
        let store = try await bench.started().refreshed()
        try await store.accept(store.text(for: "eula"))
        return bench.place.files.filter { $0.hasPrefix("state/") }
    }

    @Test func `T4, T5: a socket in place of a record is damage, and the text is fetched again`() async throws {
        for name in try await prepared() where name.hasSuffix(".text") { try replaceWithSocket(name) }
        let store = try await bench.started()
        #expect(try await store.text(for: "eula").text == "Bundled terms 1")
        try await bench.events.waitForFault { $0.code == .damagedFile && $0.identifier == "eula" }
        try await store.refresh()
        #expect(try await line(store.text(for: "eula")) == "2.0.0 remote: Remote terms 2")
    }

    @Test(arguments: [["accepted.0", "accepted.1"], ["pointer.0", "pointer.1"], ["floor.0", "floor.1"], ["manifest.0"]])
    func `T4, T13: sockets in place of a session's files are damage, and the next save replaces them`(names: [String]) async throws {
        for name in try await prepared() where names.contains(where: { name.hasSuffix($0) }) { try replaceWithSocket(name) }
        let store = try await bench.started()
        bench.serve(eula: 3)
        try await store.refresh()
        let text = try await store.text(for: "eula")
        #expect(line(text) == "3.0.0 remote: Remote terms 3")
        try await store.accept(text)
        bench.origin.goDown()
        let next = try await bench.started()
        #expect(try await line(next.text(for: "eula")) == "3.0.0 cache: Remote terms 3")
        #expect(await !next.needsAcceptance(of: text))
        #expect(bench.events.faults.allSatisfy { $0.code == .damagedFile })
    }

    @Test func `T3: a socket in place of the lock is an error, and not a disk without locks`() async throws {
        for name in try await prepared() where name.hasSuffix("/lock") { try replaceWithSocket(name) }
        let store = try await bench.started()
        bench.serve(eula: 3)
        await expectError(.fileSystem) { try await store.refresh() }
        #expect(try await store.text(for: "eula").text == "Remote terms 2")
    }

    @Test func `an error of the disk states its cause once`() async throws {
        try Data("in the way".utf8).write(to: bench.place.file("state"))
        bench.serve(eula: 2)
        for group in [nil, "legal"] {
            let store = try await bench.started(bundle: bench.bundle(["eula.txt": "Terms"]), group: group)
            let error = try #require(await #expect(throws: TextStoreError.self) { try await store.refresh() })
            let text = error.description
            #expect(error.code == .fileSystem || group != nil)
            #expect(!text.contains("NSPOSIXErrorDomain") && !text.contains("POSIXError"), "\(text)")
            #expect(text.components(separatedBy: "errno").count <= 2 && text.components(separatedBy: "errno").count > 1, "\(text)")
        }
        let events = bench.events.faults.map(\.description)
        #expect(events.allSatisfy { !$0.contains("NSPOSIXErrorDomain") })
        let other = TextStoreError(.fileSystem, "cannot read", underlyingError: StoreError.fileSystem("opening", path: "/x", errno: EACCES))
        #expect(other.description.hasPrefix("TextStoreError.fileSystem: cannot read (underlying: StoreError.fileSystem: opening /x: "))
        #expect(!other.description.contains("NSPOSIX"))
    }

    @Test func `T11: the default directory has the program's name`() {
        let path = TextStore.defaultDirectory.path(percentEncoded: false)
        let name = Bundle.main.bundleIdentifier ?? ProcessInfo.processInfo.processName
        #expect(path.contains("/\(name)/") || path.contains("/\(ProcessInfo.processInfo.processName)/"))
    }
}

#if canImport(Glibc)
private let SOCK_STREAM_VALUE = SOCK_STREAM.rawValue
#else
private let SOCK_STREAM_VALUE = SOCK_STREAM
#endif
