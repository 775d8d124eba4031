internal import Foundation

@testable import StoreCore

// Applies each event to the machine and to the oracle.

extension ModelWorld {
    typealias Transition = KeyMachine<[Int]>.Transition

    /// Applies one event, carries out the resulting actions, and checks every law.
    mutating func apply(_ event: ModelEvent) {
        var transition = Transition(time: StandingTime(now: instant(oracle.now), date: date), tickets: tickets)
        if !isLive, event.makesLive { becomeLive(&transition) }
        let before = ModelShown(machine.state)
        moment = Moment()
        oracle.hasDropped = false
        moment.event = event
        moment.hadFlight = flight != nil
        moment.dueBefore = observers > 0 && flight == nil ? oracle.due(setting) : nil
        happen(event, &transition)
        // Without a backing cacher, accepted content counts as saved.
        if !setting.rules.hasBacking { settle(oracle.revision, failed: false) }
        oracle.accepted?.names = oracle.folded
        carryOut(&transition)
        tickets = transition.tickets
        checkTransition(seenBefore: before)
        retire()
        checkState()
    }

    private mutating func happen(_ event: ModelEvent, _ transition: inout Transition) {
        switch event {
        case .join(let forces):
            observers += 1
            if forces, flight == nil { endEpochIfStreaming() }
            if forces, !oracle.isKnown { oracle.forceWaits = true }
            machine.observerJoined(forceRefresh: forces, &transition)
        case .leave:
            observers -= 1
            if observers == 0 { (oracle.forceWaits, oracle.triggerWaits) = (false, false) }
            machine.observerLeft(&transition)
        case .arrive(let need): arrive(need, &transition)
        case .depart(let place): machine.callerLeft(callers.remove(at: place).id, &transition)
        case .read(let succeeds): readEnds(succeeds, &transition)
        case .saved(let succeeds): saveEnds(succeeds, &transition)
        case .emptied:
            isEmptying = false
            (stored, oracle.isUnread) = (nil, false)
            call?.isDeferred = false
        case .recovered: recover(&transition)
        case .evicted:
            front = nil
            wasEvicted = true
        case .fetched(let direction, let outcome): fetchEnds(direction, outcome, &transition)
        case .late: lateFetchEnds(&transition)
        case .update, .updateWithKeys, .clear, .clearAll, .invalidate: write(event, &transition)
        case .patch, .settle, .respond, .settleForgotten: patch(event, &transition)
        case .command, .begin, .deliver, .refuse, .confirm, .retire, .kill: command(event, &transition)
        case .pushed(let value): push(value, &transition)
        case .streamEnds(let fails): streamEnds(fails: fails, &transition)
        case .tick: oracle.now += 1
        case .timer:
            streamTimer()
            machine.timerFired(&transition)
        case .trigger:
            if flight == nil, !isConnected { oracle.triggerWaits = true }
            machine.triggered(&transition)
        }
    }

    private mutating func endEpochIfStreaming() { if oracle.stream != nil { endEpoch() } }

    private mutating func arrive(_ need: CallerNeed, awaits: Int? = nil, _ transition: inout Transition) {
        let id = CallerID(nextNumber())
        if need == .allSaved { retrySave() }
        if need == .refresh, flight == nil { endEpochIfStreaming() }
        let isSaver = need == .allSaved && oracle.isKnown
        callers.append(Caller(id: id, need: need, awaits: isSaver ? oracle.revision : awaits))
        if let answer = machine.callerArrived(id, needing: need, &transition) { receive(answer, id) }
    }

    // MARK: The cacher

    private mutating func readEnds(_ succeeds: Bool, _ transition: inout Transition) {
        guard let ended = call else { return }
        call = nil
        if !oracle.isKnown { oracle.isUnreadable = !succeeds }
        if succeeds {
            let record = withoutRetired(stored)
            becomeKnown(record)
            let found = record.map { HeldRecord($0, at: &transition, setting.rules.expiry) }
            machine.cacheReadFinished(ended.ticket, .success(found), &transition)
        } else {
            moment.readFailed = true
            if !oracle.isKnown { oracle.isUnread = true }
            if !oracle.isKnown, oracle.invalidationWaits {
                (oracle.hasSaveFailed, oracle.owedSince, oracle.owesInvalidation) = (true, oracle.now, true)
            }
            becomeKnown(nil)
            machine.cacheReadFinished(ended.ticket, .failure(ModelError(number: 0)), &transition)
        }
    }

