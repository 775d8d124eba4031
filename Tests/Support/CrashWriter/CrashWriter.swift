import Foundation
import StoreCore
internal import StorePlatform
internal import StoreFiles
import Trials

/// The content to save: a reader can tell from it alone whether it is complete.
struct Entry: Codable, Sendable {
    var key: Int
    var serial: Int
    var filler: String

    init(key: Int, serial: Int) {
        self.key = key
        self.serial = serial
        filler = String(repeating: Character(Unicode.Scalar(UInt8(97 + serial % 26))), count: serial &* 7919 % 6000)
    }
}

/// Saves records into a directory in the mode given by the first argument, and prints what was saved.
@main
enum CrashWriter {
    static func main() async throws {
        var arguments = CommandLine.arguments.dropFirst().makeIterator()
        func text() -> String { arguments.next() ?? "" }
        func number() -> Int { Int(text()) ?? 0 }
        let (mode, directory) = (text(), URL(filePath: text(), directoryHint: .isDirectory))
        switch mode {
        case "loop": try await loop(directory, from: number(), keys: number())
        case "many": try await many(directory, count: number(), keys: number(), writer: number())
        case "die": try await die(directory, at: FileWriteOptions.Step(rawValue: text()) ?? .created, serial: number())
        case "full": await tryToSave(directory, lengths: [1000, 40_000, 500_000, 1000])
        case "nobody":
            becomeNobody()
            await tryToSave(directory, lengths: [100])
        case "share": try await SharedModes.run(text(), directory, Array(arguments))
        case "outbox": try await OutboxModes.run(text(), directory, Array(arguments))
        case "format": try await FormatModes.run(text(), directory, Array(arguments))
        case "linked": try await LinkedLife.run(text(), directory, Array(arguments))
        case "app": try await AppLife.run(text(), directory, arguments.compactMap { Int($0) })
        case "life": try await OutboxLife.run(text(), directory, Array(arguments))
        default: say("unknown mode \(mode)")
        }
    }

    /// Saves the same keys over and over, with increasing serial numbers, until the process is killed.
    static func loop(_ directory: URL, from first: Int, keys: Int) async throws {
        let cacher = FileCacher<Int, Entry>(directory: directory)
        for serial in first... {
            try await save(cacher, serial % keys, serial)
            say("\(serial % keys) \(serial)")
        }
    }

    /// Saves many records, so that several such processes write at the same time.
    static func many(_ directory: URL, count: Int, keys: Int, writer: Int) async throws {
        let cacher = FileCacher<Int, Entry>(directory: directory)
        for serial in 0..<count {
            try await save(cacher, (serial &* 31 + writer) % keys, serial)
            if serial % 50 == 49 { try await cacher.remove(param: serial % keys) }
        }
        say("done")
    }

    /// Saves one record and kills the process at the given step.
    static func die(_ directory: URL, at step: FileWriteOptions.Step, serial: Int) async throws {
        let options = FileWriteOptions(durability: .power) { (done: FileWriteOptions.Step) throws(StoreError) in
            if done == step { killSelf() }
        }
        try await save(FileCacher<Int, Entry>(directory: directory, options: options), 0, serial)
        say("survived")
    }

    /// Saves one record of each length under one key; prints the result and the record that is loaded afterward.
    static func tryToSave(_ directory: URL, lengths: [Int]) async {
        let cacher = FileCacher<String, String>(directory: directory)
        for length in lengths {
            do {
                try await cacher.save(CacheRecord(content: String(repeating: "x", count: length), fetchedAt: Date()), param: "key")
                say("saved \(length)")
            } catch let error as StoreError {
                say("failed \(length) \(error.code.rawValue) \(error.fileSystemErrno ?? 0) \(error.message)")
            } catch {
                say("failed \(length) otherwise \(error)")
            }
            do {
                let record = try await cacher.load(param: "key")
                say("loaded \(record.map { String($0.content.count) } ?? "nothing")")
            } catch {
                say("loading failed \(error)")
            }
        }
    }

    /// Observes a sequence until the process ends.
    static func observe(_ states: LoadingStateSequence<some Sendable>) { Task { for await _ in states {} } }

    static func save(_ cacher: FileCacher<Int, Entry>, _ key: Int, _ serial: Int) async throws {
        try await cacher.save(CacheRecord(content: Entry(key: key, serial: serial), fetchedAt: Date()), param: key)
    }
}
