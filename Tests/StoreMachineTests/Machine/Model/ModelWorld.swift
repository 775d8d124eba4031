internal import Foundation

@testable import StoreCore

/// A machine and its environment: running fetches, the cacher, observers and callers, and the observed results.
///
/// Each event is applied to the machine and to a ``ModelOracle``. The actions of the machine are carried out like in the
/// engine. Any difference between the two, and any broken law, is a violation.
struct ModelWorld {
    let setting: ModelSetting
    var machine: KeyMachine<[Int]>
    /// Whether the engine has a machine of the key: from its first event until it is idle.
    var isLive = false
    var oracle = ModelOracle()
    var tickets = TicketCounter()
    /// The last number assigned to content, a patch, an error or a caller.
    var lastNumber = 0

    // MARK: The cacher

    var stored: CacheRecord<[Int]>?
    var front: (record: CacheRecord<[Int]>, deadline: MonotonicInstant)?
    var wasEvicted = false
    var call: Call?
    /// Whether a requested save waits for the running call or for the emptying of the cacher.
    var saveWaits = false
    /// Whether the machine has reported a failed save that is still pending.
    var isFailureNoted = false
    var isEmptying = false

    // MARK: Fetches, observers and callers

    var running: [ModelFetch] = []
    var late: [ModelFetch] = []
    var observers = 0
    var callers: [Caller] = []
    var forgottenPatch: Ticket?

    // MARK: Results

    var moment = Moment()
    private(set) var log: Log

    /// The broken laws. The copies of a world share them, because a search ends with the first violation.
    final class Log {
        var violations: [String] = []
        /// The names of numbers, for tests that print them.
        var names: [Int: String]?
    }

    /// A call of the cacher in progress.
    struct Call {
        enum Kind: Equatable { case read, save, remove }

        var kind: Kind
        /// The ticket of a load.
        var ticket = Ticket(number: 0)
        var record: CacheRecord<[Int]>?
        var revision = 0
        /// Whether it waits until the whole cacher is emptied.
        var isDeferred = false
    }

    /// A waiting caller.
    struct Caller {
        enum Part { case asked, joined, afterFetch }

        var id: CallerID
        var need: CallerNeed
        /// The revision that must be saved before the caller is resumed. Set for `.saved`, for `.allSaved` once the accepted content
        /// is known, and for `.refresh` once its fetch has ended.
        var awaits: Int?
        /// The part of a page load that the caller waits for.
        var part: Part?
        /// Whether the caller has its result and stays only to retain the accepted content.
        var isAnswered = false

        var wantsFetch: Bool { need.wantsFetch && awaits == nil }

        func isLike(_ other: Caller) -> Bool {
            need.kind == other.need.kind && (awaits == nil) == (other.awaits == nil) && part == other.part && isAnswered == other.isAnswered
        }
    }

    /// The effects of the current transition.
    struct Moment {
        var event = ModelEvent.tick
        var isFetchAccepted = false
        var isFetchEnded = false
        var failedWith: Int?
        var isUpdated = false
        var isCleared = false
        var isClearedWhole = false
        var isInvalidated = false
        var isLastPatchSettled = false
        var isFetchOwed = false
        var readFailed = false
        var pageEnded: PageDirection?
        var pageFailedWith: Int?
        var servedStale = false
        var hasBecomeKnown = false
        var hadFlight = false
        var dueBefore: Int?
        var lostExplicit = false
        var answers: [String] = []
        var begun: [Ticket] = []
        var cancelled: [ModelFetch] = []
        /// The connections that the store must cancel.
        var ended: [Ticket] = []
        var mustReconnect = false
        /// Whether the machine took more values after a value.
        var goesOn: Bool?
        var published = 0
    }

    /// Creates the world of a key with this record in the cacher.
    init(_ setting: ModelSetting, stored: CacheRecord<[Int]>? = nil, log: Log = Log()) {
        self.setting = setting
        self.log = log
        self.stored = stored
        machine = KeyMachine(rules: setting.rules)
        if !setting.rules.hasBacking, let stored {
            self.stored = nil
            let deadline = setting.expiry.map { Int(stored.fetchedAt.timeIntervalSince1970) + $0 }
            front = (stored, stored.isInvalidated ? .distantPast : deadline.map(instant) ?? .distantFuture)
        }
        lastNumber = 10
    }

    var date: Date { Date(timeIntervalSince1970: Double(oracle.now)) }
    var flight: ModelFetch? { running.first { $0.isOfContent } }
    var violations: [String] { log.violations }
    var isWanted: Bool { observers > 0 || callers.contains { $0.wantsFetch } }
    var wantsRefresh: Bool { callers.contains { $0.need == .refresh && $0.awaits == nil } }

    /// Shares the broken laws with no earlier copy.
    mutating func separate() { log = Log() }

    /// Returns a number not used before.
    mutating func nextNumber(_ name: String = "") -> Int {
        lastNumber += 1
        log.names?[lastNumber] = name
        return lastNumber
    }

    func violate(_ law: String, _ what: String) { log.violations.append("\(law): \(what)") }

    func check(_ holds: Bool, _ law: String, _ what: @autoclosure () -> String) { if !holds { violate(law, what()) } }
}

extension CallerNeed {
    /// The need as one number, without the values of its arguments.
    var kind: UInt8 {
        switch self {
        case .content: 0
        case .origin: 1
        case .cached: 2
        case .freshness: 3
        case .refresh: 4
        case .acceptedContent: 5
        case .saved, .savedEdit: 6
        case .page(.next, let continues): continues ? 7 : 8
        case .page(.prev, let continues): continues ? 9 : 10
        case .pageAfterFetch: 11
        case .joinedPage(.next): 12
        case .joinedPage(.prev): 13
        case .allSaved: 14
        case .prefetch: 15
        }
    }
}
