#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif
public import Synchronization

/// The clock of one store's stamps, and the number of its changes that others may show.
@usableFromInline
final class LinkClock: Sendable {
    /// Whether other stores link to this one, for callers without its lock.
    let isFollowed = Atomic<Bool>(false)
    private let last = Atomic<UInt64>(0)
    // Zero stands for a record that was not reconciled.
    @usableFromInline let changes = Atomic<UInt64>(LinkClock.first)

    static let first: UInt64 = 1

    var lastStamp: Stamp { last.load(ordering: .acquiring) }

    /// The largest stamp of a record; a damaged one must not precede all later stamps.
    static let limit: Stamp = 1 << 62

    func raise(to stamp: Stamp) { last.max(min(stamp, 1 << 63), ordering: .acquiringAndReleasing) }

    @inlinable var number: UInt64 { changes.load(ordering: .acquiring) }

    /// Counts a change. Called before the change is visible, so that no hit of linked content is older than it.
    func count() { changes.wrappingAdd(1, ordering: .acquiringAndReleasing) }
}

/// The clocks that a store's stamps must be ordered with: its own, and those of the stores that it links to.
@usableFromInline
final class LinkClocks: Sendable {
    let own = LinkClock()
    /// The values that full places show of keys without content.
    let rows = Lock(EntityRows())
    /// The fields that fragments of other stores have, by name.
    let fields = Lock<[String: EntityField]>([:])
    /// The clocks of the linked stores, and of those that they link to.
    let sources: [LinkClock]
    /// The only one of them, for hits in memory; `nil` if there are several or none.
    @usableFromInline let only: LinkClock?

    init(_ links: [LinkRules]) {
        var sources: [LinkClock] = []
        for clock in links.flatMap({ $0.entities.clocks.all }) where !sources.contains(where: { $0 === clock }) { sources.append(clock) }
        self.sources = sources
        only = sources.count == 1 ? sources[0] : nil
    }

    var all: [LinkClock] { [own] + sources }

    /// A number that changes with each change of what a linked store shows: the sum of counters that only grow.
    @inlinable var number: UInt64 { only?.number ?? sum }
    @usableFromInline var sum: UInt64 { sources.reduce(0) { $0 &+ $1.number } }

    /// The same number, for a store that links to this one.
    var numberForFollowers: UInt64 { number &+ own.number }

    /// Returns a new stamp, later than all stamps that this store and its linked stores have given or seen.
    func stamp(at date: Date) -> Stamp {
        let last = sources.reduce(own.lastStamp) { max($0, $1.lastStamp) }
        let stamp = max(date.stamp, last + 1)
        raise(to: stamp)
        return stamp
    }

    /// Advances the clocks past a stamp, such as one from disk.
    func raise(to stamp: Stamp) {
        own.raise(to: stamp)
        for clock in sources { clock.raise(to: stamp) }
    }
}

extension Date {
    /// The date in microseconds.
    package var stamp: Stamp { Stamp(max(0, min(timeIntervalSince1970, 1e12)) * 1_000_000) }
}

/// The keys of the last changes of a store.
struct ChangeLog: Sendable {
    static var limit: Int { 4_096 }

    private var keys: [BoxedKey] = []
    /// The number of changes so far, and of those before the log was last emptied.
    private(set) var count: UInt64 = 0
    private var start: UInt64 = 0

    /// - Returns: A forgotten key.
    mutating func append(_ key: BoxedKey) -> BoxedKey? {
        defer { count += 1 }
        guard keys.count == Self.limit else {
            keys.append(key)
            return nil
        }
        let place = place(of: count)
        defer { keys[place] = key }
        return keys[place]
    }

    private func place(of number: UInt64) -> Int { Int((number - start) % UInt64(Self.limit)) }

    /// Counts a change of any key; returns the forgotten keys.
    mutating func forgetAll() -> [BoxedKey] {
        count += 1
        defer { (keys, start) = ([], count) }
        return keys
    }

