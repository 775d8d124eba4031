@testable import StoreCore

// Checks the laws after each transition.

extension ModelWorld {
    // MARK: Consequences of an event

    mutating func checkTransition(seenBefore before: ModelShown?) {
        noteExplicit()
        noteParts()
        noteDeferredSave()
        if moment.servedStale, let place = running.firstIndex(where: \.isOfContent) { running[place].isPromised = true }
        endUnwantedStream()
        check(moment.ended.isEmpty, "L3", "an ended connection is not canceled")
        if (!running.contains(where: { !$0.isPromised }) && (oracle.stream == nil || flight != nil)) || isWanted {
            oracle.graceEnds = nil
        } else if oracle.graceEnds == nil, let grace = setting.grace {
            oracle.graceEnds = oracle.now + grace
        }
        if running.contains(where: \.isPromised) { oracle.graceEnds = nil }
        if moment.event == .timer || setting.grace == 0, let ends = oracle.graceEnds, ends <= oracle.now {
            violate("C9", "an unwanted fetch outlives its grace")
        }
        checkPublish(before)
        checkConsequences()
    }

    private mutating func noteExplicit() {
        if let place = running.firstIndex(where: \.isOfContent) {
            let isAsked =
                (moment.event == .join(forces: true) && oracle.isKnown) || (oracle.isKnown && wantsRefresh)
                || (moment.hasBecomeKnown && oracle.forceWaits) || (moment.lostExplicit && moment.begun.contains(running[place].ticket))
            if isAsked { running[place].isExplicit = true }
        }
        if oracle.isKnown { oracle.forceWaits = false }
    }

    private mutating func noteParts() {
        guard oracle.isKnown else { return }
        for place in callers.indices where callers[place].need == .allSaved && callers[place].awaits == nil {
            callers[place].awaits = oracle.revision
        }
        for place in callers.indices where callers[place].part == nil {
            guard case .page(let direction, continueWhenError: _) = callers[place].need else { continue }
            guard let fetch = running.first(where: { $0.direction == direction }) else {
                callers[place].part = .afterFetch
                continue
            }
            let isFirst = !callers.contains { $0.part == .asked && $0.id != callers[place].id && $0.need.isPage(direction) }
            callers[place].part = moment.begun.contains(fetch.ticket) && isFirst ? .asked : .joined
        }
    }

    private mutating func checkPublish(_ before: ModelShown?) {
        let after = ModelShown(machine.state)
        if after != before, after != nil, observers > 0 { check(moment.published > 0, "C7", "\(after as Any) was not published") }
        if after == before, observers > 0, !moment.hasBecomeKnown {
            check(moment.published == 0, "C7", "\(after as Any) was published again")
        }
        if moment.hasBecomeKnown, observers > 0 { check(moment.published > 0, "C8", "the first state was not published") }
        check(observers == 0 || !oracle.isKnown || after != nil, "C2", "an observed key has no state")
    }

    private func checkConsequences() {
        let begins = flight.map { moment.begun.contains($0.ticket) } ?? false
        let isForced = moment.event == .join(forces: true) || moment.event == .arrive(.refresh)
        if isForced, oracle.isKnown, callers.last?.awaits == nil || moment.event == .join(forces: true) {
            check(flight != nil, "C2", "no fetch runs after a forced one was requested")
        }
        if moment.isCleared || moment.isInvalidated {
            check(
                begins == (isWanted || (moment.hasBecomeKnown && isWanted)), "C5",
                isWanted ? "no new fetch begins at once" : "an unwanted fetch begins")
            check(isWanted || (running.isEmpty && oracle.stream == nil), "C2", "an unwanted fetch keeps running")
        }
        if moment.isUpdated, moment.lostExplicit, isWanted { check(begins, "C5", "an explicit refresh is not restarted") }
        if moment.isLastPatchSettled, observers > 0 {
            let isServed = flight != nil || oracle.stream != nil
            check(isServed || oracle.isHeldOff || !moment.isFetchOwed, "C14", "no fetch after the last mutation")
            check(!begins || moment.hadFlight || moment.isFetchOwed, "C14", "a fetch after the last mutation although none is owed")
            check(
                !begins || !oracle.isHeldOff || moment.hadFlight, "C12", "a fetch after the last mutation although a failure holds it off")
        }
        if moment.event == .timer, let due = moment.dueBefore, due <= oracle.now {
            check(begins || isWaiting, "C10", "no fetch although it is due")
        }
        if moment.event == .trigger, !moment.hadFlight, let due = oracle.due(setting), due <= oracle.now {
            check(flight != nil, "C16", "a trigger is lost")
        }
        if observers > 0, oracle.isKnown, moment.event == .join(forces: false) || moment.hasBecomeKnown, !moment.isUpdated {
            let isServed = oracle.isValid(setting) && oracle.failure == nil && !lacksStream || flight != nil || isWaiting
            check(isServed || oracle.isHeldOff, "C3", "an observer gets no fetch")
        }
        checkCancellations()
    }

    /// A fetch may be canceled if it is outdated, superseded by a fetch of the list, or unwanted.
    private func checkCancellations() {
        for fetch in moment.cancelled {
            let isOutdated = fetch.epoch < oracle.epoch || (fetch.tag != nil && fetch.tag != oracle.accepted?.tag)
            let isSuperseded = !fetch.isOfContent && flight != nil
            let isUnwanted = !isWanted && !fetch.isPromised && setting.grace != nil && (moment.event == .timer || setting.grace == 0)
            // The page belongs behind one that was just dropped, and is requested again with the key of that one.
            let isBehindDropped = fetch.direction != nil && fetch.direction != moment.pageEnded && oracle.hasDropped
            check(isOutdated || isSuperseded || isUnwanted || isBehindDropped, "C9", "cancels a fetch for no reason")
        }
    }

    // MARK: Idle keys

    /// Forgets an idle key, as the engine does.
    mutating func retire() {
        guard machine.isForgettable else { return }
        check(oracle.stream == nil, "C15", "a key with a stream is forgotten")
        check(running.isEmpty && callers.isEmpty && observers == 0 && call == nil && !saveWaits, "C15", "a live key is forgotten")
        check(oracle.patches.isEmpty && !oracle.invalidationWaits && !oracle.forceWaits, "C15", "a key is forgotten with pending changes")
        if oracle.isKnown { checkSaved() }
        machine = KeyMachine(rules: setting.rules)
        isLive = false
        oracle.forget()
    }

    /// Checks that the cacher holds exactly the accepted content.
    func checkSaved() {
        var expected = oracle.accepted.flatMap { $0.isForbidden ? nil : $0 }
        let saved = withoutRetired(stored).map { ModelOracle.Accepted($0) }
        expected?.names.removeAll { name in !oracle.delivered.contains { $0.id == name } }
        if setting.rules.hasBacking, !isEmptying, !oracle.isUnread {
            check(saved == expected, "C6", "the cacher holds \(stored?.content as Any), not \(expected as Any)")
        } else if !setting.rules.hasBacking, !wasEvicted {
            check(front.map { ModelOracle.Accepted($0.record) } == expected, "C6", "memory holds \(front?.record.content as Any)")
        }
    }
}

extension CallerNeed {
    func isPage(_ direction: PageDirection) -> Bool { if case .page(direction, continueWhenError: _) = self { true } else { false } }
}
