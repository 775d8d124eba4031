import Foundation
import StoreTrials
import Testing
import Trials
@testable import StoreCore
@testable import StoreFiles
@testable import StorePlatform

#if os(macOS) || os(Linux)

/// Tests F1, F4 and F6 with real processes that are killed, write concurrently, or run out of space.
@Suite(.serialized)
struct FileCrashTests {
    private let place: TemporaryDirectory
    private let faults = FaultRecorder()

    init() throws { place = try TemporaryDirectory() }

    private var path: String { place.directory.path }

    private func cacher(_ durability: Durability = .crash) -> FileCacher<Int, Entry> {
        FileCacher(directory: place.url, durability: durability) { [faults] in faults.record($0) }
    }

    /// Ages every orphan by more than an hour, so that the scan of the next save removes it.
    private func sweepOrphans() async throws {
        for name in try place.temporaries { try place.age(name, by: .seconds(3700)) }
        let cacher = cacher()
        try await cacher.save(record(Entry(key: -1, serial: 0, filler: "")), param: -1)
        await cacher.settle()
        #expect(try place.temporaries.isEmpty)
    }

    @Test func `F1: after kill -9 at a random moment every acknowledged record, or a newer one, loads complete`() async throws {
        let keys = 5
        var first = 1
        for _ in 0..<rounds(40, quick: 4) {
            let child = try ChildProcess("CrashWriter", ["loop", path, "\(first)", "\(keys)"])
            var acknowledged: [Int: Int] = [:]
            var last = first
            func note(_ line: String) {
                let numbers = line.split(separator: " ").compactMap { Int($0) }
                guard numbers.count == 2 else { return }
                acknowledged[numbers[0]] = numbers[1]
                last = numbers[1]
            }
            for _ in 0..<Int.random(in: 1...60) {
                guard let line = try await child.nextLine() else { break }
                note(line)
            }
            // Varies the delay, so that the kill falls between two lines as well as right after one.
            for _ in 0..<Int.random(in: 0...2000) { _ = SHA256.digest(of: []) }
            child.kill()
            while let line = try await child.nextLine() { note(line) }
            _ = try await child.ending()

            #expect(!acknowledged.isEmpty)
            let cacher = cacher()
            for (key, serial) in acknowledged {
                let entry = try await cacher.load(param: key)?.content
                #expect(entry?.isWhole == true && entry?.key == key && (entry?.serial ?? 0) >= serial, "key \(key), serial \(serial)")
            }
            #expect(faults.faults.isEmpty)
            first = last + 1
        }
        try await sweepOrphans()
    }

    @Test(arguments: FileWriteOptions.Step.allCases)
    func `F1: kill -9 after any step of a save leaves either the old record or the new one`(step: FileWriteOptions.Step) async throws {
        try await cacher().save(record(Entry(key: 0, serial: 26, filler: String(repeating: "a", count: 26 * 7919 % 6000))), param: 0)
        let child = try ChildProcess("CrashWriter", ["die", path, step.rawValue, "27"])
        #expect(try await child.nextLine() == nil)
        #expect(try await child.ending() != 0)
        let entry = try #require(try await cacher().load(param: 0)?.content)
        let isRenamed = step == .renamed || step == .directorySynchronized
        #expect(entry.isWhole)
        #expect(entry.serial == (isRenamed ? 27 : 26))
        #expect(try place.temporaries.count == (isRenamed ? 0 : 1))
        #expect(try place.records.count == 1)
        try await sweepOrphans()
    }

