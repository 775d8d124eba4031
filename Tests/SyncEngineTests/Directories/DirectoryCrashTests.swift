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

    private func start(_ generation: Int, _ durability: Durability = .crash, holds: Bool = false) throws -> ChildProcess {
        try ChildProcess(
            "SyncCrashWriter",
            [bench.url.path(percentEncoded: false), "\(generation)", "\(Self.fileCount)", durability == .power ? "power" : "crash"]
                + (holds ? ["hold"] : []))
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

    /// The remaining lines of a process, which has then ended.
    private func lines(_ child: ChildProcess) -> [String] { child.rest.split(separator: "\n").map(String.init) }

    @Test func `S9: kill -9 at a random moment tears no file, and the next run completes`() async throws {
        let first = Int.random(in: 1...1_000_000)
        for round in seeds(8, quick: 3, sanitized: 2) {
            var chance = SplitMix(seed: first + round)
            let durability: Durability = Bool.random(using: &chance) ? .power : .crash
            let context = Comment(rawValue: "seed \(first + round), round \(round), \(durability)")
            let child = try start(round, durability)
            var given = 0
            for _ in 0..<Int.random(in: 0...60, using: &chance) {
                guard let line = child.readLine() else { break }
                given += line.split(separator: " ").last.flatMap { Int($0) } ?? 0
            }
            child.kill()
            while let line = child.readLine() { given += line.split(separator: " ").last.flatMap { Int($0) } ?? 0 }
            var total = 0
            for number in 0..<Self.fileCount {
                let new = content(number, generation: round)
                if round == 1 || number % 5 != 0 { total += new.count }
                guard let found = try bytes(number) else { continue }
                #expect(found == new || found == content(number, generation: round - 1), "file \(number) is torn; \(context)")
            }
            let next = try start(round, durability)
            var transferred = 0
            var last = ""
            while let line = next.readLine() {
                last = line
                transferred += line.split(separator: " ").last.flatMap { Int($0) } ?? 0
            }
            next.wait()
            #expect(last == "done", context)
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
        let path = bench.url.path(percentEncoded: false)
        func start(_ generation: Int, _ durability: Durability) throws -> ChildProcess {
            try ChildProcess("SyncCrashWriter", [path, "\(generation)", "\(count)", durability == .power ? "power" : "crash", mode])
        }
        #expect(lines(try start(0, .crash)).last == "done 0")
        let first = Int.random(in: 1...1_000_000)
        var killed = 0
        let rounds: ClosedRange<Int> = seeds(100, quick: 3, sanitized: 2)
        // On a busy machine, all processes of the usual rounds may end before the test gets to kill one.
        for round in rounds.lowerBound...rounds.upperBound + 100 where rounds.contains(round) || killed == 0 {
            var chance = SplitMix(seed: first + round)
            let durability: Durability = Bool.random(using: &chance) ? .power : .crash
            let context = Comment(rawValue: "seed \(first + round), round \(round), \(durability)")
            let child = try start(round, durability)
            // Each move adds lines of about 170 bytes to the journal, after all files have got a second name among the parts.
            let (names, growth) = (Int.random(in: 0...count, using: &chance), Int.random(in: -8_000...12_000, using: &chance))
            let size = try journalSize
            while child.isRunning {
                if growth < 0 ? try partNames.count > names : try journalSize > size + growth || journalSize < size { break }
                try await Task.sleep(for: .microseconds(200))
            }
            if child.isRunning { killed += 1 }
            child.kill()
            _ = lines(child)
            let installed = try bench.keys.map { try Data(contentsOf: bench.url.appending(path: $0.path)) }
            let parts = try partNames.map { try Data(contentsOf: bench.url.appending(path: ".storehouse/parts/\($0)")) }
            #expect(Set(contents.map { Data($0) }).isSuperset(of: installed), "torn; \(context)")
            #expect(Set(installed + parts).isSuperset(of: contents.map { Data($0) }), "lost; \(context)")
            var next = lines(try start(round, durability))
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
        let (count, path) = (80, bench.url.path(percentEncoded: false))
        func run(_ generation: Int, _ durability: Durability) throws -> ChildProcess {
            try ChildProcess("SyncCrashWriter", [path, "\(generation)", "\(count)", durability == .power ? "power" : "crash", "metadata"])
        }
        #expect(lines(try run(0, .crash)).last?.hasPrefix("done") == true)
        let first = Int.random(in: 1...1_000_000)
        var killed = 0
        let rounds: ClosedRange<Int> = seeds(100, quick: 3, sanitized: 2)
        for round in rounds.lowerBound...rounds.upperBound + 100 where rounds.contains(round) || killed == 0 {
            var chance = SplitMix(seed: first + round)
            let durability: Durability = Bool.random(using: &chance) ? .power : .crash
            let context = Comment(rawValue: "seed \(first + round), round \(round), \(durability)")
            let size = try journalSize
            let child = try run(2 * round, durability)
            let growth = Int.random(in: 0...9_000, using: &chance)
            while child.isRunning {
                if try journalSize > size + growth || journalSize < size { break }
                try await Task.sleep(for: .microseconds(200))
            }
            if child.isRunning { killed += 1 }
            child.kill()
            _ = lines(child)
            // The next list may be another one.
            let generation = 2 * round + Int.random(in: 0...1, using: &chance)
            let last = lines(try run(generation, durability)).last ?? ""
            #expect(last.hasPrefix("done"), "\(last); \(context)")
            #expect(try objects() == described(count, generation: generation), context)
        }
        #expect(killed > 0)
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
        let before = try start(1)
        while before.readLine() != nil {}
        let limited = try ChildProcess(
            "SyncCrashWriter", [bench.url.path(percentEncoded: false), "2", "\(Self.fileCount)", "crash", "limited"])
        let last = lines(limited).last ?? ""
        limited.wait()
        #expect(last.hasPrefix("failed incomplete"))
        #expect(last.contains("File too large") || last.contains("\(POSIXErrorCode.EFBIG.rawValue)"), "\(last)")
        for number in 0..<Self.fileCount {
            let found = try bytes(number)
            #expect(found == content(number, generation: 1) || found == content(number, generation: 2), "file \(number) is torn")
        }
        #expect(lines(try start(2)).last == "done")
        for number in 0..<Self.fileCount { #expect(try bytes(number) == content(number, generation: 2)) }
    }

    @Test func `S14: a second process finds the directory locked, and a killed one leaves no lock`() async throws {
        let first = try start(1, holds: true)
        #expect(first.readLine() != nil)
        let second = try start(1)
        let line = second.readLine()
        second.wait()
        #expect(line?.hasPrefix("failed targetLocked") == true)
        first.kill()
        while first.readLine() != nil {}
        let third = try start(1)
        #expect(lines(third).last == "done")
        third.wait()
    }
}

#endif
