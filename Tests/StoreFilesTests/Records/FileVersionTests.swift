import Foundation
import StoreTrials
import Testing
import Trials
@testable import StoreCore
@testable import StoreFiles
@testable import StorePlatform

struct FileVersionTests {
    private let place: TemporaryDirectory
    private let faults = FaultRecorder()

    init() throws { place = try TemporaryDirectory() }

    private func cacher<Param: Codable & Hashable & Sendable, Content: Codable & Sendable>(
        version: Int = 1
    ) -> FileCacher<Param, Content> {
        FileCacher(directory: place.url, version: version) { [faults] in faults.record($0) }
    }

    @Test func `F5: a record of another schema version is a miss, and stays until it is overwritten`() async throws {
        let first: FileCacher<String, String> = cacher(version: 1)
        let second: FileCacher<String, Int> = cacher(version: 2)
        try await first.save(record("old"), param: "key")
        #expect(try await second.load(param: "key") == nil)
        #expect(try await second.keys() == [])
        #expect(try await first.load(param: "key") == record("old"))
        try await second.save(record(2), param: "key")
        #expect(try await first.load(param: "key") == nil)
        #expect(try await first.keys() == [])
        #expect(try await second.load(param: "key") == record(2))
        try await first.save(record("back"), param: "key")
        #expect(try await first.load(param: "key") == record("back"))
        #expect(try await second.load(param: "key") == nil)
        #expect(faults.faults.isEmpty)
    }

    /// The file of a record in version 2 of the file format. Its content may have another checksum than this version expects.
    private func foreignFile(of key: String, content: String = "content", checksum: UInt8 = 0) throws -> [UInt8] {
        let json = try CanonicalJSON.encode(key)
        var bytes = FileRecordFormat.encode(key: json, fetchedAt: 0, details: nil, content: Data(content.utf8), schema: 1)
        bytes[8] = 2
        bytes[48] ^= checksum
        let head = bytes[..<56].withUnsafeBytes { Checksum64.of($0) }
        let sum = json.withUnsafeBytes { Checksum64.of($0, seed: head) }
        withUnsafeBytes(of: sum.littleEndian) { bytes.replaceSubrange(56..<64, with: $0) }
        return bytes
    }

