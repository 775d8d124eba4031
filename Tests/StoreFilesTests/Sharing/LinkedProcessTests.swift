import Foundation
import StorePlatform
import Testing
import Trials

#if os(macOS) || os(Linux)

/// Tests linked stores in processes that are killed, and in processes that share a directory.
@Suite(.serialized, .timeLimit(.minutes(hangMinutes)))
struct LinkedProcessTests {
    private let place: TemporaryDirectory

    init() throws { place = try TemporaryDirectory() }

    private func start(_ mode: String, _ arguments: String...) throws -> ChildProcess {
        try ChildProcess("CrashWriter", ["linked", place.directory.path, mode] + arguments)
    }

    // MARK: Killed processes

    /// The number of kills; `STOREHOUSE_SEEDS=500` for a long run.
    @Test func `E1, E2, E7, E8: after kill -9, details, lists and search agree, and no saved value goes back`() async throws {
        var shelf = Shelf()
        for seed in seeds(UInt64(30), quick: 3, sanitized: 3) {
            var dice = SplitMix(seed: seed)
            let child = try start("live", "\(shelf.last + 100)")
            for _ in 0...dice.below(30) {
                guard let line = try await child.nextLine() else { break }
                try shelf.read(line, seed)
            }
            // The kill may fall between two lines as well as right after one.
            for _ in 0..<dice.below(100_000) { _ = dice.next() }
            child.kill()
            while let line = try await child.nextLine() { try shelf.read(line, seed) }
            #expect(try await child.ending() == SIGKILL, "seed \(seed)")
            let reader = try start("read")
            let line = try await reader.nextLine()
            try shelf.read(try #require(line), seed)
            #expect(try await reader.ending() == 0)
        }
        #expect(!shelf.floor.isEmpty)
    }

    /// What the helper program has reported about the articles.
    private struct Shelf {
        /// The numbers of title, likes and text of which no later line may have a smaller one.
        var floor: [Int: [Int]] = [:]
        /// The largest number so far.
        var last = 1
        /// The articles with a record.
        private var kept: Set<Int> = []
        /// The removals since the last save, with their numbers.
        private var removing: [Int: Int] = [:]

        mutating func read(_ line: String, _ seed: UInt64) throws {
            let words = line.split(separator: " ")
            let numbers = words.dropFirst().prefix(2).compactMap { Int($0) }
            switch words.first ?? "" {
            case "removing": removing[numbers[0]] = numbers[1]
            case "saved":
                last = max(last, numbers[0])
                let shown = try parse(words.dropFirst(2), seed)
                for (id, number) in removing where shown[id] == nil { floor[id] = [number, number, number] }
                take(shown)
            case "found":
                let shown = try parse(words.dropFirst(), seed)
                for id in kept where removing[id] == nil { #expect(shown[id]?.isKept == true, "seed \(seed): \(id) is lost: \(line)") }
                take(shown)
            default: #expect(line == "started")
            }
        }

        private mutating func take(_ shown: [Int: (isKept: Bool, numbers: [Int])]) {
            for (id, place) in shown { floor[id] = place.numbers + (floor[id] ?? [0, 0, 0])[place.numbers.count...] }
            kept = Set(shown.filter { $0.value.isKept }.keys)
            removing = [:]
            last = max(last, floor.values.joined().max() ?? 0)
        }

        /// Reads the words `id:detail:title:likes:text`, and checks the numbers.
        private func parse(_ words: ArraySlice<Substring>, _ seed: UInt64) throws -> [Int: (isKept: Bool, numbers: [Int])] {
            var shown: [Int: (isKept: Bool, numbers: [Int])] = [:]
            for word in words {
                let numbers = word.split(separator: ":").compactMap { Int($0) }
                try #require(!word.contains("!") && numbers.count >= 4, "seed \(seed): the places differ: \(word)")
                let fields = Array(numbers[2...])
                let isNewer = zip(fields, floor[numbers[0]] ?? [0, 0, 0]).allSatisfy { $0 >= $1 }
                try #require(isNewer, "seed \(seed): \(word) after \(floor[numbers[0]] ?? [])")
                // A failed change has a larger number than any other.
                #expect(fields.allSatisfy { $0 <= last + 200 }, "seed \(seed): \(word)")
                shown[numbers[0]] = (numbers[1] == 1, fields)
            }
            return shown
        }
    }

    // MARK: Processes that share a directory

    /// Reads lines of a process until all of these were among them.
    private func lines(_ wanted: Set<String>, of child: ChildProcess) async throws {
        var missing = wanted
        while !missing.isEmpty {
            let line = try await child.nextLine()
            missing.remove(try #require(line))
        }
    }

    /// Changes article 3 in a process of its own.
    private func change(_ mode: String, to number: Int) async throws {
        let child = try start(mode, "\(number)")
        #expect(try await child.nextLine() == "changed")
        #expect(try await child.ending() == 0)
    }

    @Test(arguments: ["detail", "list"])
    func `D1, E10: a change by one process is in the lists of another after its notice`(_ observed: String) async throws {
        let reader = try start("follow", observed)
        try await lines(["list 1 1", "search 1 1"], of: reader)
        try await change("like", to: 9)
        try await lines(["list 1 9", "search 1 9"], of: reader)
        try await change("rename", to: 10)
        try await lines(["list 10 9", "search 10 9"], of: reader)
    }

    @Test(arguments: ["detail", "list"])
    func `D4, E10: a change that a gap hides is in the lists at once if the entity is live, or with its next change`(
        _ observed: String
    ) async throws {
        let reader = try start("follow", observed)
        try await lines(["list 1 1", "search 1 1"], of: reader)
        reader.send(SIGSTOP)
        try await change("like", to: 9)
        try await addChanges(2_060, in: place, "/articles")
        reader.send(SIGCONT)
        try await lines(observed == "detail" ? ["gap", "list 1 9", "search 1 9"] : ["gap"], of: reader)
        try await change("rename", to: 10)
        try await lines(["list 10 9", "search 10 9"], of: reader)
    }
}

#endif
