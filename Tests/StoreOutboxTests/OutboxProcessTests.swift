import Foundation
import Testing
import Trials

@testable import StoreCore
@testable import StoreFiles
@testable import StorePlatform

#if os(macOS) || os(Linux)

/// A program with an outbox that is killed at random moments, and an origin in another process that records what it performs.
@Suite(.serialized, .timeLimit(.minutes(hangMinutes)))
struct OutboxProcessTests {
    /// The number of kills; `STOREHOUSE_SEEDS=1000` for a long run.
    @Test func `O1, O3, O4, O7, O14: a killed program loses, reorders and repeats no change`() async throws {
        let place = try TemporaryDirectory()
        func start(_ mode: String, _ arguments: String...) throws -> ChildProcess {
            try ChildProcess("CrashWriter", ["life", place.directory.path, mode] + arguments)
        }
        #expect(mkfifo(place.file("channel").path(percentEncoded: false), 0o600) == 0)
        let origin = try start("origin")
        #expect(try await origin.nextLine() == "ready")
        var kept: [Int] = []
        var next = 0
        for _ in 0..<rounds(30, quick: 4) {
            let child = try start("live", "\(next)")
            let lines = Int.random(in: 0...40)
            func read(_ line: String) {
                guard line.hasPrefix("kept "), let number = Int(line.dropFirst(5)) else { return }
                kept.append(number)
            }
            for _ in 0..<lines {
                guard let line = try await child.nextLine() else { break }
                read(line)
            }
            for _ in 0..<Int.random(in: 0...3_000) { _ = SHA256.digest(of: []) }
            child.kill()
            while let line = child.readLine() { read(line) }
            child.wait()
            // A command may be in the log without a word of it.
            next = max(next, kept.last ?? 0) + 3
        }
        let last = try start("drain")
        #expect(try await last.nextLine() == "started")
        #expect(try await last.nextLine() == "drained")
        last.wait()
        try FileHandle(forWritingTo: place.file("channel")).write(contentsOf: Data("end\n".utf8))
        #expect(try await origin.nextLine() == "done")
        let performed = try String(contentsOf: place.file("performed"), encoding: .utf8).split(separator: "\n")
            .map { line in line.split(separator: " ").compactMap { Int($0) } }
        let numbers = performed.map { $0[1] }
        #expect(Set(kept).subtracting(numbers) == [], "acknowledged commands were lost")
        #expect(Set(numbers).count == numbers.count, "commands were performed twice")
        for lane in 0..<3 {
            let inLane = performed.filter { $0[0] == lane }.map { $0[1] }
            #expect(inLane == inLane.sorted(), "lane \(lane) was reordered")
            let saved = try await FileCacher<Int, [Int]>(directory: place.file("lists")).load(param: lane)
            #expect(saved?.content == inLane, "the saved content of lane \(lane) differs from the origin's")
        }
        if isLongRun { print("\(rounds(30, quick: 4)) kills: \(kept.count) acknowledged, \(numbers.count) performed") }
    }

    /// The numbers of the commands that a child has kept until its end, or until it was killed after some of them.
    private func numbersKept(by child: ChildProcess, killedAfter limit: Int = .max) async throws -> [Int] {
        var numbers: [Int] = []
        while let line = try await child.nextLine() {
            #expect(line.hasPrefix("kept "), "\(line)")
            numbers += line.split(separator: " ").compactMap { Int($0) }
            if numbers.count == limit { child.kill() }
        }
        return numbers
    }

    /// The number of histories; `STOREHOUSE_SEEDS=100` for a long run.
    @Test func `E1, O1, O4, O7, O8, O13: programs over one directory that create and change posts, and are killed, agree with the origin`()
        async throws
    {
        for seed in seeds(UInt64(40), quick: 3, sanitized: 2) {
            let (place, form) = (try TemporaryDirectory(), Int(seed % 16))
            func start(_ mode: String, _ arguments: Any...) throws -> ChildProcess {
                try ChildProcess("CrashWriter", ["app", place.directory.path, mode, "\(form)"] + arguments.map { "\($0)" })
            }
            var dice = SplitMix(seed: seed)
            var kept: [Int] = []
            #expect(try await start("begin").nextLine() == "begun")
            for round in 1...2 + dice.below(3) {
                let children = try (1...1 + dice.below(3)).map { try start("live", dice.next() >> 1, 10_000 * round + 1000 * $0) }
                // The first one may be killed, beside its own end.
                kept += try await numbersKept(by: children[0], killedAfter: 1 + dice.below(20))
                for child in children.dropFirst() { kept += try await numbersKept(by: child) }
            }
            let reader = try start("read")
            let line = try #require(try await reader.nextLine(), "seed \(seed), form \(form): the reader has crashed")
            #expect(line.hasPrefix("performed "), "seed \(seed), form \(form): \(line)")
            let performed = line.split(separator: " ").compactMap { Int($0) }
            #expect(Set(kept).subtracting(performed) == [], "seed \(seed), form \(form): commands were lost")
            #expect(Set(performed).count == performed.count, "seed \(seed), form \(form): commands were performed twice")
        }
    }
}

#endif