    @Test(arguments: [0, 0x55] as [UInt8])
    func `F5: records of a higher file format version are misses, are reported once, and stay`(checksum: UInt8) async throws {
        let cacher: FileCacher<String, String> = cacher()
        for key in ["a", "b", "c"] { try place.write(try foreignFile(of: key, checksum: checksum), fileName(key)) }
        for key in ["a", "b", "c"] { #expect(try await cacher.load(param: key) == nil) }
        #expect(try await cacher.keys() == [])
        let fault = try #require(faults.faults.first)
        #expect(faults.kinds == [.undecodable])
        #expect(fault.error.code == .unreadableRecord)
        let name = try fileName("a")
        #expect(fault.error.message.contains(name) && fault.error.message.contains("version 2"))
        // Another start of the program reports it again, here for a listing of keys.
        let next: FileCacher<String, String> = self.cacher()
        #expect(try await next.keys() == [])
        #expect(faults.faults.count == 2)
        try await next.save(record("new"), param: "a")
        #expect(try await next.load(param: "a") == record("new"))
        for key in ["b", "c"] { #expect(try place.bytes(fileName(key)) == foreignFile(of: key, checksum: checksum)) }
    }

    @Test func `F5: a store reports the miss of a record of another file format version as an event`() async throws {
        let cacher: FileCacher<String, String> = cacher()
        let failures = WatchedState<[StoreError]>([])
        let store = Store(
            cacher: cacher,
            onEvent: { event in
                guard case .cacherFault(.load, let cause) = event.kind, let error = cause as? StoreError else { return }
                failures.update { $0.append(error) }
            }
        ) { key in "fetched \(key)" }
        try place.write(try foreignFile(of: "key"), fileName("key"))
        #expect(try await store["key"].requireData() == "fetched key")
        try await failures.wait { $0.contains { $0.code == .unreadableRecord } ? () : nil }
    }

    @Test func `content that no longer decodes is a miss, is reported, and stays until it is overwritten`() async throws {
        let texts: FileCacher<String, String> = cacher()
        let numbers: FileCacher<String, Int> = cacher()
        try await texts.save(record("text"), param: "key")
        #expect(try await numbers.load(param: "key") == nil)
        #expect(faults.drain() == [.undecodable])
        #expect(try await texts.load(param: "key") == record("text"))
        let otherKeys: FileCacher<Int, String> = cacher()
        #expect(try await otherKeys.keys() == [])
        #expect(faults.drain() == [.undecodable])
    }

    struct Numbers: Codable, Sendable, Equatable {
        var doubles: [Double]
        var floats: [Float]
        var dates: [Date]
        var decimal: Decimal
    }

    @Test func `dates and numbers load bit for bit, including those that JSON does not have`() async throws {
        let cacher: FileCacher<Int, Numbers> = cacher()
        var random = SplitMix(seed: 7)
        var doubles: [Double] = [-0.0, .infinity, -.infinity, .leastNonzeroMagnitude, .greatestFiniteMagnitude, 0.1]
        let count = isWholeRun ? 2_000 : 200
        doubles += (0..<count).map { _ in Double(bitPattern: random.next()) }.filter { !$0.isNaN }
        let patterns = (0..<count).map { _ in UInt32.random(in: .min ... .max, using: &random) }
        let floats = doubles.map { Float($0) } + patterns.map { Float(bitPattern: $0) }
        let content = Numbers(
            doubles: doubles, floats: floats.filter { !$0.isNaN }, dates: doubles.map { Date(timeIntervalSinceReferenceDate: $0) },
            decimal: Decimal(string: "123456789012345678901234567890.12345678") ?? 0)
        for (number, date) in content.dates.prefix(50).enumerated() {
            try await cacher.save(CacheRecord(content: content, fetchedAt: date), param: number)
            let loaded = try #require(try await cacher.load(param: number))
            #expect(loaded.fetchedAt.timeIntervalSinceReferenceDate.bitPattern == date.timeIntervalSinceReferenceDate.bitPattern)
            #expect(loaded.content.doubles.map(\.bitPattern) == content.doubles.map(\.bitPattern))
            #expect(loaded.content.floats.map(\.bitPattern) == content.floats.map(\.bitPattern))
            #expect(loaded.content.dates == content.dates)
            #expect(loaded.content.decimal == content.decimal)
        }
        let nan = Numbers(doubles: [.nan], floats: [.nan], dates: [Date(timeIntervalSinceReferenceDate: .nan)], decimal: 0)
        try await cacher.save(record(nan), param: 0)
        let loaded = try #require(try await cacher.load(param: 0)).content
        #expect(loaded.doubles[0].isNaN && loaded.floats[0].isNaN && loaded.dates[0].timeIntervalSinceReferenceDate.isNaN)
    }

    @Test func `every property of a record survives saving and loading`() async throws {
        let cacher: FileCacher<String, [String]?> = cacher()
        var full = CacheRecord<[String]?>(
            content: ["a", "\u{0}é😀/\\\""], fetchedAt: Date(timeIntervalSinceReferenceDate: 0.1 + 0.2),
            freshness: Freshness(lifetime: .nanoseconds(1), staleWhileRevalidate: .seconds(2), mustRevalidate: true, storage: .allowed),
            validator: Validator(entityTag: "W/\"é\"", lastModified: "Sun, 06 Nov 1994 08:49:37 GMT"), nextKey: "next", prevKey: "prev")
        full.pages = [
            LoadedPage(direction: .prev, key: "p", returnKey: "back", count: 1), LoadedPage(count: 0),
            LoadedPage(direction: .next, key: "n", count: 1),
        ]
        full.isInvalidated = true
        try await cacher.save(full, param: "full")
        try await cacher.save(record(nil), param: "nil")
        #expect(try await cacher.load(param: "full") == full)
        #expect(try await cacher.load(param: "nil") == record(nil))
        #expect(try await cacher.load(param: "none") == nil)
    }
}
