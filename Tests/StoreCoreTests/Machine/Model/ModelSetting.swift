internal import Foundation

@testable import StoreCore

/// What one search may do: the rules of the machine, and the events that the world around it is made of.
///
/// All times are whole seconds, so that few of them can be told apart.
final class ModelSetting: Sendable, CustomStringConvertible {
    let name: String
    let rules: KeyRules<[Int]>
    let world: Features
    let needs: [CallerNeed]
    let maxObservers: Int
    let maxCallers: Int
    let maxPatches: Int

    /// What happens in the world besides observers and callers.
    struct Features: OptionSet {
        let rawValue: Int

        /// Updates, clearing and invalidation.
        static let writes = Features(rawValue: 1)
        static let patches = Features(rawValue: 2)
        /// The clock goes on; without it there is one moment only.
        static let time = Features(rawValue: 4)
        static let triggers = Features(rawValue: 8)
        /// The cacher fails.
        static let faults = Features(rawValue: 16)
        /// The whole store is cleared.
        static let clearAll = Features(rawValue: 32)
        /// The origin confirms what has not changed.
        static let validators = Features(rawValue: 64)
        /// The origin confirms what it was not asked to confirm.
        static let wrongOrigin = Features(rawValue: 128)
        /// Some content must not be stored.
        static let noStore = Features(rawValue: 256)
        /// The memory in front loses its entry.
        static let eviction = Features(rawValue: 512)
        /// Cancelled fetches report all the same.
        static let late = Features(rawValue: 1024)
        /// The fetch fails.
        static let failures = Features(rawValue: 2048)
        static let forcing = Features(rawValue: 4096)
        /// The origin responds to mutations.
        static let responses = Features(rawValue: 8192)

        static let all: Features = [
            .writes, .patches, .time, .triggers, .faults, .clearAll, .validators, .wrongOrigin, .noStore, .eviction, .late, .failures,
            .forcing, .responses,
        ]
    }

    init(
        _ name: String, expiry: Int? = nil, front: Bool = false, backing: Bool = true, isList: Bool = false, world: Features = .all,
        needs: [CallerNeed] = [.content, .origin, .cached, .freshness, .refresh, .truth],
        observers: Int = 2, callers: Int = 2, patches: Int = 2, _ change: (inout StorePolicy) -> Void = { _ in }
    ) {
        var policy = StorePolicy.default
        change(&policy)
        self.name = name
        self.world = world
        self.needs = needs
        (maxObservers, maxCallers, maxPatches) = (observers, callers, patches)
        rules = KeyRules(
            expiry: expiry.map { .after(.seconds($0)) } ?? .never, policy: policy, hasFront: front, hasBacking: backing,
            list: isList ? checkedList : nil)
    }

    var isList: Bool { rules.isList }
    var expiry: Int? { rules.expiry.lifetime.map(whole) }
    var description: String { name }

    /// For how long an unwanted fetch may go on; `nil` for ever.
    var grace: Int? {
        if case .cancel(let grace) = rules.policy.unwantedFetch { whole(grace) } else { nil }
    }
}

/// A duration as whole seconds.
func whole(_ duration: Duration) -> Int { Int(duration.components.seconds) }

/// A second of the model's clock, which begins at 100; before the beginning there is nothing but the distant past.
func instant(_ second: Int) -> MonotonicInstant {
    second < 0 ? .distantPast : MonotonicInstant(nanoseconds: Int64(second) * 1_000_000_000)
}

/// A clock that stands still while a fact is handled.
struct StandingTime: TimeSource {
    let now: MonotonicInstant
    let date: Date

    func sleep(until deadline: MonotonicInstant) async throws { preconditionFailure("a machine does not wait") }
}

/// What a fetch of the model fails with.
struct ModelError: Error, Equatable {
    let number: Int
}

/// The index of a list as it was after the last page.
private final class ListCopy {
    let list: [Int]

    init(_ list: [Int]) { self.list = list }
}

/// Elements are told apart by their numbers.
private let checkedList = ListRules<[Int]>(
    merge: checkedMerge, count: { $0.count }, resize: ElementIdentity<Int>.by { $0 }.resize)

/// Puts pages together, and leaves a mark in the list when the machine has kept an index of another list.
private let checkedMerge: PageMerge<[Int]> = { list, page, direction, index in
    if let index = index as? ListCopy, index.list != list { list.append(-999) }
    switch direction {
    case .next: list += page
    case .prev: list = page + list
    }
    index = ListCopy(list)
    return nil
}
