/// A key of any type, with its hash computed once.
@usableFromInline
package struct BoxedKey: Hashable, Sendable, CustomStringConvertible {
    @usableFromInline package let hash: Int
    @usableFromInline let box: any KeyBox

    @inlinable
    package init<Value: Hashable & Sendable>(_ value: Value) {
        hash = value.hashValue
        box = TypedKeyBox(value)
    }

    @inlinable
    package func value<Value: Hashable & Sendable>(as type: Value.Type) -> Value {
        unsafeDowncast(box, to: TypedKeyBox<Value>.self).value
    }

    @usableFromInline
    package static func == (lhs: BoxedKey, rhs: BoxedKey) -> Bool {
        lhs.hash == rhs.hash && (lhs.box === rhs.box || lhs.box.isEqual(to: rhs.box))
    }

    @usableFromInline
    package func hash(into hasher: inout Hasher) { hasher.combine(hash) }

    /// The hash for the engine's own tables, which do not hash it again.
    @usableFromInline package var hashValue: Int { hash }

    @usableFromInline package var description: String { box.description }
}

@usableFromInline
protocol KeyBox: AnyObject, Sendable, CustomStringConvertible {
    /// Whether another key of the same store, and so of the same type, is equal.
    func isEqual(to other: any KeyBox) -> Bool
}

@usableFromInline
final class TypedKeyBox<Value: Hashable & Sendable>: KeyBox {
    @usableFromInline let value: Value

    @inlinable
    init(_ value: Value) {
        self.value = value
    }

    @usableFromInline
    func isEqual(to other: any KeyBox) -> Bool {
        value == unsafeDowncast(other, to: TypedKeyBox<Value>.self).value
    }

    @usableFromInline var description: String { "\(value)" }
}
