import Trials

@testable import StoreCore

/// A random history of a setting's events, beyond the depth that a search reaches.
struct ModelWalk {
    let setting: ModelSetting
    let origins: [ModelWorld]
    /// The largest number of events.
    var length = 60

    init(_ setting: ModelSetting) {
        self.setting = setting
        origins = ModelWorld.origins(setting)
    }

    /// Walks from one of the origins, and ends all work afterward.
    ///
    /// - Returns: The shortest history that breaks the same law; `nil` if the walk keeps the laws.
    func failure(seed: UInt64) -> Failure? {
        var dice = SplitMix(seed: seed)
        let origin = Int.random(in: origins.indices, using: &dice)
        var (world, events) = (start(origin), [ModelEvent]())
        while events.count < length, world.violations.isEmpty, let event = world.possibleEvents.randomElement(using: &dice) {
            world.apply(event)
            events.append(event)
        }
        if world.violations.isEmpty {
            let ending = world.settled()
            (world, events) = (ending.world, events + ending.events)
        }
        guard let law = world.brokenLaw else { return nil }
        return shortened(Failure(origin: origin, events: events, law: law))
    }

    /// A history that breaks a law with its last event.
    struct Failure {
        var origin: Int
        var events: [ModelEvent]
        var law: String
    }

    private func start(_ origin: Int) -> ModelWorld {
        var world = origins[origin]
        world.separate()
        return world
    }

    /// Removes events as long as the history breaks the same law. Events that become impossible are skipped.
    private func shortened(_ failure: Failure) -> Failure {
        var (shortest, size) = (failure, failure.events.count / 2)
        while size > 0 {
            var place = 0
            var isShorter = false
            while place < shortest.events.count {
                var events = shortest.events
                events.removeSubrange(place..<min(place + size, events.count))
                if let rest = replay(events, from: failure.origin, until: failure.law), rest.count < shortest.events.count {
                    (shortest.events, isShorter) = (rest, true)
                } else {
                    place += size
                }
            }
            if !isShorter { size /= 2 }
        }
        return shortest
    }

    /// Plays events, and ends all work after them.
    ///
    /// - Returns: The events up to the violation of the law; `nil` if they keep it.
    private func replay(_ events: [ModelEvent], from origin: Int, until law: String) -> [ModelEvent]? {
        var (world, played) = (start(origin), [ModelEvent]())
        for event in events where world.possibleEvents.contains(event) {
            world.apply(event)
            played.append(event)
            if let broken = world.brokenLaw { return broken == law ? played : nil }
        }
        let ending = world.settled()
        return ending.world.brokenLaw == law ? played + ending.events : nil
    }

    /// The history with the state after each event.
    func description(of failure: Failure) -> String {
        var world = start(failure.origin)
        return world.history(of: failure.events)
    }
}

extension ModelWorld {
    /// The number of the first law that is broken.
    fileprivate var brokenLaw: String? { violations.first.map { String($0.prefix { $0 != ":" }) } }
}
