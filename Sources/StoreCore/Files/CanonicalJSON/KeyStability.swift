#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif
package import StoreCore

/// Finds types of keys whose JSON depends on the order of a set or a dictionary, which is another one in each launch.
///
/// ``CanonicalJSON`` sorts a set that it encodes itself. It cannot recognize a set in a key that encodes the elements on its own. Such a key would
/// get another file, and another lane of an outbox, in each launch. The check encodes copies of a key: the collections of a copy have
/// another order. Every key with a collection is compared with a copy, and the first ones of a type with several.
package enum KeyStability {
    private static let limit = 32
    /// The number of compared keys of each type; `nil` for a type whose keys cannot contain a collection.
    private static let types = Lock<[ObjectIdentifier: Int?]>([:])

    /// Checks a key with its canonical JSON; `nil` if it has none. Throws ``StoreError/Code/unwritableRecord`` if an equal key has other
    /// JSON.
    package static func check<Key: Hashable & Codable>(_ key: Key, _ json: @autoclosure () -> [UInt8]?) throws(StoreError) {
        if Key.self is any PlainKeyPart.Type { return }
        let type = ObjectIdentifier(Key.self)
        guard let compared = types.withLock({ $0[type] ?? 0 }) else { return }
        let parts = Parts(of: key)
        // Another key of a type with cases, optional values or subclasses may have a collection although this key has none.
        if parts.arePlain { return types.withLock { $0[type] = .some(nil) } }
        guard parts.mayBeReordered, let json = json() else { return }
        try compare(key, json, copies: compared < limit ? 8 : 1)
        types.withLock { $0[type] = compared + 1 }
    }

    private static func compare<Key: Hashable & Codable>(_ key: Key, _ json: [UInt8], copies count: Int) throws(StoreError) {
        // A collection of two elements has the same order in every second copy. The order depends on the address of the storage, so the
        // copies exist at the same time.
        var copies: [Key] = []
        for _ in 0..<count {
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

    /// The parts of a key, as far as reflection shows them.
    private struct Parts {
        /// Whether no key of the type can contain a collection with an order of its own.
        var arePlain = true
        /// Whether the key contains such a collection of several elements, or may contain one that was not found.
        var mayBeReordered = false

        init(of key: Any) {
            var (values, next) = ([key], 0)
            while next < values.count, !mayBeReordered {
                let value = values[next]
                next += 1
                if value is any PlainKeyPart { continue }
                let mirror = Mirror(reflecting: value)
                switch mirror.displayStyle {
                case .struct? where !(value is any CustomReflectable), .tuple?: break
                case .enum? where !(value is any CustomReflectable), .optional?, .collection?: arePlain = false
                case .set? where value is any UnorderedKeyPart, .dictionary? where value is any UnorderedKeyPart:
                    (arePlain, mayBeReordered) = (false, mirror.children.count > 1)
                // The parts of an object, or those that a type hides from reflection, are unknown.
                default: (arePlain, mayBeReordered) = (false, true)
                }
                values += mirror.children.map(\.value)
                // A key may be a long list, of which not every part is looked at.
                if next > 256 { (arePlain, mayBeReordered) = (false, true) }
            }
        }
    }
}

/// A type of parts of keys that contain no collection with an order of its own.
private protocol PlainKeyPart {}

extension String: PlainKeyPart {}
extension Bool: PlainKeyPart {}
extension Int: PlainKeyPart {}
extension Int64: PlainKeyPart {}
extension UInt64: PlainKeyPart {}
extension Double: PlainKeyPart {}
extension UUID: PlainKeyPart {}
extension Date: PlainKeyPart {}
extension URL: PlainKeyPart {}
extension Optional: PlainKeyPart where Wrapped: PlainKeyPart {}
extension Array: PlainKeyPart where Element: PlainKeyPart {}
