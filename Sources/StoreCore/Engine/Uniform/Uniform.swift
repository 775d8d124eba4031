/// The engine's own types for what users give it: inside, all keys are of one type, all contents of another.
///
/// Generic code that is not specialised asks the runtime for the metadata of each type it touches, and an update touches hundreds: as
/// generic code the engine spent nine tenths of its time there (9 µs an update in place of 1). With these types the compiler sees the
/// one engine there is, and users' modules need not see its code. What it costs is one object for each key and content given to it.
@usableFromInline
enum Uniform {
    @usableFromInline typealias Engine = StoreEngine<Key, Content>
    /// The memory in front of an engine.
    @usableFromInline typealias Front = FrontMemory<Key, Content>

    /// Content of any type.
    @usableFromInline
    struct Content: Sendable {
        /// A `Box` of the content; `nil` only while it is being changed.
        @usableFromInline var box: (any AnyObject & Sendable)?

        @inlinable
        init<Value: Sendable>(_ value: Value) {
            box = Box(value)
        }

        /// The content as what it is. Asking for another type is our own mistake, so the type is always said and never inferred: where
        /// an optional is expected, an optional would be.
        @inlinable
        func value<Value: Sendable>(as type: Value.Type) -> Value {
            guard let box else { preconditionFailure("content was read while it was being changed") }
            // Checked in debug builds; a checked cast would cost more than all the rest of a turn.
            return unsafeDowncast(box, to: Box<Value>.self).value
        }

        /// Changes the content, in place where nobody else has it.
        @inlinable
        mutating func change<Value: Sendable, Failure: Error>(
            as type: Value.Type, _ body: (inout Value) throws(Failure) -> Void
        ) throws(Failure) {
            var value = value(as: Value.self)
            // Let go of first, so that what `body` gets is the only reference to a list and is not copied.
            box = nil
            defer { box = Box(value) }
            try body(&value)
        }
    }

    /// A key of any type, with its hash worked out once.
    @usableFromInline
    struct Key: Hashable, Sendable, CustomStringConvertible {
        @usableFromInline let hash: Int
        @usableFromInline let box: any KeyBox

        @inlinable
        init<Value: Hashable & Sendable>(_ value: Value) {
            hash = value.hashValue
            box = TypedKeyBox(value)
        }

        @inlinable
        func value<Value: Hashable & Sendable>(as type: Value.Type) -> Value {
            unsafeDowncast(box, to: TypedKeyBox<Value>.self).value
        }

        @usableFromInline
        static func == (lhs: Key, rhs: Key) -> Bool {
            lhs.hash == rhs.hash && (lhs.box === rhs.box || lhs.box.isEqual(to: rhs.box))
        }

        @usableFromInline
        func hash(into hasher: inout Hasher) { hasher.combine(hash) }

        /// What finds it in a table of our own, where it need not be hashed again.
        @usableFromInline var hashValue: Int { hash }

        @usableFromInline var description: String { box.description }
    }
}

// What users' modules call stands here and not in the generic engine: called from there, that would not be specialised.
extension Uniform.Engine {
    /// Sets the content of a key; `nil` forgets it.
    ///
    /// - Parameters:
    ///   - content: What it is.
    ///   - hash: The hash of the key, which becomes an object only where it is not live yet.
    ///   - isKey: Whether a live key is the one.
    ///   - makeKey: Makes the key.
    /// - Returns: Who waits until it is saved; `nil` where that is done, so that most callers need no frame to wait in.
    @usableFromInline
    func set(
        _ content: Uniform.Content?, ofKeyWithHash hash: Int, where isKey: @Sendable (Uniform.Key) -> Bool,
        makeKey: @Sendable () -> Uniform.Key
    ) -> Saving? {
        guard backing == nil else { return beginWriting(makeKey()) { machine, turn in machine.updated(content, &turn) } }
        turn({ $0.key(hash: UInt32(truncatingIfNeeded: hash), where: isKey, make: makeKey, rules: rules) }) { key, turn in
            _ = key.machine.updated(content, &turn)
        }
        return nil
    }
}

extension Uniform.Engine {
    /// Asks for a page beside a list.
    @usableFromInline
    func page(_ direction: PageDirection, of key: Uniform.Key, continueWhenError: Bool) async -> PageRequest {
        await requestPage(direction, of: key, continueWhenError: continueWhenError)
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

@usableFromInline
protocol KeyBox: AnyObject, Sendable, CustomStringConvertible {
    /// Whether another key of the same store, and so of the same type, is the same.
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
