import Foundation
import StoreOutbox
import StoreTrials
import Testing
import Trials
@testable import StoreCore
@testable import StoreFiles

struct FileKeyTests {
    private let place: TemporaryDirectory
    private let faults = FaultRecorder()

    init() throws { place = try TemporaryDirectory() }

    private func cacher<Param: Codable & Hashable & Sendable, Content: Codable & Sendable>() -> FileCacher<Param, Content> {
        FileCacher(directory: place.url) { [faults] in faults.record($0) }
    }

    @Test func `F3: the name is the SHA-256 of the key's sorted JSON`() throws {
        // Values from an independent implementation of both.
        #expect(try fileName(7) == "7902699be42c8a8e46fbbb4501726517e86b22c56a189f7625a6da49081b2451.record")
        #expect(try fileName("user") == "3190d261d186aeead3a8deec202737c7775af5c8d455a9e5ba958c48b5fd3f59.record")
        #expect(try fileName("e\u{301}") == "f2886017e9c7abacf804b54d64787dce2b611c9544ba21f3affdd126a6e50086.record")
        #expect(try fileName(UnitParam()) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a.record")
    }

    @Test(arguments: [
        "", ".", "..", "../../etc/passwd", "a/b", "/", "a\u{0}b", "\n", "CON", "key.record",
        String(repeating: "long", count: 5000), "😀", "ﬁ",
    ])
    func `F3: any text can be a key, and its file has a plain name in the directory`(key: String) async throws {
        let cacher: FileCacher<String, String> = cacher()
        try await cacher.save(record(key), param: key)
        #expect(try await cacher.load(param: key) == record(key))
        #expect(try await cacher.keys() == [key])
        let names = try place.names
        #expect(names.count == 1)
        #expect(names[0].wholeMatch(of: /[0-9a-f]{64}\.record/) != nil)
        try await cacher.remove(param: key)
        #expect(try await cacher.load(param: key) == nil)
        #expect(try place.names.isEmpty)
    }

    struct Nested: Codable, Hashable, Sendable {
        struct Inner: Codable, Hashable, Sendable {
            var tags: Set<String>
            var table: [Int: [String: Double]]
        }
        var id: UUID
        var when: Date
        var inner: Inner?
        var url: URL?
        var data: Data
        var decimal: Decimal
    }

