@testable import StoreCore

/// An event of a key.
enum ModelEvent: Hashable {
    case join(forces: Bool)
    case leave
    case arrive(CallerNeed)
    /// The caller at this position of the list leaves.
    case depart(Int)

    case read(succeeds: Bool)
    case saved(succeeds: Bool)
    /// The whole cacher has been emptied.
    case emptied
    /// The cacher has saved another key's record.
    case recovered
    case evicted

    /// The running fetch of the content or of a page ends with this outcome.
    case fetched(PageDirection?, Outcome)
    /// The open connection delivers a value, or ends.
    case pushed(Push)
    case streamEnds(fails: Bool)
    /// A canceled fetch reports a result.
    case late

    case update
    case updateWithKeys
    case clear
    case clearAll
    case invalidate

    case patch
    /// The patch at this position is settled.
    case settle(Int, succeeds: Bool)
    /// The patch at this position succeeds, and the origin returns the whole content or a part of it.
    case respond(Int, whole: Bool)
    /// A patch dropped by `clear` is settled.
    case settleForgotten(succeeds: Bool)

    /// A command of an outbox is submitted.
    case command
    /// A delivery of the command at this position begins, or the origin performs or refuses the command.
    case begin(Int)
    case deliver(Int, responds: Bool)
    case refuse(Int)
    /// A command that was performed for an earlier process is folded.
    case confirm(Int)
    /// The outbox forgets the commands that the saved content contains.
    case retire
    /// The process is killed, and another one shows the commands.
    case kill

    case tick
    case timer
    case trigger

    enum Push: Hashable { case content, change, current }
    enum Outcome: Hashable { case modified, unstorable, notModified, failure }

    /// Whether the event creates the machine of an idle key.
    var makesLive: Bool {
        switch self {
        case .join, .arrive, .update, .updateWithKeys, .clear, .invalidate, .patch, .settleForgotten(succeeds: true), .command: true
        default: false
        }
    }
}

extension ModelWorld {
    /// All events that are possible in this state.
    var possibleEvents: [ModelEvent] {
        observerEvents + callerEvents + cacherEvents + fetchEvents + writeEvents + patchEvents + commandEvents + timeEvents
    }

    private var observerEvents: [ModelEvent] {
        var events: [ModelEvent] = []
        if observers < setting.maxObservers {
            events.append(.join(forces: false))
            if setting.world.contains(.forcing) { events.append(.join(forces: true)) }
        }
        if observers > 0 { events.append(.leave) }
        return events
    }

    private var callerEvents: [ModelEvent] {
        var events: [ModelEvent] = []
        if callers.count < setting.maxCallers { events += setting.needs.map { .arrive($0) } }
        for (place, caller) in callers.enumerated() where !callers[..<place].contains(where: { $0.isLike(caller) }) {
            events.append(.depart(place))
        }
        return events
    }

    private var cacherEvents: [ModelEvent] {
        var events: [ModelEvent] = []
        if let call, !call.isDeferred {
            let isRead = call.kind == .read
            events.append(isRead ? .read(succeeds: true) : .saved(succeeds: true))
            if setting.world.contains(.faults) { events.append(isRead ? .read(succeeds: false) : .saved(succeeds: false)) }
        }
        if isEmptying, call?.isDeferred != false { events.append(.emptied) }
        if isRecoverable { events.append(.recovered) }
        if front != nil, setting.world.contains(.eviction) { events.append(.evicted) }
        return events
    }

    /// Whether a save has been pending for at least the minimum interval.
    private var isRecoverable: Bool {
        guard let since = oracle.owedSince, canRetrySave else { return false }
        return since + whole(setting.rules.policy.minimumInterval) <= oracle.now
    }

    /// Whether a failed save or invalidation can be retried.
    var canRetrySave: Bool {
        guard oracle.owedSince != nil else { return false }
        return oracle.owesInvalidation ? machine.isIdle : call == nil && oracle.settled == oracle.revision
    }

    private var fetchEvents: [ModelEvent] {
        var events: [ModelEvent] = []
        if oracle.stream?.ticket != nil {
            events += [.pushed(.content), .pushed(.change), .pushed(.current), .streamEnds(fails: false)]
            if setting.world.contains(.failures) { events.append(.streamEnds(fails: true)) }
        }
        for fetch in running where !fetch.isStream {
            events.append(.fetched(fetch.direction, .modified))
            if setting.world.contains(.failures) { events.append(.fetched(fetch.direction, .failure)) }
            if setting.world.contains(.noStore) { events.append(.fetched(fetch.direction, .unstorable)) }
            if fetch.tag != nil || setting.world.contains(.wrongOrigin) { events.append(.fetched(fetch.direction, .notModified)) }
        }
        if !late.isEmpty, setting.world.contains(.late) { events.append(.late) }
        return events
    }

    private var writeEvents: [ModelEvent] {
        guard setting.world.contains(.writes) else { return [] }
        var events: [ModelEvent] = [.clear, .invalidate]
        // An update that keeps page keys needs them, so the engine reads the record first.
        if !setting.isList || oracle.isKnown { events.append(.update) }
        if setting.isList { events.append(.updateWithKeys) }
        if setting.world.contains(.clearAll) { events.append(.clearAll) }
        return events
    }

    private var patchEvents: [ModelEvent] {
        guard setting.world.contains(.patches) else { return [] }
        var events: [ModelEvent] = []
        if oracle.isKnown, oracle.patches.count < setting.maxPatches { events.append(.patch) }
        for (place, patch) in oracle.patches.enumerated() where !patch.isConfirmed && patch.command == nil {
            events += [.settle(place, succeeds: true), .settle(place, succeeds: false)]
            if setting.world.contains(.responses) { events += [.respond(place, whole: true), .respond(place, whole: false)] }
        }
        if forgottenPatch != nil { events += [.settleForgotten(succeeds: true), .settleForgotten(succeeds: false)] }
        return events
    }

    private var timeEvents: [ModelEvent] {
        var events: [ModelEvent] = []
        if setting.world.contains(.time) {
            events.append(.tick)
            if let wake = machine.nextWake, wake <= instant(oracle.now) { events.append(.timer) }
        }
        if setting.world.contains(.triggers), observers > 0 { events.append(.trigger) }
        return events
    }
}
