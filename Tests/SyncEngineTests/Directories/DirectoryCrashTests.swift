import Foundation
import StoreCore
import StorePlatform
import Testing
import Trials
@testable import SyncEngine

#if os(macOS) || os(Linux)

/// S9, S10 and S14 with real processes that compete and are killed.
@Suite(.serialized)
struct DirectoryCrashTests {
    private let bench: DirectoryBench

    init() throws { bench = try DirectoryBench() }

    private static let fileCount = isSanitized ? 8 : 24

    private func start(_ generation: Int, _ durability: Durability = .crash, mode: String = "") throws -> ChildProcess {
        try bench.writer(generation, count: Self.fileCount, durability, mode: mode)
    }

    /// The expected content of a file, by the helper's rule.
    private func content(_ number: Int, generation: Int) -> [UInt8] {
        let size = number % 3 == 0 ? 150_000 + number : 300 + number * 17
        return pseudorandomBytes(size, seed: number &* 7919 &+ (number % 5 == 0 ? 0 : generation) &* 104_729 &+ 1)
    }

    private func bytes(_ number: Int) throws -> [UInt8]? {
        let path = "d\(number % 4)/f\(number)"
        return bench.exists(path) ? Array(try Data(contentsOf: bench.url.appending(path: path))) : nil
    }

