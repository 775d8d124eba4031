import Foundation
import StoreCore
import StorePlatform
import Testing
import Trials

@testable import TextStore

#if os(macOS) || os(Linux)

/// Processes that are killed while they save texts and switch sets, and processes that write concurrently.
///
/// `STOREHOUSE_SEEDS=300` sets the number of rounds, and `STOREHOUSE_SEED=7` runs only that seed.
@Suite(.serialized, .timeLimit(.minutes(hangMinutes)))
struct CrashTests {
    let bench: Bench
    let program: String

    init() throws {
        bench = try Bench()
        program = try ChildProcess.path(of: "TextCrashWriter")
    }

    private func writer(_ group: String?, from first: Int, step: Int? = nil, _ rest: String...) throws -> ChildProcess {
        let path = bench.place.url.path(percentEncoded: false)
        return try ChildProcess(program, [path, group ?? "-", "\(first)", step.map { "\($0)" } ?? "-"] + rest)
    }

    /// Returns the versions that a new start finds offline, and checks the floors of the three texts.
    private func found(_ group: String?, _ seed: UInt64 = 0) async throws -> [Int?] {
        let store = try bench.storeOfWriters()
        let sources = ["one", "two", "three"].map { TextSource(identifier: $0, group: group) }
        try await store.register(sources)
        var versions: [Int?] = []
        for source in sources {
            // The first version may not be saved yet.
            guard let text = try? await store.text(for: source) else {
                versions.append(nil)
                continue
            }
            let words = text.text.split(separator: " ", omittingEmptySubsequences: false)
            let isWhole = words[0] == source.identifier && words[2].utf8.count == (Int(words[1]) ?? 0) * 7919 % 6000
            #expect(isWhole && text.version?.description == "\(words[1]).0.0", "seed \(seed): \(source.identifier) is torn")
            #expect(!text.isBelowFloor, "seed \(seed): \(source.identifier) \(words[1]) went backwards")
            let floor = await store.shelf.floors.texts[source.identifier]?.rank.version
            #expect(floor == text.version, "seed \(seed): the floor of \(source.identifier) \(words[1]) is lost")
            versions.append(Int(words[1]))
        }
        if !bench.events.faults.isEmpty { Issue.record("seed \(seed): \(bench.events.faults)") }
        return versions
    }

