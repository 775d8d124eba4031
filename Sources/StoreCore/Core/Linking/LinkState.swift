#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The state of an engine that has links, or that others link to. Guarded by the engine's lock.
struct LinkState: Sendable {
    private(set) var followers: [Follower] = []
    var log = ChangeLog()
    var removals = Removals()
    /// The temporary keys that each key has replaced. Places may still have them.
    private(set) var formerKeys = TemporaryKeys<BoxedKey, [BoxedKey]>()
    /// The keys that wait to be read, and whether a task reads them.
    private var unread: Set<BoxedKey> = []
    private var isReading = false

    struct Follower: Sendable {
        weak let engine: StoreEngine?
    }

    mutating func add(_ follower: StoreEngine) {
        followers.removeAll { $0.engine == nil }
        followers.append(Follower(engine: follower))
    }

    /// A key has replaced a temporary one. A removal of the entity continues.
    mutating func replaced(_ temporary: BoxedKey, by key: BoxedKey) {
        removals.move(temporary, to: key)
        let former = formerKeys[key] ?? []
        if !former.contains(temporary) { formerKeys.replace(key, with: former + [temporary]) }
    }

    /// - Returns: Whether a task must begin to read.
    mutating func noteUnread(_ key: BoxedKey) -> Bool {
        unread.insert(key)
        defer { isReading = true }
        return !isReading
    }

    /// Returns keys to read next; if there are none, the reading task ends.
    mutating func takeUnread(limit: Int) -> [BoxedKey] {
        let keys = Array(unread.prefix(limit))
        unread.subtract(keys)
        isReading = !keys.isEmpty
        return keys
    }
}

/// The keys whose entities are being removed, and those that were (E7).
struct Removals: Sendable {
    static var limit: Int { 1_000 }

    /// The number of running removals of each key.
    private var running: [BoxedKey: Int] = [:]
    /// The moments of the removals, and whether the key has content again. Older values of the entity are not shown in lists even then.
    private var done: [BoxedKey: (stamp: Stamp, hasReturned: Bool)] = [:]

    func isRunning(_ key: BoxedKey) -> Bool { running[key] != nil }
    func isDone(_ key: BoxedKey) -> Bool { done[key]?.hasReturned == false }
    func stamp(of key: BoxedKey) -> Stamp? { done[key]?.stamp }

    mutating func note(_ step: RemovalStep, of key: BoxedKey) {
        switch step {
        case .began: running[key, default: 0] += 1
        case .failed: end(key)
        case .succeeded(let stamp):
            end(key)
            done[key] = (stamp: stamp, hasReturned: false)
            if done.count > Self.limit, let oldest = done.min(by: { $0.value.stamp < $1.value.stamp })?.key { done[oldest] = nil }
        }
    }

    mutating func move(_ temporary: BoxedKey, to key: BoxedKey) {
        if let count = running.removeValue(forKey: temporary) { running[key, default: 0] += count }
    }

    /// The key has content again.
    mutating func forget(_ key: BoxedKey) { done[key]?.hasReturned = true }

    /// The scope was cleared, and its keys may be those of other entities now.
    ///
    /// - Returns: The keys of running removals, which are no longer hidden.
    mutating func forgetAll() -> [BoxedKey] {
        defer { self = Removals() }
        return Array(running.keys)
    }

    private mutating func end(_ key: BoxedKey) {
        guard let count = running[key] else { return }
        running[key] = count > 1 ? count - 1 : nil
    }
}

enum RemovalStep: Hashable, Sendable {
    case began, failed
    case succeeded(Stamp)
}

/// A change of an entity that is to be marked in the stores that show it.
struct LinkMark: Sendable {
    let engine: StoreEngine
    /// The key; `nil` if any may have changed.
    let key: BoxedKey?
    /// Whether linked content may have a newer value, because the entity was read.
    let isRead: Bool
}

/// The value of an entity at one moment.
struct EntityValue: Sendable {
    /// The accepted content; without it the newest row of a full place; `nil` if there is neither.
    var content: BoxedContent?
    var stamp: Stamp = 0
    /// The stamps of the fields that fragments have brought.
    var parts: [String: Stamp] = [:]
    /// The fields that fragments have brought, while there is no content.
    var fields: [String: any Sendable] = [:]
    /// The content with pending changes; `nil` if it is the accepted one.
    var shown: BoxedContent?
    /// The commands with changes in the content or in its patches.
    var commands: [UUID] = []
    /// The pending changes of an entity without content.
    var patches: [@Sendable (inout BoxedContent) -> Void] = []
    /// Whether the entity may have content that only the cacher knows.
    var isUnread = false
    /// Whether the content came from a shared cacher, so that the process that has changed it saves its places.
    var isReceived = false
    /// Whether the entity is being removed.
    var isHidden = false
    var removal: Stamp?
    /// The key of the entity, which may have replaced a temporary one.
    var key: BoxedKey?

    /// Takes the values of places for those of an entity without content.
    mutating func show(_ row: EntityRows.Row) {
        (content, stamp, parts) = (row.content, row.stamp, row.parts.mapValues { $0.stamp })
        guard var patched = row.content else {
            fields = row.parts.mapValues { $0.value }
            return
        }
        guard !patches.isEmpty else { return }
        for patch in patches { patch(&patched) }
        shown = patched
    }
}