    mutating func becomeKnown(_ found: CacheRecord<[Int]>?) {
        moment.hasBecomeKnown = !oracle.isKnown
        if !oracle.isKnown, oracle.invalidationWaits { moment.isInvalidated = true }
        oracle.becomeKnown(found.map { ModelOracle.Accepted($0) }, setting)
    }

    private mutating func saveEnds(_ succeeds: Bool, _ transition: inout Transition) {
        guard let ended = call else { return }
        call = nil
        if succeeds { (stored, oracle.isUnread) = (ended.record, false) }
        settle(ended.revision, failed: !succeeds)
        let error: (any Error)? = succeeds ? nil : ModelError(number: 0)
        machine.saveFinished(error, removing: ended.kind == .remove, &transition)
    }

    private mutating func settle(_ revision: Int, failed: Bool) {
        guard revision >= oracle.settled else { return }
        (oracle.settled, oracle.hasSaveFailed) = (revision, failed)
        (oracle.owedSince, oracle.owesInvalidation) = (failed ? oracle.now : nil, false)
    }

    /// Another key's record has been saved.
    private mutating func recover(_ transition: inout Transition) {
        retrySave()
        machine.otherKeyWasSaved(&transition)
    }

    /// Retries a failed save or invalidation.
    private mutating func retrySave() {
        guard canRetrySave else { return }
        if oracle.owesInvalidation {
            (oracle.hasSaveFailed, oracle.owedSince, oracle.owesInvalidation) = (false, nil, false)
            (oracle.isKnown, oracle.invalidationWaits, oracle.failure, oracle.failedSides) = (false, true, nil, [:])
        } else {
            oracle.revision += 1
        }
    }

    // MARK: Writing

    private mutating func write(_ event: ModelEvent, _ transition: inout Transition) {
        moment.lostExplicit = flight?.isExplicit == true || oracle.forceWaits
        switch event {
        case .invalidate:
            moment.lostExplicit = flight?.isExplicit == true
            moment.isInvalidated = oracle.isKnown
            endEpochIfStreaming()
            oracle.invalidate()
            machine.invalidated(&transition)
        case .clearAll: clearAll(&transition)
        case .clear:
            clearContent()
            awaitSave(machine.cleared(&transition), &transition)
        default:
            moment.isUpdated = true
            // A stream keeps running (L3).
            moment.lostExplicit = oracle.stream == nil && (moment.lostExplicit || wantsRefresh)
            oracle.forceWaits = false
            moment.hasBecomeKnown = !oracle.isKnown
            let content = [nextNumber("mine")]
            let keys: (String?, String?)? = event == .updateWithKeys ? ("n", nil) : nil
            oracle.update(content, keys: keys, setting)
            awaitSave(machine.updated(content, keys: keys.map { .replaced(next: $0.0, prev: $0.1) } ?? .kept, &transition), &transition)
        }
    }

    private mutating func clearAll(_ transition: inout Transition) {
        if setting.rules.hasBacking { isEmptying = true }
        // The queue drops saves that have not begun.
        saveWaits = false
        front = nil
        // The engine notifies live keys only.
        guard !machine.isForgettable else { return }
        moment.isClearedWhole = true
        clearContent()
        if call == nil || call?.kind == .read { settle(oracle.revision, failed: false) }
        machine.cleared(cacherIsCleared: true, &transition)
    }

    private mutating func clearContent() {
        moment.isCleared = true
        endEpochIfStreaming()
        moment.lostExplicit = moment.lostExplicit || wantsRefresh
        oracle.forceWaits = false
        if let last = oracle.patches.last(where: { !$0.isConfirmed && $0.command == nil }) { forgottenPatch = last.id }
        moment.hasBecomeKnown = !oracle.isKnown
        oracle.clear()
    }

    /// Adds a caller that waits for the save of its write.
    private mutating func awaitSave(_ revision: Ticket, _ transition: inout Transition) {
        guard callers.count < setting.maxCallers else { return }
        if !setting.rules.hasBacking { settle(oracle.revision, failed: false) }
        arrive(.saved(revision), awaits: oracle.revision, &transition)
    }