    @Test func `F3: keys of every shape are found after reopening and listed unchanged`() async throws {
        func check<Key: Codable & Hashable & Sendable>(_ keys: Key...) async throws {
            let place = try TemporaryDirectory()
            let cacher = FileCacher<Key, Int>(directory: place.url)
            for (number, key) in keys.enumerated() { try await cacher.save(record(number), param: key) }
            let reopened = FileCacher<Key, Int>(directory: place.url)
            for (number, key) in keys.enumerated() { #expect(try await reopened.load(param: key)?.content == number) }
            #expect(try await Set(reopened.keys() ?? []) == Set(keys))
        }
        try await check(0, -1, Int.max, .min)
        try await check(UInt64.max)
        try await check(UInt8.max, 0)
        try await check(true, false)
        try await check(0.1, -1e300, .leastNonzeroMagnitude, .infinity, -.infinity)
        try await check(Float(0.1), .greatestFiniteMagnitude)
        try await check(UnitParam())
        try await check(Int?.none, 1)
        try await check(Date(timeIntervalSinceReferenceDate: 0.1), .distantPast)
        try await check(UUID(), UUID())
        try await check(URL(filePath: "/a b/é"))
        try await check([1, 2], [2, 1], [])
        try await check(Set([1, 2, 3]), [])
        try await check([[1.5: "a"]: 1], [:])
        let inner = Nested.Inner(tags: ["é", "f", "\n"], table: [1: ["x": 0.1], -1: [:]])
        try await check(
            Nested(id: UUID(), when: Date(), inner: inner, url: URL(string: "https://a.example/?q=1"), data: Data([0, 255]), decimal: 0.1),
            Nested(id: UUID(), when: .distantFuture, inner: nil, url: nil, data: Data(), decimal: -1))
    }

    @Test func `F3: equal keys share one file`() async throws {
        let texts: FileCacher<String, String> = cacher()
        try await texts.save(record("one"), param: "caf\u{e9}")
        #expect(try await texts.load(param: "cafe\u{301}") == record("one"))
        try await texts.save(record("two"), param: "cafe\u{301}")
        #expect(try await texts.load(param: "caf\u{e9}") == record("two"))
        #expect(try place.names.count == 1)
        let numbers: FileCacher<Double, String> = cacher()
        try await numbers.save(record("zero"), param: 0.0)
        #expect(try await numbers.load(param: -0.0) == record("zero"))
    }

    @Test func `F3: a record of another key under the name is a miss and stays`() async throws {
        let cacher: FileCacher<String, String> = cacher()
        try await cacher.save(record("mine"), param: "a")
        await cacher.settle()
        let bytes = try place.bytes(fileName("a"))
        try place.write(bytes, fileName("b"))
        #expect(try await cacher.load(param: "b") == nil)
        #expect(faults.drain() == [.foreign])
        #expect(try place.bytes(fileName("b")) == bytes)
        #expect(try await cacher.keys() == ["a"])
    }

    /// A key that encodes its set on its own: by forwarding, element by element, or as one text.
    struct Tagged<Way: TagCoding>: Codable, Hashable, Sendable {
        var tags: Set<String>
        init(_ tags: Set<String>) { self.tags = tags }
        init(from decoder: any Decoder) throws { tags = try Way.decode(decoder) }
        func encode(to encoder: any Encoder) throws { try Way.encode(tags, encoder) }
    }

    /// Returns the errors of saving keys with sets.
    private func errors<Way: TagCoding>(
        of count: Int, _ way: Way.Type, _ save: (Tagged<Way>) async throws -> Void
    ) async throws -> [StoreError] {
        var errors: [StoreError] = []
        for number in 0..<count {
            do { try await save(Tagged(["a\(number)", "b", "c", "d"])) } catch let error as StoreError { errors.append(error) }
        }
        return errors
    }

    private func check<Way: TagCoding>(_ way: Way.Type, isRefused: Bool) async throws {
        let errors = try await errors(of: 32, way) { key in
            let cacher: FileCacher<Tagged<Way>, Int> = cacher()
            try await cacher.save(record(0), param: key)
        }
        guard isRefused else { return #expect(errors.isEmpty, "\(way)") }
        // The copies of the first key may have the same order by chance.
        #expect(errors.count >= 16, "\(way)")
        #expect(errors.allSatisfy { $0.code == .unwritableRecord && $0.description.contains("sort its elements") })
    }

    @Test func `F3: a key that encodes the elements of a set in their own order is refused, with the remedy`() async throws {
        try await check(Forwarded.self, isRefused: true)
        try await check(ElementByElement.self, isRefused: true)
        try await check(Joined.self, isRefused: true)
        try await check(AsOneValue.self, isRefused: false)
        try await check(Sorted.self, isRefused: false)
    }

    /// A command for content with a set in its key.
    private struct TagCommand<Way: TagCoding>: Command {
        static var name: String { "tag" }
        var key: Tagged<Way>
    }

    private func outbox<Way: TagCoding>(_ way: Way.Type) async throws -> (Outbox, Store<Tagged<Way>, Int>) {
        let store = Store<Tagged<Way>, Int>(cacher: MemoryCacher()) { _ in 0 }
        let outbox = try Outbox(directory: place.file("\(way)"))
        await outbox.register(TagCommand<Way>.self, patching: store, at: \.key, patch: { $1 += 1 }, perform: { _, _ in })
        return (outbox, store)
    }

    @Test func `F3, O15: an outbox refuses a key that its next launch would not find, and finds any other`() async throws {
        let (refusing, _) = try await outbox(Forwarded.self)
        let errors = try await errors(of: 8, Forwarded.self) { key in _ = try await refusing.submit(TagCommand(key: key)) }
        #expect(errors.count >= 4)
        #expect(errors.allSatisfy { $0.code == .unwritableRecord })
        try await outbox(AsOneValue.self).0.submit(TagCommand(key: Tagged<AsOneValue>(["a", "b", "c", "d"])))
        let (again, store) = try await outbox(AsOneValue.self)
        #expect(await again.pending(for: store[Tagged(["d", "c", "b", "a"])]).first { _ in true }?.commands.count == 1)
    }

    /// A key whose collection appears late, deep, behind much else, or in one case only.
    enum Late: Codable, Hashable, Sendable {
        case plain(Int)
        case optional(Tagged<Sorted>?, [Tagged<Forwarded>?])
        indirect case deep(Late)
        case object(Box)

        final class Box: Codable, Hashable, Sendable, CustomReflectable {
            let tags: Tagged<ElementByElement>
            init(_ tags: Tagged<ElementByElement>) { self.tags = tags }
            var customMirror: Mirror { Mirror(self, children: []) }
            static func == (a: Box, b: Box) -> Bool { a.tags == b.tags }
            func hash(into hasher: inout Hasher) { hasher.combine(tags) }
        }
    }

    private static func deep(_ depth: Int, _ key: Late) -> Late { (0..<depth).reduce(key) { key, _ in .deep(key) } }

    static let late: [@Sendable (Int) -> Late] = [
        { .optional(nil, [nil, Tagged(["a\($0)", "b", "c", "d"])]) },
        { .optional(nil, [Tagged<Forwarded>?](repeating: nil, count: 400) + [Tagged(["a\($0)", "b", "c", "d"])]) },
        { deep(20, .optional(nil, [Tagged(["a\($0)", "b", "c", "d"])])) },
        { .object(Late.Box(Tagged(["a\($0)", "b", "c", "d"]))) },
    ]

    @Test(arguments: late.indices)
    func `F3: a key with a set in its own order is refused, however many keys without one came before`(_ index: Int) async throws {
        let cacher: FileCacher<Late, Int> = cacher()
        // More than the keys of a type that are compared with several copies.
        let count = max(40, rounds(100, quick: 40))
        for key in 0..<count { try await cacher.save(record(key), param: .plain(key)) }
        for key in 0..<count {
            let sorted = Late.optional(Tagged(["a\(key)", "b", "c"]), [nil])
            try await cacher.save(record(key), param: sorted)
            #expect(try await cacher.load(param: sorted)?.content == key)
        }
        var refused = 0
        for key in 0..<64 {
            do { try await cacher.save(record(key), param: Self.late[index](key)) } catch let error as StoreError {
                #expect(error.code == .unwritableRecord)
                refused += 1
            }
        }
        // A copy may have the order of the key by chance, the more often the more their addresses repeat. Without a check, none is refused.
        #expect(refused >= 16)
    }

    @Test func `F3: a key without collections is not refused, even if it cannot be copied`() async throws {
        struct OneWay: Codable, Hashable, Sendable {
            var names: Set<String>
            init(_ names: Set<String>) { self.names = names }
            init(from decoder: any Decoder) throws { names = [] }
            func encode(to encoder: any Encoder) throws { try names.sorted().encode(to: encoder) }
        }
        let cacher: FileCacher<OneWay, Int> = cacher()
        for key in 0..<40 {
            try await cacher.save(record(key), param: OneWay(["\(key)", "b"]))
            #expect(try await cacher.load(param: OneWay(["b", "\(key)"]))?.content == key)
        }
    }

    @Test func `two kinds of data in one directory get a message that names both possible causes`() async throws {
        let numbers: FileCacher<Int, Int> = cacher()
        try await numbers.save(record(5), param: 1)
        let messages = Lock<[String]>([])
        let texts = FileCacher<Int, [String]>(directory: place.url) { fault in messages.withLock { $0.append("\(fault)") } }
        #expect(try await texts.load(param: 1) == nil)
        let other = FileCacher<[String: Int], Int>(directory: place.url) { fault in messages.withLock { $0.append("\(fault)") } }
        #expect(try await other.keys() == [])
        #expect(messages.withLock { $0.count } == 2)
        for message in messages.withLock({ $0 }) {
            #expect(message.contains("raise the cacher's version"))
            #expect(message.contains("give each kind a directory of its own"))
        }
    }

    struct Stubborn: Codable, Hashable, Sendable {
        init() {}
        init(from decoder: any Decoder) throws { throw CocoaError(.coderReadCorrupt) }
        func encode(to encoder: any Encoder) throws { throw CocoaError(.coderInvalidValue) }
    }

    @Test func `a key or content that fails to encode is reported as an error, and nothing is written`() async throws {
        let keyed: FileCacher<Stubborn, String> = cacher()
        let valued: FileCacher<String, Stubborn> = cacher()
        let errors = [
            await #expect(throws: StoreError.self) { try await keyed.save(record("x"), param: Stubborn()) },
            await #expect(throws: StoreError.self) { _ = try await keyed.load(param: Stubborn()) },
            await #expect(throws: StoreError.self) { try await keyed.remove(param: Stubborn()) },
            await #expect(throws: StoreError.self) { try await valued.save(record(Stubborn()), param: "key") },
        ]
        for error in errors {
            #expect(error?.code == .unwritableRecord)
            #expect(error?.underlyingError is CocoaError)
        }
        #expect(try place.names.isEmpty)
    }
}

/// A way to encode a set of texts.
protocol TagCoding: Sendable {
    static func encode(_ tags: Set<String>, _ encoder: any Encoder) throws
    static func decode(_ decoder: any Decoder) throws -> Set<String>
}

extension TagCoding {
    static func decode(_ decoder: any Decoder) throws -> Set<String> { try Set(from: decoder) }
}

enum Forwarded: TagCoding {
    static func encode(_ tags: Set<String>, _ encoder: any Encoder) throws { try tags.encode(to: encoder) }
}

enum ElementByElement: TagCoding {
    static func encode(_ tags: Set<String>, _ encoder: any Encoder) throws {
        var container = encoder.unkeyedContainer()
        for tag in tags { try container.encode(tag) }
    }
}

enum Joined: TagCoding {
    static func encode(_ tags: Set<String>, _ encoder: any Encoder) throws { try tags.joined(separator: ",").encode(to: encoder) }
    static func decode(_ decoder: any Decoder) throws -> Set<String> {
        Set(try String(from: decoder).split(separator: ",").map(String.init))
    }
}

enum AsOneValue: TagCoding {
    static func encode(_ tags: Set<String>, _ encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(tags)
    }
}

enum Sorted: TagCoding {
    static func encode(_ tags: Set<String>, _ encoder: any Encoder) throws { try tags.sorted().encode(to: encoder) }
}
