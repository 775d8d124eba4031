#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif
package import StoreCore
internal import StorePlatform

/// Finds types of keys whose JSON depends on the order of a set or a dictionary, which is another one in each launch.
///
/// ``CanonicalJSON`` sorts a set that it encodes itself. It cannot recognize a set in a key that encodes the elements on its own. Such a key would
/// get another file, and another lane of an outbox, in each launch. The check encodes copies of a key: the collections of a copy have
/// another order. Only the first keys of a type are checked.
package enum KeyStability {
    /// The keys of one type that were looked at so far.
    private struct Progress {
        var seen = 0
        var checked = 0
        var hasCollections = false

        /// Whether the type needs no further look: enough keys were checked, or it seems to have no collections.
        var isOver: Bool { checked >= KeyStability.limit || (seen >= KeyStability.limit && !hasCollections) }
    }

    private static let limit = 32
    /// The progress of each type of key.
    private static let types = Lock<[ObjectIdentifier: Progress]>([:])

    /// Checks a key.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - json: Its canonical JSON; `nil` if it has none.
    /// - Throws: ``StoreError/Code/unwritableRecord`` if an equal key has other JSON.
    package static func check<Key: Hashable & Codable>(_ key: Key, _ json: @autoclosure () -> [UInt8]?) throws(StoreError) {
        guard Key.self != String.self, Key.self != Int.self, Key.self != UUID.self else { return }
        let type = ObjectIdentifier(Key.self)
        if types.withLock({ $0[type]?.isOver == true }) { return }
        let collections = Collections(in: key)
        if collections.isReordered, let json = json() { try compare(key, json) }
        types.withLock { types in
            types[type, default: Progress()].seen += 1
            if collections.isReordered { types[type]?.checked += 1 }
            if collections.isAny { types[type]?.hasCollections = true }
        }
    }

    private static func compare<Key: Hashable & Codable>(_ key: Key, _ json: [UInt8]) throws(StoreError) {
        // A collection of two elements has the same order in every second copy. The order depends on the address of the storage, so the
        // copies exist at the same time.
        var copies: [Key] = []
        for _ in 0..<8 {
            // A key that cannot be decoded, or is decoded as another key, has no copy to compare.
            guard let copy = try? CanonicalJSON.decoder().decode(Key.self, from: Data(json)), copy == key,
                let other = try? CanonicalJSON.encode(copy)
            else { return }
            copies.append(copy)
            guard other != json else { continue }
            throw StoreError(
                .unwritableRecord,
                "encoding the key \(key): an equal key has other JSON, so the next launch would not find what belongs to it; \(Key.self) encodes the "
                    + "elements of a set or a dictionary in their own order, so encode the collection as one value, or sort its elements")
        }
    }

    /// The sets and dictionaries in a value.
    private struct Collections {
        /// Whether the value contains a set or a dictionary.
        var isAny = false
        /// Whether one has several elements, so that their order may change.
        var isReordered = false
        /// Bounded, because a key may be a long list.
        private var rest = 256

        init(in value: Any) { visit(value, depth: 0) }

        private mutating func visit(_ value: Any, depth: Int) {
            guard depth < 8, rest > 0, !isReordered else { return }
            rest -= 1
            let children = Mirror(reflecting: value).children
            if value is any UnorderedKeyPart {
                isAny = true
                isReordered = children.count > 1
            }
            for child in children { visit(child.value, depth: depth + 1) }
        }
    }
}