    @Test func `F4: a reader never sees a torn record while two processes save into one directory`() async throws {
        let keys = 7
        let writers = try (0..<2).map { try ChildProcess("CrashWriter", ["many", path, "\(rounds(400, quick: 100))", "\(keys)", "\($0)"]) }
        let cacher = cacher()
        var seen = 0
        var isLast = false
        while !isLast {
            // Reads once more after both writers ended, so that there are records to see in every schedule.
            isLast = writers.allSatisfy { !$0.isRunning }
            for key in 0..<keys {
                guard let entry = try await cacher.load(param: key)?.content else { continue }
                #expect(entry.isWhole && entry.key == key)
                seen += 1
            }
            for key in try await cacher.keys() ?? [] { #expect((0..<keys).contains(key)) }
            // Also removes the temporary files of the writers, which must not fail their saves.
            if seen > 0, seen % 40 < keys { try await cacher.removeAll() }
        }
        #expect(seen > 0)
        for writer in writers {
            #expect(try await writer.nextLine() == "done")
            #expect(try await writer.ending() == 0)
        }
        #expect(faults.faults.isEmpty)
        #expect(try place.temporaries.isEmpty)
    }

    @Test func `F4: cachers that sweep, save and load in one directory never see a torn record`() async throws {
        let cachers = (0..<3).map { _ in FileCacher<Int, Entry>(directory: place.url, limit: 32_768) { [faults] in faults.record($0) } }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (number, cacher) in cachers.enumerated() {
                group.addTask {
                    for serial in 0..<rounds(150, quick: 40) {
                        let key = (serial * 7 + number) % 11
                        let filler = String(repeating: Character(Unicode.Scalar(UInt8(97 + serial % 26))), count: serial &* 7919 % 6000)
                        try await cacher.save(record(Entry(key: key, serial: serial, filler: filler)), param: key)
                        let entry = try await cacher.load(param: (key + 3) % 11)?.content
                        #expect(entry?.isWhole != false)
                    }
                }
            }
            try await group.waitForAll()
        }
        for cacher in cachers { await cacher.settle() }
        #expect(faults.faults.isEmpty)
        #expect(try place.temporaries.isEmpty)
    }

    @Test(.enabled(if: canMountSmallDisks()))
    func `F6: a save to a full disk fails with its reason, keeps the older record, and a smaller save succeeds`() async throws {
        let child = try ChildProcess(onDisk: "size=128k,mode=700", at: path, "CrashWriter", ["full", path])
        for line in ["saved 1000", "loaded 1000", "saved 40000", "loaded 40000"] { #expect(try await child.nextLine() == line) }
        let failure = try #require(try await child.nextLine())
        #expect(failure.hasPrefix("failed 500000 fileSystem \(ENOSPC) writing \(path)/"))
        #expect(failure.contains("free some space"))
        for line in ["loaded 40000", "saved 1000", "loaded 1000"] { #expect(try await child.nextLine() == line) }
    }

    @Test(.enabled(if: canMountSmallDisks()))
    func `F6: a save to a read-only disk fails with its reason`() async throws {
        let child = try ChildProcess(onDisk: "ro", at: path, "CrashWriter", ["full", path])
        let failure = try #require(try await child.nextLine())
        #expect(failure.hasPrefix("failed 1000 fileSystem \(EROFS) creating \(path)/"))
        #expect(try await child.nextLine() == "loaded nothing")
    }

    @Test func `F6: a save to a directory without write permission fails with its reason`() async throws {
        try FileManager.default.setAttributes([.posixPermissions: 0o555], ofItemAtPath: path)
        defer { try? FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path) }
        let child = try ChildProcess("CrashWriter", ["nobody", path])
        let failure = try #require(try await child.nextLine())
        #expect(failure.hasPrefix("failed 100 fileSystem \(EACCES) creating \(path)/"))
        #expect(try await child.nextLine() == "loaded nothing")
    }

    @Test func `F6: every call fails with its reason if the directory's path leads through a file`() async throws {
        try place.write([1], "file")
        let cacher = FileCacher<Int, Int>(directory: place.file("file/below"))
        let errors = [
            await #expect(throws: StoreError.self) { try await cacher.save(record(1), param: 1) },
            await #expect(throws: StoreError.self) { _ = try await cacher.load(param: 1) },
            await #expect(throws: StoreError.self) { try await cacher.remove(param: 1) },
            await #expect(throws: StoreError.self) { try await cacher.removeAll() },
            await #expect(throws: StoreError.self) { _ = try await cacher.keys() },
        ]
        for error in errors {
            #expect(error?.fileSystemErrno == ENOTDIR)
            #expect(error?.description.contains(path) == true)
        }
    }
}

#endif
