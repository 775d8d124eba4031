internal import Foundation
internal import StoreCore
import StoreFiles
import StoreOutbox

extension Experiment {
    /// An outbox and its log, compared with handwritten code that encodes, checksums, locks and appends the same records.
    static var outbox: [Experiment] { [append, submit, read, load, hitWithOutbox] }

    private static let append = Experiment(.files, "outbox-append", "append a command of 200 bytes to a log") { scale in
        let place = BenchmarkDirectory()
        let times = scale.times(5_000, quick: 1_000)
        return [
            .mutex { try timeHandwrittenAppends(times, to: try place.makeDirectory()) },
            .storehouse {
                let log = try OutboxLog(directory: URL(filePath: try place.makeDirectory(), directoryHint: .isDirectory))
                let encoder = JSONEncoder()
                let watch = Stopwatch()
                for number in 0..<times { _ = try log.append([encoder.encode(Like.some(number))], durability: .crash) }
                return [watch.nanoseconds / Double(times)]
            },
        ]
    }

    private static let submit = Experiment(.files, "outbox-submit", "submit a command to an outbox, compared with an append") { scale in
        let place = BenchmarkDirectory()
        let times = scale.times(5_000, quick: 1_000)
        return [
            .mutex { try timeHandwrittenAppends(times, to: try place.makeDirectory()) },
            .storehouse {
                let outbox = try Outbox(directory: URL(filePath: try place.makeDirectory(), directoryHint: .isDirectory))
                await outbox.register(LikePost.self) { _, _ in }
                let watch = Stopwatch()
                for number in 0..<times { try await outbox.submit(LikePost(post: number)) }
                return [watch.nanoseconds / Double(times)]
            },
        ]
    }

    private static let load = Experiment(.files, "outbox-load", "10 000 pending commands loaded and shown") { _ in
        let place = BenchmarkDirectory()
        let (plain, own) = (try place.makeDirectory(), URL(filePath: try place.makeDirectory(), directoryHint: .isDirectory))
        let byHand = try HandwrittenLog(plain)
        let store = Store(cacher: MemoryCacher<Int, Int>()) { (_: Int) in 0 }
        let outbox = try Outbox(directory: own)
        await outbox.register(LikePost.self, patching: store, at: \.list) {
            $1 += 1
        } perform: { _, _ in
        }
        for number in 0..<10_000 {
            try JSONEncoder().encode(Like.some(number)).withUnsafeBytes { try byHand.append($0) }
            try await outbox.submit(LikePost(post: number))
        }
        return [
            .mutex { try timeHandwrittenRead(plain) },
            .storehouse {
                let store = Store(cacher: MemoryCacher<Int, Int>()) { (_: Int) in 0 }
                let watch = Stopwatch()
                let outbox = try Outbox(directory: own)
                await outbox.register(LikePost.self, patching: store, at: \.list) {
                    $1 += 1
                } perform: { _, _ in
                }
                let figure = watch.nanoseconds
                withExtendedLifetime(outbox) {}
                return [figure]
            },
        ]
    }

    private static let hitWithOutbox = Experiment(.files, "outbox-hit", "cache hit, an empty outbox is registered") { scale in
        let place = BenchmarkDirectory()
        let (plain, registered) = (
            Store(cacher: MemoryCacher<Int, Int>()) { (_: Int) in 0 }, Store(cacher: MemoryCacher<Int, Int>()) { (_: Int) in 0 }
        )
        let outbox = try Outbox(directory: URL(filePath: try place.makeDirectory(), directoryHint: .isDirectory))
        await outbox.register(LikePost.self, patching: registered, at: \.list) {
            $1 += 1
        } perform: { _, _ in
        }
        outbox.start()
        for store in [plain, registered] { await store[0].update(1) }
        let times = scale.times(500_000, quick: 100_000)
        return [
            .floor { try await perHit(times, plain[0]) },
            .storehouse {
                let figure = try await perHit(times, registered[0])
                withExtendedLifetime(outbox) {}
                return figure
            },
        ]
    }

    private static let read = Experiment(.files, "outbox-read", "10 000 commands read from a log and decoded") { _ in
        let place = BenchmarkDirectory()
        let (plain, own) = (try place.makeDirectory(), URL(filePath: try place.makeDirectory(), directoryHint: .isDirectory))
        let (byHand, log) = (try HandwrittenLog(plain), try OutboxLog(directory: own))
        for number in 0..<10_000 {
            let record = try JSONEncoder().encode(Like.some(number))
            try record.withUnsafeBytes { try byHand.append($0) }
            _ = try log.append([record], durability: .crash)
        }
        return [
            .mutex { try timeHandwrittenRead(plain) },
            .storehouse {
                let decoder = JSONDecoder()
                let watch = Stopwatch()
                var count = 0
                for record in try OutboxLog(directory: own).read().entries {
                    count += try decoder.decode(Like.self, from: record).post
                }
                blackHole(count)
                return [watch.nanoseconds]
            },
        ]
    }
}

/// A typical command of an app with the details that an outbox adds: about 200 bytes of JSON.
private struct Like: Codable, Sendable {
    var id: UUID
    var name: String
    var lane: String
    var submitted: Date
    var post: Int
    var text: String

    static func some(_ number: Int) -> Like {
        Like(
            id: UUID(), name: "like", lane: "posts/\(number)", submitted: Date(timeIntervalSinceReferenceDate: 800_000_000), post: number,
            text: "a change that survives")
    }
}

/// The same command without the details, which the outbox adds.
private struct LikePost: StoreOutbox.Command {
    static let name = "like"
    var post: Int
    var text = "a change that survives"

    var list: Int { post % 100 }
}

private func perHit(_ times: Int, _ handle: StoreFlowable<Int, Int>) async throws -> [Double] {
    let watch = Stopwatch()
    var sum = 0
    for _ in 0..<times { sum &+= try await handle.requireData() }
    blackHole(sum)
    return [watch.nanoseconds / Double(times)]
}

private func timeHandwrittenAppends(_ times: Int, to directory: String) throws -> [Double] {
    let log = try HandwrittenLog(directory)
    let encoder = JSONEncoder()
    let watch = Stopwatch()
    for number in 0..<times { try encoder.encode(Like.some(number)).withUnsafeBytes { try log.append($0) } }
    return [watch.nanoseconds / Double(times)]
}

private func timeHandwrittenRead(_ directory: String) throws -> [Double] {
    let decoder = JSONDecoder()
    let watch = Stopwatch()
    var count = 0
    try HandwrittenLog.read(directory + "/log") { count += try decoder.decode(Like.self, from: Data($0)).post }
    blackHole(count)
    return [watch.nanoseconds]
}
