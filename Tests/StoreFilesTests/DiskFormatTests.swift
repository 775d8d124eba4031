import DiskFormats
import Foundation
import StoreCore
import StoreFiles
import Testing
import Trials

/// Tests F2, O14, S9 and T4 for every kind of file on disk: damaged, cut and replaced files, killed processes, and full disks.
struct DiskFormatTests {
    private let place: TemporaryDirectory

    init() throws { place = try TemporaryDirectory() }

    private func write(_ format: DiskFormat, _ numbers: Int...) async throws {
        let owner = try format.open(place.url)
        for number in numbers { try await owner.write(number) }
    }

    private func file(_ format: DiskFormat) throws -> URL { try #require(try format.file(in: place.url)) }

    /// Writes a further value, shorter than the others, and checks that it is found behind them.
    private func checkNext(_ format: DiskFormat, after values: [Int], _ comment: Comment) async throws {
        try await write(format, 60)
        #expect(try await format.read(place.url).values == (format.isLog ? values : []) + [60], comment)
    }

    // MARK: Damage

    @Test(arguments: DiskFormat.all + [.leaseNote])
    func `F2, O14, S9, T4: a file cut at any byte has its complete values or none, and accepts the next one`(
        format: DiskFormat
    ) async throws {
        var ends: [Int] = []
        let owner = try format.open(place.url)
        for number in 1...3 {
            try await owner.write(number)
            ends.append(try Data(contentsOf: file(format)).count)
        }
        let url = try file(format), whole = try Data(contentsOf: url)
        for length in positions(0..<whole.count, every: 11, and: ends.flatMap { $0 - 1...$0 + 1 }) {
            try whole.prefix(length).write(to: url)
            let found = try await format.read(place.url)
            // The end of a log may be the rest of an interrupted append. A file that is written whole is never cut by the framework.
            #expect(found.values == (format.isLog ? Array([1, 2, 3].prefix(ends.count { $0 <= length })) : []), "cut at \(length)")
            #expect(found.isDamaged == (format.hasChecksum && !format.isLog), "cut at \(length)")
            try await checkNext(format, after: found.values, "cut at \(length)")
            #expect(try await !format.read(place.url).isDamaged, "cut at \(length)")
        }
    }

    @Test(arguments: DiskFormat.all + [.leaseNote])
    func `F2, O14, S9, T4: a flipped bit is reported and costs at most one value`(format: DiskFormat) async throws {
        try await write(format, 1, 2, 3)
        let url = try file(format), whole = try Data(contentsOf: url)
        // Each format and each run visits other positions, so that they complement each other.
        for offset in positions(whole.indices, every: 7) {
            for bit in flippedBits(at: offset) {
                var bytes = whole
                bytes[offset] ^= 1 << UInt8(bit)
                try bytes.write(to: url)
                let found = try await format.read(place.url)
                #expect(found.isDamaged == format.hasChecksum, "bit \(bit) of byte \(offset)")
                let rest = [1, 2, 3].filter { found.values.contains($0) }
                if format.hasChecksum {
                    #expect(found.values == rest && rest.count >= (format.isLog ? 2 : 0), "bit \(bit) of byte \(offset)")
                    if !format.isLog { #expect(rest.isEmpty, "bit \(bit) of byte \(offset)") }
                }
                if bit == offset % 8 { try await checkNext(format, after: rest, "bit \(bit) of byte \(offset)") }
            }
        }
    }

    @Test(arguments: DiskFormat.all, seeds(40, quick: 4, sanitized: 4))
    func `F2, O14, S9, T4: random damage adds, changes and reorders no value`(format: DiskFormat, seed: UInt64) async throws {
        try await write(format, 1, 2, 3)
        let url = try file(format), whole = try Data(contentsOf: url)
        var random = SplitMix(seed: seed), bytes = whole
        for _ in 0...random.below(4) {
            let start = random.below(max(1, bytes.count))
            switch random.below(4) {
            case 0: bytes.insert(UInt8(truncatingIfNeeded: random.next()), at: start)
            case 1: bytes.replaceSubrange(start..<min(bytes.count, start + random.below(30)), with: Data(count: random.below(30)))
            case 2: bytes.replaceSubrange(start..<start, with: whole[random.below(whole.count)...])
            default: bytes.removeSubrange(start..<min(bytes.count, start + random.below(30)))
            }
        }
        try bytes.write(to: url)
        let found = try await format.read(place.url)
        #expect(found.values == [1, 2, 3].filter { found.values.contains($0) })
        #expect(found.values.count < 3 || found.isDamaged || bytes.starts(with: whole) || bytes == whole)
    }

    @Test(arguments: DiskFormat.all)
    func `O14: an end of zeros, which a loss of power may leave, is a torn end of a log, and damage of any other file`(
        format: DiskFormat
    ) async throws {
        try await write(format, 1, 2)
        let url = try file(format)
        try (Data(contentsOf: url) + Data(count: 5_000)).write(to: url)
        let found = try await format.read(place.url)
        #expect(found == DiskFormat.Found(values: format.isLog ? [1, 2] : [], isDamaged: !format.isLog))
        try await checkNext(format, after: found.values, "zeros")
    }

    /// A flipped bit may turn a note into that of another holder. No lock confirms such a lease.
    @Test func `D5: the cut or changed note of a holder that has ended delays no lease`() async throws {
        let cacher = FileCacher<Int, Int>(directory: place.url, sharing: .processes)
        func granted(_ comment: Comment) async throws -> Lease {
            try #require(try await cacher.lease(1, for: .seconds(1)).lease, comment)
        }
        let folder = place.url.appending(path: ".sharing", directoryHint: .isDirectory)
        func noteName() throws -> String? {
            try FileManager.default.contentsOfDirectory(atPath: folder.path(percentEncoded: false)).first { $0.hasSuffix(".lease") }
        }
        var lease = try await granted("the first")
        let name = try #require(try noteName())
        let url = folder.appending(path: name), whole = try Data(contentsOf: url)
        var damaged = positions(0..<whole.count, every: 7).map { Data(whole.prefix($0)) }
        for offset in positions(whole.indices, every: 7) {
            for bit in flippedBits(at: offset) {
                var bytes = whole
                bytes[offset] ^= 1 << UInt8(bit)
                damaged.append(bytes)
            }
        }
        for bytes in damaged {
            lease.end(.abandoned)
            try await until("the file of the lease is removed") { try noteName() == nil }
            try bytes.write(to: url)
            lease = try await granted("after \(String(decoding: bytes, as: UTF8.self))")
            #expect(try Data(contentsOf: url) != bytes)
        }
        lease.end(.abandoned)
    }

    // MARK: Replaced and removed files

    @Test(arguments: DiskFormat.all)
    func `F4, O14: an open owner notices that its file was removed or replaced`(format: DiskFormat) async throws {
        let owner = try format.open(place.url)
        try await owner.write(1)
        try FileManager.default.removeItem(at: file(format))
        #expect(try await format.read(place.url) == DiskFormat.Found(values: [], isDamaged: false))
        try await owner.write(2)
        #expect(try await format.read(place.url).values == [2])
        try await format.replace(place.url, by: 8)
        #expect(try await format.read(place.url).values == [8])
        try await owner.write(3)
        #expect(try await format.read(place.url).values == format.expected([8, 3]))
        // A file that has become shorter is another one.
        try FileManager.default.removeItem(at: place.url)
        try await owner.write(4)
        #expect(try await format.read(place.url).values == [4])
    }

    @Test(arguments: DiskFormat.all + [.leaseNote])
    func `F2, O14, S19: a link in place of a file is not followed`(format: DiskFormat) async throws {
        try await write(format, 1)
        let url = try file(format), elsewhere = place.file("elsewhere")
        try FileManager.default.moveItem(at: url, to: elsewhere)
        let content = try Data(contentsOf: elsewhere)
        try FileManager.default.createSymbolicLink(at: url, withDestinationURL: elsewhere)
        if let found = try? await format.read(place.url) { #expect(found.values.isEmpty) }
        // A file that is written whole takes the place of the link.
        if format.isLog || !format.hasChecksum {
            await #expect(throws: (any Error).self) { try await write(format, 2) }
        } else {
            try await write(format, 2)
            #expect(try await format.read(place.url).values == [2])
        }
        #expect(try Data(contentsOf: elsewhere) == content)
    }

    @Test(arguments: DiskFormat.all)
    func `O14, S9: a file with a second name is replaced, and the second name keeps the old content`(format: DiskFormat) async throws {
        try await write(format, 1)
        let backup = place.file("backup")
        try FileManager.default.linkItem(at: file(format), to: backup)
        let before = try Data(contentsOf: backup)
        try await write(format, 2)
        #expect(try Data(contentsOf: backup) == before)
        #expect(try await format.read(place.url) == DiskFormat.Found(values: format.expected([1, 2]), isDamaged: false))
    }

    // MARK: Processes

    #if os(macOS) || os(Linux)
    private func start(_ mode: String, _ format: DiskFormat, _ number: Int) throws -> ChildProcess {
        try ChildProcess("CrashWriter", ["format", place.url.path(percentEncoded: false), mode, format.description, "\(number)"])
    }

    @Test(arguments: DiskFormat.all)
    func `F1, O14, S9, T4: kill -9 at a random moment tears no value and loses no acknowledged one`(format: DiskFormat) async throws {
        var written: [Int] = []
        for seed in seeds(UInt64(25), quick: 2, sanitized: 2) {
            var dice = SplitMix(seed: seed)
            let first = (written.last ?? 0) + 1
            let child = try start("loop", format, first)
            var last = first - 1
            for _ in 0...dice.below(40) { last = child.readLine().flatMap { Int($0) } ?? last }
            // The kill may fall between two lines as well as right after one.
            for _ in 0..<dice.below(3_000) { _ = dice.next() }
            child.kill()
            while let line = child.readLine() { last = Int(line) ?? last }
            child.wait()
            let found = try await format.read(place.url)
            #expect(!found.isDamaged, "seed \(seed)")
            // The process may have been killed before it reported its last value.
            let newest = try #require(found.values.last, "seed \(seed)")
            #expect(newest == last || newest == last + 1, "seed \(seed): \(newest) after \(last)")
            if newest >= first { written += first...newest }
            #expect(found.values == format.expected(written), "seed \(seed)")
        }
    }

    private func check(_ child: ChildProcess, _ format: DiskFormat, code: Int32) {
        for line in ["1", "2", "3", "failed fileSystem \(code)", "4", "found \(format.expected([1, 2, 3, 4])) whole"] {
            #expect(child.readLine() == line)
        }
        #expect(child.wait())
    }

    @Test(arguments: DiskFormat.all)
    func `F6, O14, S9: a write beyond the file size limit fails with its reason, and the earlier values remain`(format: DiskFormat) throws {
        check(try start("limited", format, 4_096), format, code: EFBIG)
        #expect(try place.names.allSatisfy { !$0.hasSuffix(".tmp") })
    }

    @Test(.enabled(if: canMountSmallDisks(), "this process may not mount a small disk"), arguments: DiskFormat.all)
    func `F6, O14, S9: a write to a full disk fails with its reason, and the earlier values remain`(format: DiskFormat) throws {
        let path = place.url.path(percentEncoded: false), words = ["format", path, "full", format.description, "500000"]
        check(try ChildProcess(onDisk: "size=128k,mode=700", at: path, "CrashWriter", words), format, code: ENOSPC)
    }
    #endif
}
