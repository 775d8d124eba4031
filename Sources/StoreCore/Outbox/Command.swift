#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
internal import StoreCore
internal import StoreFiles

/// A value that describes a change at the origin, kept on disk until the change is made.
///
/// ```swift
/// struct Like: Command {
///     static let name = "like"
///     var post: Post.ID
/// }
/// ```
///
/// Submit commands to an ``Outbox``, which shows their effect at once and delivers them in order.
///
/// <doc:ChangesThatSurvive> describes, registers and submits commands.
public protocol Command: Codable, Sendable {
    /// The name of the type on disk.
    ///
    /// It must never change, and no other command of the outbox may have it.
    static var name: String { get }

    /// The version of the encoded form; by default 1. Increase it when a stored command can no longer be decoded.
    static var version: Int { get }

    /// Decodes a command that an older version of the program has stored; by default throws.
    ///
    /// - Parameters:
    ///   - version: The version that stored the command, lower than ``version``.
    ///   - payload: The JSON of the stored command.
    /// - Returns: The command.
    /// - Throws: Any error; the command then stays in the outbox, and its lane waits.
    static func migrate(from version: Int, _ payload: Data) throws -> Self

    /// Returns whether this command makes an earlier one unnecessary; by default `false`.
    ///
    /// The outbox asks only about the command right before this one in its lane, and only if no delivery of that command was attempted. A
    /// draft that is saved at each keystroke then costs one request.
    ///
    /// - Parameter earlier: The pending command.
    func supersedes(_ earlier: Self) -> Bool

    /// Returns the command with its temporary identifiers replaced; by default the command itself.
    ///
    /// A command that refers to an entity which another command creates must look up each identifier that may be temporary:
    ///
    /// ```swift
    /// func replacing(_ identifiers: IdentifierReplacement) -> Comment {
    ///     var copy = self
    ///     copy.post = identifiers[post]
    ///     return copy
    /// }
    /// ```
    ///
    /// The outbox calls this method when the command is submitted, to learn which identifiers it refers to, and again when a temporary
    /// identifier gets its replacement.
    ///
    /// - Parameter identifiers: Returns the identifier to use.
    func replacing(_ identifiers: IdentifierReplacement) -> Self
}

extension Command {
    /// The default: 1, until the encoded form of the command changes.
    public static var version: Int { 1 }

    /// Throws, because there is no known way to decode an older version.
    public static func migrate(from version: Int, _ payload: Data) throws -> Self {
        throw StoreError(
            .unreadableRecord,
            "decoding a command \(name) of version \(version): the type has version \(Self.version); implement migrate(from:_:)")
    }

    /// The default: `false`, so every command is delivered.
    public func supersedes(_ earlier: Self) -> Bool { false }

    /// The command itself, which refers to no temporary identifier.
    public func replacing(_ identifiers: IdentifierReplacement) -> Self { self }
}

extension Command {
    init(stored payload: Data, version: Int) throws {
        self = try version < Self.version ? Self.migrate(from: version, payload) : JSONDecoder().decode(Self.self, from: payload)
    }
}

/// The identifiers that replace temporary ones.
///
/// Identifiers are compared by their JSON, so a temporary identifier must be unique among all identifiers of the outbox's commands, as a
/// UUID is.
public struct IdentifierReplacement: Sendable {
    /// The JSON of the replacements, by the JSON of the temporary identifiers.
    let replacements: [String: String]
    /// The JSON of all identifiers that were looked up; `nil` if they are not recorded.
    private let seen: WatchedState<[String]>?

    /// Creates replacements, to test a command that looks up identifiers.
    ///
    /// - Parameter replacements: The identifiers to use, by the temporary ones.
    public init<ID: Hashable & Codable & Sendable>(_ replacements: [ID: ID]) {
        var texts: [String: String] = [:]
        for (temporary, replacement) in replacements {
            if let key = Self.text(of: temporary) { texts[key] = Self.text(of: replacement) }
        }
        self.init(texts: texts)
    }

    init(texts replacements: [String: String], recording seen: WatchedState<[String]>? = nil) {
        self.replacements = replacements
        self.seen = seen
    }

    /// Returns the replacement of a temporary identifier, or any other identifier unchanged.
    public subscript<ID: Codable & Sendable>(identifier: ID) -> ID {
        guard let text = Self.text(of: identifier) else { return identifier }
        seen?.update { if !$0.contains(text) { $0.append(text) } }
        guard let replacement = replacements[text] else { return identifier }
        // A replacement of another type belongs to another identifier with the same text.
        return (try? JSONDecoder().decode(ID.self, from: Data(replacement.utf8))) ?? identifier
    }

    /// The text of an identifier in the log; `nil` if it cannot be encoded, so that it never stood there.
    static func text(of identifier: some Encodable) -> String? {
        (try? CanonicalJSON.encode(identifier)).map { String(decoding: $0, as: UTF8.self) }
    }
}

/// One attempt to perform a command.
///
/// <doc:ChangesThatSurvive> explains how an origin recognizes a repetition.
public struct Delivery: Hashable, Sendable {
    /// The identity of the command at the origin, the same for all attempts, even after a restart.
    ///
    /// Send it as the `Idempotency-Key`: an origin that honors the key performs the command once.
    public let id: UUID

    /// The number of the attempt, from 1. An attempt that ended with its process does not count.
    public let attempt: Int
}

/// The result of a command that creates an entity: its identifier at the origin, and its content.
public struct Created<Key: Hashable & Sendable, Content: Sendable>: Sendable {
    /// The identifier that the origin has assigned.
    public var key: Key

    /// The content that the origin responded with; `nil` keeps the content that the store shows, with any temporary key inside it.
    public var content: Content?

    /// Creates a result.
    ///
    /// - Parameters:
    ///   - key: The identifier that the origin has assigned.
    ///   - content: The content that the origin responded with.
    public init(_ key: Key, content: Content? = nil) {
        self.key = key
        self.content = content
    }
}
