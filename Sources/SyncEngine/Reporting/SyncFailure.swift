internal import StoreCore

/// Something that went wrong with one item of a pass.
public struct SyncFailure: Sendable, CustomStringConvertible {
    /// In which stage it went wrong.
    public var stage: SyncStage
    /// Which item it went wrong with.
    public var key: SyncKey
    /// What went wrong.
    public var error: any Error
    /// How often it was tried.
    public var attempts: Int

    init(stage: SyncStage, key: SyncKey, error: any Error, attempts: Int = 1) {
        self.stage = stage
        self.key = key
        self.error = error
        self.attempts = attempts
    }

    /// Stage, key and reason.
    public var description: String {
        "\(stage), \(key): \("\(error)".escapedForDisplay())" + (attempts > 1 ? " (tried \(attempts) times)" : "")
    }
}

/// The key of an item, of whatever type, as reports have it.
///
/// ```swift
/// let number = failure.key.value(as: Int.self)
/// ```
public struct SyncKey: Hashable, Sendable, CustomStringConvertible {
    private let key: any Hashable & Sendable

    init(_ key: some Hashable & Sendable) {
        self.key = key
    }

    /// The key itself, where it is of this type.
    ///
    /// - Parameter type: The type of the items' keys.
    public func value<Key: Hashable & Sendable>(as type: Key.Type) -> Key? { key as? Key }

    /// The key in words, with control characters and bidirectional overrides escaped as in `\u{202E}`.
    public var description: String { String(describing: key).escapedForDisplay() }

    /// Whether both are the same key.
    public static func == (lhs: SyncKey, rhs: SyncKey) -> Bool { AnyHashable(lhs.key) == AnyHashable(rhs.key) }

    /// Hashes the key.
    public func hash(into hasher: inout Hasher) { key.hash(into: &hasher) }
}
