import Foundation
import StoreCoreTesting
import Testing
import Trials

@testable import StoreCore
@testable import StoreOutbox

/// A way to encode a set of texts.
private protocol TagCoding: Sendable {
    static func encode(_ tags: Set<String>, _ encoder: any Encoder) throws
}

private enum Forwarded: TagCoding {
    static func encode(_ tags: Set<String>, _ encoder: any Encoder) throws { try tags.encode(to: encoder) }
}

private enum AsOneValue: TagCoding {
    static func encode(_ tags: Set<String>, _ encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(tags)
    }
}

/// A key that encodes its set on its own.
private struct Tagged<Way: TagCoding>: Codable, Hashable, Sendable {
    var tags: Set<String>
    init(_ tags: Set<String>) { self.tags = tags }
    init(from decoder: any Decoder) throws { tags = try Set(from: decoder) }
    func encode(to encoder: any Encoder) throws { try Way.encode(tags, encoder) }
}

/// A command for content with a set in its key.
private struct Tag<Way: TagCoding>: Command {
    static var name: String { "tag" }
    var key: Tagged<Way>
}

/// The identity of keys in the log of an outbox.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct OutboxKeyTests {
    private let place: TemporaryDirectory

    init() throws { place = try TemporaryDirectory() }

    private func outbox<Way: TagCoding>(_ way: Way.Type, _ name: String) async throws -> (Outbox, Store<Tagged<Way>, Int>) {
        let store = Store<Tagged<Way>, Int>(cacher: MemoryCacher()) { _ in 0 }
        let outbox = try Outbox(directory: place.file(name), time: ManualTime())
        await outbox.register(Tag<Way>.self, patching: store, at: \.key, patch: { $1 += 1 }, perform: { _, _ in })
        return (outbox, store)
    }

    @Test func `F3, O15: a key that the next launch would not recognize is refused, and any other is found after a restart`() async throws {
        let (refusing, _) = try await outbox(Forwarded.self, "refusing")
        var errors: [StoreError] = []
        for number in 0..<8 {
            do {
                try await refusing.submit(Tag<Forwarded>(key: Tagged(["a\(number)", "b", "c", "d"])))
            } catch let error as StoreError {
                errors.append(error)
            }
        }
        #expect(errors.count >= 4)
        #expect(errors.allSatisfy { $0.code == .unwritableRecord })
        let key = Tagged<AsOneValue>(["a", "b", "c", "d"])
        let (first, _) = try await outbox(AsOneValue.self, "accepting")
        try await first.submit(Tag(key: key))
        let (again, store) = try await outbox(AsOneValue.self, "accepting")
        for await state in again.pending(for: store[Tagged(["d", "c", "b", "a"])]) {
            #expect(state.commands.count == 1)
            break
        }
    }
}