    @Test(arguments: [nil, "set"])
    func `T3, T4, T7: kill -9 at a random moment leaves whole texts, sets of one version, and no lower version`(
        group: String?
    ) async throws {
        var last = 0
        for seed in seeds(UInt64(12), quick: 3) {
            var dice = SplitMix(seed: seed)
            let child = try writer(group, from: last + 1)
            last = numbers(of: [child], killedAfter: 1...12, &dice).reduce(last, max)
            let versions = try await found(group, seed)
            #expect(versions.allSatisfy { $0 ?? 0 >= last }, "seed \(seed): \(versions) after \(last)")
            if group != nil { #expect(Set(versions).count == 1, "seed \(seed): a torn set, \(versions)") }
            last = max(last, versions.compactMap { $0 }.max() ?? 0)
        }
    }

    @Test func `T3, T4: killing one of two processes loses no text and no floor of either`() async throws {
        var last = ["one": 0, "two": 0]
        for seed in seeds(UInt64(6), quick: 2) {
            var dice = SplitMix(seed: seed)
            let names = ["one", "two"]
            let children = try names.map { try writer(nil, from: (last[$0] ?? 0) + 1, $0) }
            let isKilledFirst = Bool.random(using: &dice)
            for (number, child) in (isKilledFirst ? [(0, children[0]), (1, children[1])] : [(1, children[1]), (0, children[0])]) {
                func note(_ line: String) {
                    let version = Int(line)
                    #expect(version != nil, "seed \(seed): \(line)")
                    last[names[number]] = max(last[names[number]] ?? 0, version ?? 0)
                }
                for _ in 0..<Int.random(in: 1...15, using: &dice) { child.readLine().map(note) }
                child.kill()
                while let line = child.readLine() { note(line) }
            }
            let versions = try await found(nil, seed)
            #expect(versions[0] ?? 0 >= last["one"] ?? 0 && versions[1] ?? 0 >= last["two"] ?? 0, "seed \(seed): \(versions) after \(last)")
            last = ["one": versions[0] ?? 0, "two": versions[1] ?? 0]
        }
    }

    @Test func `T3, T7: two processes that switch one set never show a torn or lower one, while writing and after`() async throws {
        var last = 0
        for seed in seeds(UInt64(6), quick: 1) {
            var dice = SplitMix(seed: seed)
            let children = try (0..<2).map { try writer("set", from: last + 1 + $0, "one,two,three", "2") }
            var shown = last
            for child in children {
                for _ in 0..<Int.random(in: 1...8, using: &dice) {
                    let line = child.readLine()
                    #expect(line == nil || line.flatMap { Int($0) } != nil, "seed \(seed): \(line ?? "")")
                    last = max(last, line.flatMap { Int($0) } ?? 0)
                    // A third store opens while both write.
                    let versions = try await found("set", seed)
                    #expect(Set(versions).count == 1, "seed \(seed): a torn set, \(versions)")
                    #expect(versions[0] ?? 0 >= max(shown, last), "seed \(seed): \(versions) after \(shown) and \(last)")
                    shown = max(shown, versions[0] ?? 0)
                }
            }
            for child in children { child.kill() }
            last = max(last, try await found("set", seed)[0] ?? 0, shown)
        }
    }

    /// Saves one version of the set of three texts.
    ///
    /// - Parameters:
    ///   - step: The step after which the process kills itself.
    ///   - mode: The mode of its manifest.
    /// - Returns: Whether the process has shown the version.
    private func save(_ version: Int, step: Int? = nil, mode: String = "") throws -> Bool {
        let child = try writer("set", from: version, step: step, "one,two,three", "1", "1", mode)
        let isShown = child.readLine() == "\(version)"
        while child.readLine() != nil {}
        return isShown
    }

    /// Returns a test with a copy of this one's directory.
    private func copied() throws -> CrashTests {
        let other = try CrashTests()
        for name in try bench.place.names { try FileManager.default.copyItem(at: bench.place.file(name), to: other.bench.place.file(name)) }
        return other
    }

    /// The steps of a switch after which a process is killed: each file has three, so that between any two files one of them is tested.
    private static var steps: [Int] { part(of: 1...30, each: 3) }

    /// A switch writes the manifest and three records, each created, written, and renamed, and two copies of pointer and floors. A recovery
    /// writes the floors with the edition, the manifest, three records, the pointer, and the floors with the ranks.
    @Test(arguments: [false, true])
    func `T7, T16: kill -9 after any step of a switch or recovery leaves the old set or the new one, and the next recovery succeeds`(
        isRecovery: Bool
    ) async throws {
        let old = isRecovery ? 9 : 1, mode = isRecovery ? "recovered" : ""
        #expect(try save(old, mode: isRecovery ? "locked" : ""))
        for step in Self.steps {
            let test = try copied()
            _ = try test.save(2, step: step, mode: mode)
            let versions = try await test.found("set", UInt64(step))
            #expect(versions == [old, old, old] || versions == [2, 2, 2], "step \(step): \(versions)")
            guard isRecovery else { continue }
            #expect(try test.save(3, mode: mode), "step \(step)")
            #expect(try await test.found("set", UInt64(step)) == [3, 3, 3], "step \(step)")
        }
    }

    /// Two processes accept the even and the odd versions of one text, and one of them is killed.
    @Test func `T13: acceptances of two processes survive kill -9, and an older one replaces no newer one`() async throws {
        for seed in seeds(UInt64(6), quick: 2) {
            var dice = SplitMix(seed: seed)
            let directory = bench.place.file("accepting-\(seed)").path(percentEncoded: false)
            func accepter(_ first: Int) throws -> ChildProcess {
                try ChildProcess(program, [directory, "-", "\(first)", "-", "one", "2", "100000", "accepting"])
            }
            let children = [try accepter(1), try accepter(2)]
            let accepted = numbers(of: children, killedAfter: 1...40, &dice)
            let store = try TextStore(session: "crash", directory: URL(filePath: directory, directoryHint: .isDirectory))
            let newest = try #require(try await store.acceptance(of: "one")?.version?.major, "seed \(seed)")
            #expect(Int(newest) >= accepted.max() ?? 0, "seed \(seed)")
            for version in accepted {
                let text = VersionedText(identifier: "one", text: "one \(version)", version: SemanticVersion("\(version).0.0"))
                #expect(await !store.needsAcceptance(of: text, granularity: .digest), "seed \(seed): \(version) is lost")
            }
        }
    }

    @Test(arguments: Array(1...6))
    func `T13: kill -9 after any step of saving an acceptance keeps the earlier acceptances`(step: Int) async throws {
        let directory = bench.place.file("accepting").path(percentEncoded: false)
        let first = try ChildProcess(program, [directory, "-", "1", "-", "one", "1", "3", "accepting"])
        while first.readLine() != nil {}
        let second = try ChildProcess(program, [directory, "-", "4", "\(step)", "one", "1", "1", "accepting"])
        while second.readLine() != nil {}
        let store = try TextStore(session: "crash", directory: URL(filePath: directory, directoryHint: .isDirectory))
        let newest = try #require(try await store.acceptance(of: "one")?.version?.major)
        #expect(newest == 3 || newest == 4)
        for version in 1...3 {
            let text = VersionedText(identifier: "one", text: "one \(version)", version: SemanticVersion("\(version).0.0"))
            #expect(await !store.needsAcceptance(of: text, granularity: .digest))
        }
    }
}

/// Returns the numbers that processes print, one a line, and kills the processes after a random number of lines of each.
func numbers(of children: [ChildProcess], killedAfter lines: ClosedRange<Int>, _ dice: inout SplitMix) -> [Int] {
    var numbers: [Int] = []
    for _ in 0..<Int.random(in: lines, using: &dice) { numbers += children.compactMap { $0.readLine() }.compactMap { Int($0) } }
    // The kill may hit between two lines as well as at one.
    for _ in 0..<Int.random(in: 0...3000, using: &dice) { _ = SHA256.digest(of: []) }
    for child in children {
        child.kill()
        while let line = child.readLine() { if let number = Int(line) { numbers.append(number) } }
    }
    return numbers
}

#endif
