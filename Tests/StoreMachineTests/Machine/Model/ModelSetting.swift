internal import Foundation

@testable import StoreCore

/// The configuration of one search: the rules of the machine and the events of its environment.
///
/// All times are whole seconds, which keeps the number of states small.
final class ModelSetting: Sendable, CustomStringConvertible {
    let name: String
    let rules: KeyRules<[Int]>
    let world: Features
    let needs: [CallerNeed]
    let maxObservers: Int
    let maxCallers: Int
    let maxPatches: Int

    /// The events besides those of observers and callers.
    struct Features: OptionSet {
        let rawValue: Int

        /// Updates, clearing and invalidation.
        static let writes = Features(rawValue: 1)
        static let patches = Features(rawValue: 2)
        /// Time passes; without it the clock does not move.
        static let time = Features(rawValue: 4)
        static let triggers = Features(rawValue: 8)
        /// The cacher fails.
        static let faults = Features(rawValue: 16)
        /// The whole store is cleared.
        static let clearAll = Features(rawValue: 32)
        /// The origin returns not modified for a matching validator.
        static let validators = Features(rawValue: 64)
        /// The origin returns not modified without a validator.
        static let wrongOrigin = Features(rawValue: 128)
        /// Some content must not be stored.
        static let noStore = Features(rawValue: 256)
        /// The memory table evicts its entry.
        static let eviction = Features(rawValue: 512)
        /// Canceled fetches report a result.
        static let late = Features(rawValue: 1024)
        /// The fetch fails.
        static let failures = Features(rawValue: 2048)
        static let forcing = Features(rawValue: 4096)
        /// The origin returns content for mutations.
        static let responses = Features(rawValue: 8192)
        /// The commands of an outbox change the content.
        static let commands = Features(rawValue: 16384)

        static let all: Features = [
            .writes, .patches, .time, .triggers, .faults, .clearAll, .validators, .wrongOrigin, .noStore, .eviction, .late, .failures,
            .forcing, .responses,
        ]
    }

    init(
        _ name: String, expiry: Int? = nil, front: Bool = false, backing: Bool = true, isList: Bool = false, window: Int? = nil,
        world: Features = .all,
        needs: [CallerNeed] = [.content, .origin, .cached, .freshness, .refresh, .acceptedContent],
        observers: Int = 2, callers: Int = 2, patches: Int = 2, isLive: Bool = false, policy: StorePolicy = .default
    ) {
        self.name = name
        self.world = world
        self.needs = needs
        (maxObservers, maxCallers, maxPatches) = (observers, callers, patches)
        rules = KeyRules(
            expiry: expiry.map { .after(.seconds($0)) } ?? .never, policy: policy, hasFront: front, hasBacking: backing,
            list: isList ? checkedList(window) : nil, isLive: isLive)
    }

    var isList: Bool { rules.isList }
    /// The largest number of pages of the list.
    var window: Int? { rules.list?.window }
    var expiry: Int? { rules.expiry.lifetime.map(whole) }
    var description: String { name }

    /// The grace period of an unwanted fetch; `nil` for an unlimited one.
    var grace: Int? { if case .cancel(let grace) = rules.policy.unwantedFetch { whole(grace) } else { nil } }
}

/// Converts a duration to whole seconds.
func whole(_ duration: Duration) -> Int { Int(duration.components.seconds) }

/// Converts a second of the model's clock, which starts at 100. A negative second is the distant past.
func instant(_ second: Int) -> MonotonicInstant { second < 0 ? .distantPast : MonotonicInstant(nanoseconds: Int64(second) * 1_000_000_000) }

/// A clock that does not move during a transition.
struct StandingTime: TimeSource {
    let now: MonotonicInstant
    let date: Date

    func sleep(until deadline: MonotonicInstant) async throws { preconditionFailure("a machine does not wait") }
}

/// The error of a failed fetch in the model.
struct ModelError: FailureAdvising, Equatable {
    let number: Int

    var failureKind: FailureKind { .transient }
    /// Without jitter, the model knows when a stream connects again.
    var retryAfter: Duration? { .seconds(1) }
}

/// A copy of a list after its last page, used as its merge index.
private final class ListCopy {
    let list: [Int]

    init(_ list: [Int]) { self.list = list }
}

/// Elements are identified by their numbers.
private func checkedList(_ window: Int?) -> ListRules<[Int]> {
    ListRules(
        merge: checkedMerge, count: { $0.count }, resize: ElementIdentity<Int>.by { $0 }.resize,
        drop: { list, count, direction in ListRules.drop(from: &list, count, direction) }, window: window)
}

/// Merges pages, and adds a marker element if the machine passes the index of another list.
private let checkedMerge: PageMerge<[Int]> = { list, page, direction, index in
    if let index = index as? ListCopy, index.list != list { list.append(-999) }
    switch direction {
    case .next: list += page
    case .prev: list = page + list
    }
    index = ListCopy(list)
    return nil
}
