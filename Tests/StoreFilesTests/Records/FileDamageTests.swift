import Foundation
import StoreTrials
import Testing
import Trials
@testable import StoreCore
@testable import StoreFiles
@testable import StorePlatform

struct FileDamageTests {
    private let place: TemporaryDirectory
    private let faults = FaultRecorder()

    init() throws { place = try TemporaryDirectory() }

    private func cacher<Param: Codable & Hashable & Sendable, Content: Codable & Sendable>(
        version: Int = 1, limit: Int = 256_000_000
    ) -> FileCacher<Param, Content> {
        FileCacher(directory: place.url, version: version, limit: limit) { [faults] in faults.record($0) }
    }

    @Test func `F2: a file with a flipped bit, another length, or random bytes is a miss, is reported, and is deleted`() async throws {
        let cacher: FileCacher<String, String> = cacher()
        var full = record("content", at: 12345.678)
        full.validator = Validator(entityTag: "\"1\"")
        try await cacher.save(full, param: "key")
        await cacher.settle()
        let name = try fileName("key")
        let good = try place.bytes(name)
        func check(_ bytes: [UInt8], _ damage: String) async throws {
            try place.write(bytes, name)
            // A listing reads only the header.
            if !damage.hasPrefix("bit") { #expect(try await cacher.keys() == [], "\(damage)") }
            #expect(try await cacher.load(param: "key") == nil, "\(damage)")
            #expect(faults.drain() == [.damaged], "\(damage)")
            #expect(try place.names.isEmpty, "\(damage)")
        }
        for offset in good.indices {
            for bit in flippedBits(at: offset) {
                var bad = good
                bad[offset] ^= 1 << bit
                try await check(bad, "bit \(bit) of byte \(offset)")
            }
        }
        for length in good.indices { try await check(Array(good[..<length]), "\(length) bytes") }
        for zeros in [1, 4096] { try await check(good + [UInt8](repeating: 0, count: zeros), "\(zeros) further bytes") }
        var random = SplitMix(seed: 1)
        for round in 0..<rounds(300, quick: 100) {
            var bytes = (0..<Int.random(in: 0...300, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
            // Most of the files begin like a record, so that the later checks are reached too.
            if round % 4 != 0 { bytes.replaceSubrange(0..<min(bytes.count, 12), with: Array("SHrecord\u{1}\u{0}\u{0}\u{0}".utf8)) }
            try await check(bytes, "random bytes of round \(round)")
        }
        try place.write(good, name)
        #expect(try await cacher.load(param: "key") == full)
    }

    @Test func `F2: the report names the file and the defect, and reaches the store's event hook`() async throws {
        let cacher: FileCacher<String, String> = cacher()
        let notices = FaultRecorder()
        cacher.observeNotices { notice in
            guard case .fault(.load, "key", let error as StoreError) = notice else { return }
            notices.record(FileCacherFault(.damaged, file: URL(filePath: "/"), error: error))
        }
        let name = try fileName("key")
        try place.write([1, 2, 3], name)
        #expect(try await cacher.load(param: "key") == nil)
        let fault = try #require(faults.faults.first)
        #expect(fault.file.lastPathComponent == name)
        #expect(fault.error.code == .unreadableRecord)
        #expect(fault.description.contains("it ends within its header; it was deleted"))
        #expect(notices.faults.count == 1)
    }

    @Test func `F2: no call changes or removes a foreign file`() async throws {
        let digest = SHA256.digest(of: []).hex
        let foreign = [
            "notes.txt", "record", ".record", digest, digest + ".recorD", digest.uppercased() + ".record", digest.dropLast() + ".record",
            digest + "0.record", "g" + digest.dropFirst() + ".record", digest + ".record.bak", ".record.tmp",
            ".record.1.0123456789abcdef.tmp.bak", ".other.1.0123456789abcdef.tmp",
        ]
        for name in foreign {
            try place.write(Array(name.utf8), name)
            try place.age(name, by: .seconds(1_000_000))
        }
        // Names that match the pattern but are not plain files.
        try FileManager.default.createDirectory(at: place.file(digest + ".record"), withIntermediateDirectories: false)
        let link = SHA256.digest(of: [1]).hex + ".record"
        try FileManager.default.createSymbolicLink(at: place.file(link), withDestinationURL: place.file("notes.txt"))
        let before = try place.names
        let statuses = try before.map { try place.status($0) }

        let cacher: FileCacher<String, String> = cacher(limit: 400)
        for number in 0..<20 { try await cacher.save(record("content"), param: "key \(number)") }
        await cacher.settle()
        #expect(try await cacher.keys()?.isEmpty == false)
        try await cacher.remove(param: "key 19")
        try await cacher.removeAll()
        #expect(try place.names == before)
        #expect(try before.map { try place.status($0) } == statuses)
        #expect(try place.bytes("notes.txt") == Array("notes.txt".utf8))
        #expect(faults.faults.isEmpty)
    }

    @Test func `F2: a link, pipe or directory under a record's name is a miss, is reported as foreign, and stays`() async throws {
        let cacher: FileCacher<String, String> = cacher()
        try await cacher.save(record("real"), param: "real")
        // The link leads to a valid record for the requested key.
        try await cacher.save(record("elsewhere"), param: "link")
        await cacher.settle()
        try FileManager.default.moveItem(at: place.file(fileName("link")), to: place.file("elsewhere"))
        try FileManager.default.createSymbolicLink(at: place.file(fileName("link")), withDestinationURL: place.file("elsewhere"))
        try makePipe(place.directory.path(of: fileName("pipe")))
        try FileManager.default.createDirectory(at: place.file(fileName("directory")), withIntermediateDirectories: false)
        for key in ["link", "pipe", "directory"] {
            #expect(try await cacher.load(param: key) == nil)
            #expect(faults.drain() == [.foreign])
            #expect(try place.status(fileName(key)) != nil)
        }
        #expect(try await cacher.keys() == ["real"])
        // A save replaces the link and keeps its destination.
        try await cacher.save(record("other"), param: "link")
        #expect(try await cacher.load(param: "link") == record("other"))
        #expect(try place.status("elsewhere")?.kind == .regular)
    }

    @Test func `F2: loading a damaged file while it is overwritten never loses the new record`() async throws {
        let cacher: FileCacher<String, String> = cacher()
        let name = try fileName("key")
        for round in 0..<rounds(200, quick: 60) {
            try place.write([1, 2, 3], name)
            async let loaded = cacher.load(param: "key")
            async let saved: Void = cacher.save(record("\(round)"), param: "key")
            let (found, _) = try await (loaded, saved)
            #expect(found == nil || found == record("\(round)"))
            #expect(try await cacher.load(param: "key") == record("\(round)"))
        }
    }
}
