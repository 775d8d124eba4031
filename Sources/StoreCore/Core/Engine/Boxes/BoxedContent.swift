// The engine is compiled once, for these two types, instead of being generic over the user's. Unspecialized generic code requests the
// metadata of each type that it touches, and one update touches hundreds: a generic engine spent nine tenths of its time there (9 µs per
// update instead of 1). The price is one object for each key and each content.

/// The content of one key, of a type that only the creator of the store knows.
@usableFromInline
package struct BoxedContent: Sendable {
    /// A `Box` of the content; `nil` only during a change.
    @usableFromInline package var box: (any AnyObject & Sendable)?

    @inlinable
    package init<Value: Sendable>(_ value: Value) {
        box = Box(value)
    }

    /// The content as its own type.
    ///
    /// The type is always given explicitly: inference would choose the optional where an optional is expected.
    @inlinable
    package func value<Value: Sendable>(as type: Value.Type) -> Value {
        guard let box else { preconditionFailure("content was read while it was being changed") }
        // Checked in debug builds; a checked cast would cost more than the rest of a transition.
        return unsafeDowncast(box, to: Box<Value>.self).value
    }

    /// Changes the content, in place if this is the only reference.
    @inlinable
    package mutating func change<Value: Sendable, Failure: Error>(
        as type: Value.Type, _ body: (inout Value) throws(Failure) -> Void
    ) throws(Failure) {
        var value = value(as: Value.self)
        // Releases the box first, so that `body` gets the only reference to a list and does not copy it.
        box = nil
        defer { box = Box(value) }
        try body(&value)
    }
}

@usableFromInline
final class Box<Value: Sendable>: Sendable {
    @usableFromInline let value: Value

    @inlinable
    init(_ value: Value) {
        self.value = value
    }
}

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
