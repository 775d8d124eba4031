#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif
internal import Synchronization

/// The clock of one store's stamps, and the number of its changes that others may show.
final class LinkClock: Sendable {
    /// Whether other stores link to this one, for callers without its lock.
    let isFollowed = Atomic<Bool>(false)
    private let last = Atomic<UInt64>(0)
    // Zero stands for a record that was not reconciled.
    private let changes = Atomic<UInt64>(LinkClock.first)

    static let first: UInt64 = 1

    var lastStamp: Stamp { last.load(ordering: .acquiring) }

    /// Advances the clock past a stamp.
    func raise(to stamp: Stamp) { last.max(stamp, ordering: .acquiringAndReleasing) }

    /// The number of the last change.
    var number: UInt64 { changes.load(ordering: .acquiring) }

    /// Counts a change. Called before the change is visible, so that no hit of linked content is older than it.
    func count() { changes.wrappingAdd(1, ordering: .acquiringAndReleasing) }
}

/// The clocks that a store's stamps must be ordered with: its own, and those of the stores that it links to.
final class LinkClocks: Sendable {
    let own = LinkClock()
    /// The fields that fragments of other stores have, by name.
    let fields = Lock<[String: EntityField]>([:])
    /// The clocks of the linked stores, and of those that they link to.
    let sources: [LinkClock]

    init(_ links: [LinkRules]) {
        var sources: [LinkClock] = []
        for clock in links.flatMap({ $0.entities.clocks.all }) where !sources.contains(where: { $0 === clock }) { sources.append(clock) }
        self.sources = sources
    }

    var all: [LinkClock] { [own] + sources }

    /// A number that changes with each change of what a linked store shows: the sum of counters that only grow.
    var number: UInt64 { sources.reduce(0) { $0 &+ $1.number } }

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
    var stamp: Stamp { Stamp(max(0, min(timeIntervalSince1970, 1e12)) * 1_000_000) }
}

/// The keys of the last changes of a store.
struct ChangeLog: Sendable {
    static var limit: Int { 4_096 }

    private var keys: [BoxedKey] = []
    /// The number of changes so far.
    private(set) var count: UInt64 = 0

    /// - Returns: A forgotten key.
    mutating func append(_ key: BoxedKey) -> BoxedKey? {
        defer { count += 1 }
        guard keys.count == Self.limit else {
            keys.append(key)
            return nil
        }
        let place = Int(count % UInt64(Self.limit))
        defer { keys[place] = key }
        return keys[place]
    }

    /// Returns the keys of the changes after a number; `nil` if they are forgotten.
    func keys(after number: UInt64) -> Set<BoxedKey>? {
        guard number <= count, count - number <= UInt64(keys.count) else { return nil }
        return Set((number..<count).map { keys[Int($0 % UInt64(Self.limit))] })
    }
}