    @Test func `S9: kill -9 at a random moment tears no file, and the next run completes`() async throws {
        let first = Int.random(in: 1...1_000_000)
        for round in seeds(8, quick: 3, sanitized: 2) {
            var chance = SplitMix(seed: first + round)
            let durability: Durability = Bool.random(using: &chance) ? .power : .crash
            let context = Comment(rawValue: "seed \(first + round), round \(round), \(durability)")
            let child = try start(round, durability)
            func size(_ line: String) -> Int { line.split(separator: " ").last.flatMap { Int($0) } ?? 0 }
            var given = 0
            for _ in 0..<Int.random(in: 0...60, using: &chance) {
                guard let line = child.readLine() else { break }
                given += size(line)
            }
            child.kill()
            given += child.lines.reduce(0) { $0 + size($1) }
            var total = 0
            for number in 0..<Self.fileCount {
                let new = content(number, generation: round)
                if round == 1 || number % 5 != 0 { total += new.count }
                guard let found = try bytes(number) else { continue }
                #expect(found == new || found == content(number, generation: round - 1), "file \(number) is torn; \(context)")
            }
            let next = try start(round, durability).lines
            let transferred = next.reduce(0) { $0 + size($1) }
            #expect(next.last == "done", context)
            // Each worker may repeat a small piece that was sent but not yet stored in a resumable part.
            #expect(transferred <= total - given + 16 * 2 * 20_000, "\(given) of \(total) were sent, then \(transferred); \(context)")
            for number in 0..<Self.fileCount { #expect(try bytes(number) == content(number, generation: round), context) }
        }
    }

    @Test(arguments: ["moves", "deltas"])
    func `S9, S20, S26: kill -9 at a random moment of moves and changes loses and tears nothing, and the next run downloads nothing`(
        mode: String
    ) async throws {
        let count = 60
        let contents = (0..<count).map { [UInt8](repeating: UInt8($0), count: 1_000 + $0) }
        #expect(try bench.writer(0, count: count, mode: mode).lines.last == "done 0")
        // Each move adds lines of about 170 bytes to the journal, after all files have got a second name among the parts.
        try await killing(growth: -8_000...12_000) { round, durability in
            try bench.writer(round, count: count, durability, mode: mode)
        } then: { round, durability, _, context in
            let installed = try bench.keys.map { try Data(contentsOf: bench.url.appending(path: $0.path)) }
            let parts = try partNames.map { try Data(contentsOf: bench.url.appending(path: ".storehouse/parts/\($0)")) }
            #expect(Set(contents.map { Data($0) }).isSuperset(of: installed), "torn; \(context)")
            #expect(Set(installed + parts).isSuperset(of: contents.map { Data($0) }), "lost; \(context)")
            var next = try bench.writer(round, count: count, durability, mode: mode).lines
            if mode == "deltas" {
                // The changes are requested again, or the killed process has saved their token after it has applied all of them.
                let token = next.removeFirst()
                #expect(token == "since \(round - 1)" || token == "since \(round)" && next == ["done 0"], "\(token), \(next); \(context)")
            }
            #expect(next.count == 1 && next.last?.hasPrefix("done") == true, "\(next); \(context)")
            #expect(try bench.keys.count == count, context)
            for (number, content) in contents.enumerated() {
                let path = movedPath(number, generation: round, count: count)
                #expect(try Array(Data(contentsOf: bench.url.appending(path: path))) == content, "\(path); \(context)")
            }
        }
    }

    /// Starts a process in each round, kills it at a random moment, and calls a closure.
    ///
    /// - Parameter growth: The growth of the journal after which a process is killed. If it is negative, the number of parts decides.
    private func killing(
        growth: ClosedRange<Int>, _ start: (_ round: Int, Durability) throws -> ChildProcess,
        then check: (_ round: Int, Durability, inout SplitMix, Comment) throws -> Void
    ) async throws {
        let first = Int.random(in: 1...1_000_000)
        var killed = 0
        let rounds: ClosedRange<Int> = seeds(100, quick: 3, sanitized: 2)
        // On a busy machine, all processes of the usual rounds may end before the test gets to kill one.
        for round in rounds.lowerBound...rounds.upperBound + 100 where rounds.contains(round) || killed == 0 {
            var chance = SplitMix(seed: first + round)
            let durability: Durability = Bool.random(using: &chance) ? .power : .crash
            let context = Comment(rawValue: "seed \(first + round), round \(round), \(durability)")
            let size = try journalSize
            let child = try start(round, durability)
            let (names, growth) = (Int.random(in: 0...60, using: &chance), Int.random(in: growth, using: &chance))
            while child.isRunning {
                if growth < 0 ? try partNames.count > names : try journalSize > size + growth || journalSize < size { break }
                try await Task.sleep(for: .microseconds(200))
            }
            if child.isRunning { killed += 1 }
            child.kill()
            _ = child.lines
            try check(round, durability, &chance, context)
        }
        #expect(killed > 0)
    }

    /// The path of a file, by the helper's rule.
    private func movedPath(_ number: Int, generation: Int, count: Int) -> String {
        switch number % 4 {
        case 0: "cycle/\((number / 4 + generation) % ((count + 3) / 4))"
        case 1: "chain/\(number / 4 + generation)"
        case 2: "directory-\(generation)/\(number)"
        default: generation % 2 == 0 ? "shape/\(number)" : "shape/\(number)/inner"
        }
    }

    private var partNames: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: bench.url.path(percentEncoded: false) + "/.storehouse/parts") }
    }

    private var journalSize: Int {
        get throws { try FileStatus.of(path: bench.url.path(percentEncoded: false) + "/.storehouse/journal")?.size ?? 0 }
    }

    @Test func `S9, S27: kill -9 at a random moment of changes of metadata leaves nothing behind`() async throws {
        let count = 80
        #expect(try bench.writer(0, count: count, mode: "metadata").lines.last?.hasPrefix("done") == true)
        try await killing(growth: 0...9_000) { round, durability in
            try bench.writer(2 * round, count: count, durability, mode: "metadata")
        } then: { round, durability, chance, context in
            // The next list may be another one.
            let generation = 2 * round + Int.random(in: 0...1, using: &chance)
            let last = try bench.writer(generation, count: count, durability, mode: "metadata").lines.last ?? ""
            #expect(last.hasPrefix("done"), "\(last); \(context)")
            #expect(try objects() == described(count, generation: generation), context)
        }
    }

    /// The files, links and empty directories with their metadata, without those of the target itself.
    private func objects() throws -> [String: String] {
        let root = bench.url.path(percentEncoded: false)
        var all: [String: String] = [:]
        for name in try FileManager.default.subpathsOfDirectory(atPath: root) where !name.hasPrefix(".storehouse") {
            let path = root + "/" + name
            guard let status = try FileStatus.of(path: path) else { continue }
            switch status.kind {
            case .regular:
                let text = String(decoding: FileManager.default.contents(atPath: path) ?? Data(), as: UTF8.self)
                all[name] = "\(String(status.permissions, radix: 8)) \(status.modified / 1_000_000_000) \(text)"
            case .link: all[name] = "→ " + (try FileManager.default.destinationOfSymbolicLink(atPath: path))
            default: if try FileManager.default.contentsOfDirectory(atPath: path).isEmpty { all[name] = "directory" }
            }
        }
        return all
    }

    /// The expected objects, by the helper's rule.
    private func described(_ count: Int, generation: Int) -> [String: String] {
        var all: [String: String] = [:]
        for number in 0..<count {
            let file = "\(generation % 2 == 0 ? 640 : 700) \(1_000_000_000 + generation) content \(number)"
            switch number % 5 {
            case 0: all["files/\(number)"] = file
            case 1: all["links/\(number)"] = "→ ../files/\(number + generation)"
            case 2: all["directories-\(generation)/\(number)"] = "directory"
            case 3: all["links-\(generation)/\(number)"] = "→ ../files/0"
            default: all["shapes/\(number)"] = [file, "→ \(generation)", "directory"][(number + generation) % 3]
            }
        }
        return all
    }

    @Test func `S9: a file size limit fails the pass, tears no file, and the next run completes`() async throws {
        _ = try start(1).lines
        let last = try start(2, mode: "limited").lines.last ?? ""
        #expect(last.hasPrefix("failed incomplete"))
        #expect(last.contains("File too large") || last.contains("\(POSIXErrorCode.EFBIG.rawValue)"), "\(last)")
        for number in 0..<Self.fileCount {
            let found = try bytes(number)
            #expect(found == content(number, generation: 1) || found == content(number, generation: 2), "file \(number) is torn")
        }
        #expect(try start(2).lines.last == "done")
        for number in 0..<Self.fileCount { #expect(try bytes(number) == content(number, generation: 2)) }
    }

    @Test func `S14: a second process finds the directory locked, and a killed one leaves no lock`() async throws {
        let first = try start(1, mode: "hold")
        #expect(first.readLine() != nil)
        #expect(try start(1).lines.first?.hasPrefix("failed targetLocked") == true)
        first.kill()
        _ = first.lines
        #expect(try start(1).lines.last == "done")
    }
}

#endif
