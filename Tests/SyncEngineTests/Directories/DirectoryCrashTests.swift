import Foundation
import StoreCore
import Testing
import Trials
@testable import SyncEngine

#if os(macOS) || os(Linux)

/// S9, S10 and S14 with real processes that compete and are killed.
@Suite(.serialized)
struct DirectoryCrashTests {
    private let bench: DirectoryBench

    init() throws {
        bench = try DirectoryBench()
    }

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
        var value = UInt64(number &* 7919 &+ (number % 5 == 0 ? 0 : generation) &* 104_729 &+ 1)
        return (0..<size).map { _ in
            value = value &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return UInt8(truncatingIfNeeded: value >> 56)
        }
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
            #expect(
                transferred <= total - given + 16 * 2 * 20_000, "\(given) of \(total) were sent, then \(transferred); \(context)"
            )
            for number in 0..<Self.fileCount { #expect(try bytes(number) == content(number, generation: round), context) }
        }
    }

    @Test func `S9: a file size limit fails the pass, tears no file, and the next run completes`() async throws {
        let before = try start(1)
        while before.readLine() != nil {}
        let limited = try ChildProcess(
            "SyncCrashWriter", [bench.url.path(percentEncoded: false), "2", "\(Self.fileCount)", "crash", "limited"])
        var last = ""
        while let line = limited.readLine() { last = line }
        limited.wait()
        #expect(last.hasPrefix("failed incomplete"))
        #expect(last.contains("File too large") || last.contains("\(POSIXErrorCode.EFBIG.rawValue)"), "\(last)")
        for number in 0..<Self.fileCount {
            let found = try bytes(number)
            #expect(found == content(number, generation: 1) || found == content(number, generation: 2), "file \(number) is torn")
        }
        let next = try start(2)
        while let line = next.readLine() { last = line }
        #expect(last == "done")
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
        var last = ""
        while let line = third.readLine() { last = line }
        third.wait()
        #expect(last == "done")
    }
}

#endif
