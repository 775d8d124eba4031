import Foundation
import StoreCore
import Testing

@testable import TextStore

#if os(macOS) || os(Linux)

/// Real processes that are killed while they save texts and switch sets.
@Suite(.serialized)
struct CrashTests {
    let bench: Bench
    let program: String

    init() throws {
        bench = try Bench()
        program = try writerPath()
    }

    /// What a new start finds, without network.
    private func found(_ group: String?) async throws -> [Int?] {
        let store = try TextStore(
            session: "crash", directory: bench.place.url, bundle: try bench.bundle([:]), onEvent: { [bench] in bench.events.record($0) })
        let sources = ["one", "two", "three"].map { TextSource(identifier: $0, group: group) }
        try await store.register(sources)
        var versions: [Int?] = []
        for source in sources {
            guard let text = try? await store.text(for: source) else {
                versions.append(nil)
                continue
            }
            let words = text.text.split(separator: " ", omittingEmptySubsequences: false)
            #expect(words[0] == source.identifier && words[2].utf8.count == (Int(words[1]) ?? 0) * 7919 % 6000)
            #expect(text.version?.description == "\(words[1]).0.0")
            #expect(!text.isBelowFloor)
            versions.append(Int(words[1]))
        }
        return versions
    }

    @Test(arguments: [nil, "set"])
    func `T3 T4 T7 after kill -9 at a random moment texts are whole, sets of one version, and nothing went backwards`(
        group: String?
    ) async throws {
        var last = 0
        for _ in 0..<12 {
            let child = try ChildProcess(program, [bench.place.url.path(percentEncoded: false), group ?? "-", "\(last + 1)", "-"])
            for _ in 0..<Int.random(in: 1...12) { last = max(last, child.readLine().flatMap { Int($0) } ?? 0) }
            for _ in 0..<Int.random(in: 0...3000) { _ = SHA256.digest(of: []) }
            child.killNow()
            while let line = child.readLine() { last = max(last, Int(line) ?? 0) }
            let versions = try await found(group)
            #expect(versions.allSatisfy { $0 ?? 0 >= last }, "\(versions) after \(last)")
            if group != nil { #expect(Set(versions).count == 1, "\(versions)") }
            last = max(last, versions.compactMap { $0 }.max() ?? 0)
        }
        #expect(bench.events.faults.isEmpty)
    }

    /// A switch writes the manifest, three records, two pointers and two floors: created, written and renamed each.
    @Test(arguments: Array(1...30))
    func `T7 kill -9 after any step of the second switch leaves the old set or the new one`(step: Int) async throws {
        let first = try ChildProcess(program, [bench.place.url.path(percentEncoded: false), "set", "1", "-"])
        #expect(first.readLine() == "1")
        first.killNow()
        let seen = try await found("set").compactMap { $0 }.max() ?? 0
        let second = try ChildProcess(program, [bench.place.url.path(percentEncoded: false), "set", "\(seen + 1)", "\(step)"])
        while second.readLine() != nil {}
        let versions = try await found("set")
        #expect(Set(versions).count == 1, "\(versions)")
        #expect((versions[0] ?? 0) >= seen)
        #expect(bench.events.faults.isEmpty)
    }
}

/// Where the build has put the program that writes and is killed: beside the tests.
private func writerPath() throws -> String {
    var places = Bundle.allBundles.map(\.bundleURL) + [URL(filePath: CommandLine.arguments[0])]
    if let own = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe") { places.append(URL(filePath: own)) }
    for var place in places {
        for _ in 0..<5 {
            let candidate = place.appending(path: "TextCrashWriter", directoryHint: .notDirectory).path(percentEncoded: false)
            if FileManager.default.isExecutableFile(atPath: candidate) { return candidate }
            place.deleteLastPathComponent()
        }
    }
    throw CocoaError(.fileNoSuchFile)
}

#endif
