import Foundation
import StoreCore
internal import StoreOutbox
internal import StoreFiles
import Trials

/// Appends a number to the list of a lane.
private struct AppendNumber: Command {
    static let name = "append"
    var lane: Int
    var number: Int
}

/// A program with an outbox, and its origin, which is another process.
enum OutboxLife {
    static func run(_ mode: String, _ directory: URL, _ arguments: [String]) async throws {
        let channel = directory.appending(path: "channel").path(percentEncoded: false)
        switch mode {
        case "live": try await live(directory, channel, from: arguments.first.flatMap { Int($0) } ?? 0)
        case "drain": try await live(directory, channel, from: nil)
        case "origin": try serve(directory, channel)
        default: say("unknown mode \(mode)")
        }
    }

    /// Submits commands until the process is killed, and prints each one that is kept; or delivers all of them.
    private static func live(_ directory: URL, _ channel: String, from first: Int?) async throws {
        let lanes = 3
        let files = FileCacher<Int, [Int]>(directory: directory.appending(path: "lists"))
        let store = Store(cacher: TieredCacher(over: files)) { (_: Int) throws -> [Int] in throw POSIXError(.ENOENT) }
        var policy = OutboxPolicy()
        policy.backOff = .milliseconds(2)
        let outbox = try Outbox(directory: directory.appending(path: "outbox"), policy: policy)
        for lane in 0..<lanes where try await files.load(param: lane) == nil { await store[lane].update([]) }
        guard let origin = FileHandle(forWritingAtPath: channel) else { throw POSIXError(.ENOENT) }
        await outbox.register(AppendNumber.self, patching: store, at: \.lane) { command, list in
            list.append(command.number)
        } perform: { command, delivery in
            await otherTasksRun(turns: .random(in: 0...500))
            if Int.random(in: 0..<20) == 0 { throw POSIXError(.ETIMEDOUT) }
            // Shorter than the system's limit for writes that are not divided.
            try origin.write(contentsOf: Data("\(delivery.id) \(command.lane) \(command.number)\n".utf8))
            // The response may be lost, too.
            if Int.random(in: 0..<20) == 0 { throw POSIXError(.ETIMEDOUT) }
            await otherTasksRun(turns: .random(in: 0...500))
        }
        outbox.start()
        say("started")
        guard let first else {
            let outcome = await outbox.drain(until: .seconds(600))
            // The last changes are being saved.
            try await until("the outbox is empty") { await outbox.isEmpty }
            try await store.waitUntilSaved()
            return say("\(outcome)")
        }
        for number in first... {
            try await outbox.submit(AppendNumber(lane: number % lanes, number: number))
            say("kept \(number)")
            if number % 8 == 0 { _ = await outbox.drain(until: .milliseconds(Int.random(in: 0...5))) }
        }
    }

    /// Performs what arrives, once for each key, and records it in its order.
    private static func serve(_ directory: URL, _ channel: String) throws {
        guard let input = FileHandle(forUpdatingAtPath: channel) else { throw POSIXError(.ENOENT) }
        var pending = Data()
        var keys: Set<String> = []
        var record = ""
        say("ready")
        while true {
            pending += input.availableData
            while let end = pending.firstIndex(of: 10) {
                let line = String(decoding: pending[..<end], as: UTF8.self)
                pending = Data(pending[(end + 1)...])
                if line == "end" {
                    try record.write(to: directory.appending(path: "performed"), atomically: true, encoding: .utf8)
                    return say("done")
                }
                let words = line.split(separator: " ")
                if keys.insert(String(words[0])).inserted { record += "\(words[1]) \(words[2])\n" }
            }
        }
    }
}
