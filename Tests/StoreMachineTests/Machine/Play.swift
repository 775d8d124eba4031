internal import Foundation
import Testing

@testable import StoreCore

/// A few events and the state expected after the last one: one row of a table.
struct Play: CustomTestStringConvertible {
    /// The record that the cacher holds at the beginning; its content is called `old`.
    enum Cache { case nothing, valid, expired, invalidated }

    var name: String
    var holds: Cache
    var events: [ModelEvent]
    /// The state that observers see afterward.
    var shows: String
    /// The results that callers get from the last event.
    var answers: [String]
    /// The numbers of fetches that the last event begins and cancels.
    var begins: Int
    var cancels: Int

    init(
        _ name: String, holds: Cache = .valid, events: [ModelEvent], shows: String, answers: [String] = [], begins: Int = 0,
        cancels: Int = 0
    ) {
        (self.name, self.holds, self.events, self.shows) = (name, holds, events, shows)
        (self.answers, self.begins, self.cancels) = (answers, begins, cancels)
    }

    var testDescription: String { name }

    /// Applies the events to a machine with these rules and checks every law after each event.
    func run(_ setting: ModelSetting) {
        var world = ModelWorld(setting, stored: record(setting))
        world.log.names = [1: "old"]
        for event in events {
            #expect(world.possibleEvents.contains(event), "\(event) is not possible in this state")
            world.apply(event)
        }
        #expect(world.violations == [])
        #expect(world.described(world.machine.state) == shows)
        #expect(world.moment.answers.sorted() == answers.sorted())
        #expect(world.moment.begun.count == begins)
        #expect(world.moment.cancelled.count == cancels)
    }

    private func record(_ setting: ModelSetting) -> CacheRecord<[Int]>? {
        guard holds != .nothing else { return nil }
        var record = CacheRecord(content: [1], fetchedAt: Date(timeIntervalSince1970: holds == .expired ? 98 : 100))
        record.isInvalidated = holds == .invalidated
        if setting.isList { (record.nextKey, record.prevKey) = ("n", "p") }
        if setting.world.contains(.validators) { record.validator = Validator(entityTag: "1") }
        return record
    }
}

extension ModelSetting {
    /// The rules of a table: content expires after two seconds.
    static func table(
        front: Bool = false, backing: Bool = true, isList: Bool = false, window: Int? = nil, validators: Bool = false,
        policy: StorePolicy = .default
    ) -> ModelSetting {
        ModelSetting(
            "a table", expiry: 2, front: front, backing: backing, isList: isList, window: window,
            world: validators ? .all : ModelSetting.Features.all.subtracting(.validators), needs: allNeeds, callers: 4, patches: 3,
            policy: policy)
    }
}

private let allNeeds: [CallerNeed] =
    [.content, .origin, .cached, .freshness, .refresh, .acceptedContent]
    + PageDirection.allCases.flatMap { [.page($0, continueWhenError: true), .page($0, continueWhenError: false)] }

// Short names for the events in tables.
extension ModelEvent {
    static let join = ModelEvent.join(forces: false)
    static let force = ModelEvent.join(forces: true)
    static let read = ModelEvent.read(succeeds: true)
    static let saved = ModelEvent.saved(succeeds: true)
    static let fetched = ModelEvent.fetched(nil, .modified)
    static let failed = ModelEvent.fetched(nil, .failure)
    static let nextPage = ModelEvent.arrive(.page(.next, continueWhenError: true))
    static let prevPage = ModelEvent.arrive(.page(.prev, continueWhenError: true))
    static let nextLoaded = ModelEvent.fetched(.next, .modified)
    static let prevLoaded = ModelEvent.fetched(.prev, .modified)
    static let nextFailed = ModelEvent.fetched(.next, .failure)
}

extension KeyMachine {
    /// Whether the engine may forget this key without a loss.
    var isForgettable: Bool { isIdle && saving.failure == nil }
}
