internal import StoreCore

/// A failure of one item in a pass.
///
/// <doc:ErrorsAndRetries> explains which failures end a pass.
public struct SyncFailure: Sendable, CustomStringConvertible {
    /// The stage in which the item failed, such as `contents`.
    public var stage: SyncStage
    /// The key of the item; `value(as:)` returns it in its own type.
    public var key: SyncKey
    /// The error of the last attempt.
    public var error: any Error
    /// The number of attempts, here or in a lower layer; 1 if the failure was not retried.
    public var attempts = 1

    /// The stage, the key and the error.
    public var description: String {
        "\(stage), \(key): \("\(error)".escapedForDisplay())" + (attempts > 1 ? " (tried \(attempts) times)" : "")
    }
}

/// The key of an item in a report, independent of its type.
///
/// ```swift
/// let number = failure.key.value(as: Int.self)
/// ```
public struct SyncKey: Hashable, Sendable, CustomStringConvertible {
    private let key: any Hashable & Sendable

    init(_ key: some Hashable & Sendable) {
        self.key = key
    }

    /// Returns the key if it has this type.
    ///
    /// - Parameter type: The type of the items' keys.
    public func value<Key: Hashable & Sendable>(as type: Key.Type) -> Key? { key as? Key }

    /// A textual description of the key, with control characters and bidirectional overrides escaped as in `\u{202E}`.
    public var description: String { String(describing: key).escapedForDisplay() }

    /// Returns whether both keys are equal.
    public static func == (lhs: SyncKey, rhs: SyncKey) -> Bool { AnyHashable(lhs.key) == AnyHashable(rhs.key) }

    /// Hashes the key as its own type does.
    public func hash(into hasher: inout Hasher) { key.hash(into: &hasher) }
}