    private mutating func patch(_ event: ModelEvent, _ transition: inout Transition) {
        moment.lostExplicit = flight?.isExplicit == true && oracle.stream == nil
        switch event {
        case .respond(let place, let whole):
            let patch = oracle.patches[place]
            let number = nextNumber(whole ? "response" : "part")
            let response: MutationResponse<[Int]> = whole ? .content([number]) : .part { $0.append(number) }
            if oracle.accepts(patch, whole: whole) {
                oracle.patches.remove(at: place)
                oracle.epoch += 1
                dropFlight()
                moment.isUpdated = whole
                oracle.takeIn([number], whole: whole, setting)
                oracle.changes += 1
            } else {
                settled(place, succeeds: true)
            }
            oracle.fold()
            machine.patchSucceeded(patch.id, response, &transition)
            lastSettled()
        case .settle(let place, let succeeds):
            let id = oracle.patches[place].id
            settled(place, succeeds: succeeds)
            oracle.fold()
            if succeeds { machine.patchSucceeded(id, .none, &transition) } else { machine.patchFailed(id, &transition) }
            lastSettled()
        case .settleForgotten(let succeeds):
            guard let id = forgottenPatch else { return }
            forgottenPatch = nil
            if succeeds, oracle.isKnown {
                oracle.epoch += 1
                oracle.changes += 1
                dropFlight()
                oracle.owesFetch = oracle.owesFetch || (setting.rules.policy.revalidatesAfterMutation && oracle.stream == nil)
            }
            if succeeds { machine.patchSucceeded(id, .none, &transition) } else { machine.patchFailed(id, &transition) }
            if succeeds, oracle.isKnown { lastSettled() }
        default:
            let mark = -nextNumber("patch")
            oracle.epoch += 1
            oracle.changes += 1
            dropFlight()
            let id = machine.patchStarted({ $0.append(mark) }, &transition)
            oracle.patches.append(ModelOracle.Patch(id: id, mark: mark, began: oracle.changes))
        }
    }

    /// Settles a mutation without a response, or with one that is not accepted.
    mutating func settled(_ place: Int, succeeds: Bool) {
        if succeeds {
            oracle.patches[place].isConfirmed = true
            oracle.epoch += 1
            oracle.changes += 1
            dropFlight()
        } else {
            oracle.patches.remove(at: place)
            // The accepted content with a folded patch must not be confirmed by a revalidation of the older record.
            if oracle.patches.first?.isConfirmed == true, flight?.tag != nil { dropFlight() }
        }
        if setting.rules.policy.revalidatesAfterMutation, oracle.stream == nil { oracle.owesFetch = true }
    }

    /// Owes a fetch after the last mutation if the dropped one was wanted only by observers that have content.
    mutating func dropFlight() {
        guard let flight, oracle.stream == nil, !flight.isExplicit, observers > 0, oracle.visible != nil else { return }
        let isAwaited = callers.contains { $0.wantsFetch && $0.part != .asked && $0.part != .joined }
        if !isAwaited { oracle.owesFetch = true }
    }
}

extension ModelWorld {
    /// Delays the fetch after the last mutation while a failure holds it off (C12).
    mutating func lastSettled() {
        guard oracle.patches.isEmpty else { return }
        moment.isLastPatchSettled = true
        moment.isFetchOwed = oracle.owesFetch
        if oracle.owesFetch, observers > 0, oracle.isHeldOff, machine.origin.flight == nil { oracle.triggerWaits = true }
        oracle.owesFetch = false
    }
}

extension HeldRecord<[Int]> {
    /// A record of a cacher with its age on the monotonic clock, computed like the engine does.
    init(_ record: CacheRecord<[Int]>, at transition: inout KeyMachine<[Int]>.Transition, _ expiry: Expiry) {
        let remaining = record.remainingLifetime(expiry: expiry, now: transition.date)
        self.init(record, remaining: remaining, needsRefresh: remaining <= .zero, now: transition.now)
    }
}

extension ModelOracle.Accepted {
    init(_ record: CacheRecord<[Int]>) {
        self.init(content: record.content, fetchedAt: Int(record.fetchedAt.timeIntervalSince1970))
        isInvalidated = record.isInvalidated
        isForbidden = record.freshness.storage == .forbidden
        isComplete = record.fields.isComplete == true
        tag = record.validator?.entityTag.flatMap { Int($0) }
        (nextKey, prevKey) = (record.nextKey, record.prevKey)
        pages = record.pages
        names = record.fields.commands ?? []
    }
}
