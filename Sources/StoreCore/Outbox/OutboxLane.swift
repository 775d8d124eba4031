internal import StoreCore
internal import StoreFiles

/// The name of a lane, in which commands are delivered one after another, and of a content that commands change.
///
/// Both parts are on disk, so neither is a name of the program's source code.
struct OutboxLane: Hashable, Sendable {
    /// The name that the app gives to the store, or to a lane of its own; empty for a store without a name.
    var name: String
    /// The text of the key of the content; empty for a lane that the app has named.
    var key = ""

    /// The lane of facts that concern no command.
    static let none = OutboxLane(name: "")

    var text: String { [name, key].filter { !$0.isEmpty }.joined(separator: " ") }

    func replaced(_ replacements: [String: String]) -> OutboxLane {
        guard !key.isEmpty, let key = replacements[key] else { return self }
        return OutboxLane(name: name, key: key)
    }
}

/// A content, and the store that has it.
typealias OutboxSubject = (content: OutboxLane, engine: ObjectIdentifier)

extension OutboxLane {
    /// The content of a key. By default, the commands that change it share the lane with this name.
    static func content(of engine: StoreEngine, _ key: some Encodable) -> OutboxLane {
        OutboxLane(name: engine.name, key: IdentifierReplacement.text(of: key) ?? "")
    }

    /// Checks that the next launch gives a key the same name in the log; throws if its encoding depends on an order that changes.
    static func check(_ key: some Hashable & Codable) throws(StoreError) {
        // A key that cannot be encoded has no name in the log.
        try KeyStability.check(key, try? CanonicalJSON.encode(key))
    }
}