    /// Returns the keys of the changes after a number; `nil` if they are forgotten.
    func keys(after number: UInt64) -> Set<BoxedKey>? {
        guard number <= count, count - number <= UInt64(keys.count) else { return nil }
        return (number..<count).reduce(into: Set<BoxedKey>()) { $0.insert(keys[place(of: $1)]) }
    }
}

/// The newest values that places show of keys without content, so that all places agree before the entity is loaded.
///
/// They are no records: no caller gets them, and nothing saves them. Their number is bounded.
struct EntityRows: Sendable {
    static var limit: Int { 4_096 }
    /// The number of places of one content that are kept.
    static var share: Int { 1_024 }

    struct Row: Sendable {
        /// The value of a full place, with the newer fields; `nil` if only fragments show the key.
        var content: BoxedContent?
        private(set) var stamp: Stamp = 0
        /// The number of the last change of entities inside the content that it shows; zero if none was looked for.
        var reconciled: UInt64 = 0
        /// The stamps of the entities inside the content that are newer than it, for each link.
        var inner: [[BoxedKey: Stamp]] = []
        /// The fields of fragments that are newer than the content, by name.
        private(set) var parts: [String: (stamp: Stamp, value: any Sendable)] = [:]

        /// Takes the value of a full place if it is newer; newer fields of fragments stay. Returns whether the value is newer.
        mutating func merge(_ value: BoxedContent, at stamp: Stamp, _ fields: [String: EntityField]) -> Bool {
            guard content == nil || stamp > self.stamp else { return false }
            var value = value
            parts = parts.filter { $0.value.stamp > stamp }
            for (name, part) in parts { fields[name]?.set(&value, part.value) }
            (content, self.stamp, reconciled, inner) = (value, stamp, 0, [])
            return true
        }

        /// Takes the fields of a fragment that are newer; returns whether there are any.
        mutating func merge(_ values: [any Sendable], of fields: [EntityField], _ numbers: some Sequence<Int>, at stamp: Stamp) -> Bool {
            var isNewer = false
            for number in numbers where stamp > max(self.stamp, parts[fields[number].name]?.stamp ?? 0) {
                if var content { fields[number].set(&content, values[number]); self.content = content }
                parts[fields[number].name] = (stamp, values[number])
                reconciled = 0
                isNewer = true
            }
            return isNewer
        }
    }

    private var rows: [BoxedKey: Row] = [:]
    private var order: [BoxedKey] = []
    /// Values that are not newer are of a scope that was cleared or closed.
    private(set) var floor: Stamp = 0

    var isEmpty: Bool { rows.isEmpty }

    subscript(key: BoxedKey) -> Row? { rows[key] }

    /// Merges parts of a place's value into a row; returns whether any is newer.
    mutating func merge(
        _ value: BoxedContent, _ parts: [Int], of link: LinkRules, into key: BoxedKey, at stamp: Stamp, _ fields: [String: EntityField]
    ) -> Bool {
        guard stamp > floor else { return false }
        var row = rows[key] ?? Row()
        let isNewer =
            if let own = link.fields {
                row.merge(value.value(as: [any Sendable].self), of: own, parts, at: stamp)
            } else {
                row.merge(value, at: stamp, fields)
            }
        if isNewer { keep(row, of: key) }
        return isNewer
    }

    /// Keeps a row. Forgets half of the rows, the oldest, beyond the limit.
    mutating func keep(_ row: Row, of key: BoxedKey) {
        guard rows.updateValue(row, forKey: key) == nil else { return }
        order.append(key)
        guard rows.count > Self.limit else { return }
        for forgotten in order.prefix(Self.limit / 2) { rows[forgotten] = nil }
        order.removeFirst(Self.limit / 2)
    }

    /// Forgets a row, because the entity was removed.
    mutating func forget(_ key: BoxedKey) {
        guard rows.removeValue(forKey: key) != nil else { return }
        order.removeAll { $0 == key }
    }

    /// Forgets all rows, and accepts only newer ones.
    mutating func removeAll(upTo floor: Stamp) { (rows, order, self.floor) = ([:], [], floor) }
}
