@testable import StoreCore

// Checks the laws in each state.

extension ModelWorld {
    func checkState() {
        checkAccepted()
        checkRunningFetches()
        checkWaiters()
        checkCacher()
        checkMirror()
        checkTime()
        checkStream()
    }

    private func checkAccepted() {
        check(machine.origin.isKnown == oracle.isKnown, "C6", "the accepted content is \(oracle.isKnown ? "known" : "unknown")")
        let held = machine.book.held.map { ModelOracle.Accepted($0.record) }
        check(held == oracle.accepted, "C5", "the accepted content is \(oracle.accepted as Any), not \(held as Any)")
        check(machine.content == oracle.visible, "C14", "readers get \(machine.content as Any) instead of \(oracle.visible as Any)")
        check(machine.book.patches.map(\.id) == oracle.patches.map(\.id), "C14", "pending mutations differ")
        if let deadline = machine.book.held?.deadline {
            let expected = oracle.accepted?.isInvalidated == true ? .distantPast : oracle.deadline(setting).map(instant) ?? .distantFuture
            check(deadline == expected, "C11", "the deadline is \(expected), not \(deadline)")
        }
        let (shown, expected) = (ModelShown(machine.state), ModelShown(oracle, running: running))
        check(
            shown == expected, shown?.kind == .loading || expected?.kind == .loading ? "C2" : "C4",
            "\(shown as Any) instead of \(expected as Any)")
    }

    private func checkRunningFetches() {
        check(machine.origin.flight?.ticket == flight?.ticket, "C1", "the machine's fetch is not the running one")
        for direction in PageDirection.allCases {
            check(!machine.sides[direction].isInterrupted || flight != nil, "C13", "an interrupted page request is not resumed")
            let ticket = running.first { $0.direction == direction }?.ticket
            check(machine.sides[direction].ticket == ticket, "C13", "the machine's page fetch is not the running one")
        }
        for fetch in running where !fetch.isStream {
            check(fetch.epoch == oracle.epoch, fetch.isOfContent ? "C5" : "C13", "a fetch of an older epoch keeps running")
            if let tag = fetch.tag { check(tag == oracle.accepted?.tag, "C5", "a fetch with an outdated validator keeps running") }
        }
    }

    private func checkWaiters() {
        check(machine.desk.observers == observers, "C15", "observers are miscounted")
        check(Set(machine.desk.callers.keys) == Set(callers.map(\.id)), "C9", "callers are lost or retained")
        check(machine.desk.fetchCallers == callers.filter(\.wantsFetch).count, "C9", "callers that want a fetch are miscounted")
        let refreshing = machine.desk.callers.count { $0.value == .refresh }
        check(machine.desk.refreshCallers == refreshing, "C9", "callers that wait for a refresh are miscounted")
        let isReading = call?.kind == .read
        for caller in callers where !caller.isAnswered {
            check(isServed(caller), "C1", "no work is in progress for a caller for \(caller.need)")
            let isAtOnce = caller.need == .cached || caller.need == .acceptedContent
            // After a failure `validate()` waits for the next fetch, even if the content is valid.
            let isIfValid =
                caller.need == .content || caller.need == .prefetch || (caller.need == .freshness && oracle.failure == nil)
            if oracle.isKnown {
                check(!isAtOnce, "C3", "a caller for \(caller.need) waits although the accepted content is known")
                check(!isIfValid || !oracle.isValid(setting), "C3", "a caller waits although the content is valid")
            }
        }
        if !oracle.isKnown, observers > 0 || oracle.invalidationWaits { check(isReading, "C2", "the cacher is not being read") }
        check(oracle.invalidationWaits == machine.desk.invalidatePending, "C5", "an invalidation is lost or repeated")
        check(oracle.forceWaits == machine.desk.forceRefreshPending, "C2", "a forced fetch is lost or repeated")
    }

    /// Whether running work will resume the caller.
    private func isServed(_ caller: Caller) -> Bool {
        switch caller.need {
        case .saved, .savedEdit, .allSaved: return call != nil || saveWaits
        case .refresh where caller.awaits != nil: return call != nil || saveWaits
        case .page(let direction, continueWhenError: _):
            if caller.part == .asked || caller.part == .joined {
                return running.contains { $0.direction == direction } || (flight != nil && machine.sides[direction].isInterrupted)
            }
            return flight != nil || call?.kind == .read
        default: return flight != nil || call?.kind == .read || isWaiting
        }
    }

    private func checkCacher() {
        let isKept = oracle.hasSaveFailed && oracle.settled == oracle.revision
        guard oracle.isKnown, call == nil, !saveWaits else { return }
        guard oracle.stream?.saveDue == nil || oracle.stream?.valueRevision != oracle.revision else { return }
        check(oracle.settled == oracle.revision, "C6", "the newest accepted content is not being saved")
        let isNoted = machine.saving.failure != nil
        check(
            isNoted == oracle.hasSaveFailed, "C6", "a record after a failed save is \(isNoted ? "kept although it was saved" : "not kept")")
        check(isNoted == isFailureNoted, "C6", "a failed save is \(isNoted ? "not " : "")tried again")
        if !isKept { checkSaved() }
    }

    /// Checks that a hit in the memory table returns what the engine would return.
    private func checkMirror() {
        guard setting.rules.hasFront else { return }
        let isHit = front.map { $0.deadline > instant(oracle.now) } ?? false
        if oracle.isKnown {
            if isHit {
                let isRight = front?.record.content == oracle.visible && oracle.isValid(setting)
                check(isRight, "C6", "memory returns \(front?.record.content as Any), the engine returns \(oracle.visible as Any)")
            } else if oracle.isValid(setting), oracle.patches.isEmpty, oracle.accepted?.isForbidden == false, !wasEvicted {
                violate("C6", "memory returns no record, the engine returns \(oracle.visible as Any)")
            }
            check(front == nil || oracle.accepted?.isForbidden == false, "C6", "memory keeps removed or unstorable content")
        } else if let front, setting.rules.hasBacking, !isEmptying {
            check(stored == front.record, "C6", "memory and the cacher behind it differ")
        }
    }

    private func checkTime() {
        let due = observers > 0 && flight == nil ? oracle.due(setting) : nil
        let stream = oracle.stream
        let seconds = [due, oracle.graceEnds, stream?.silenceEnds, stream?.saveDue].compactMap { $0 }.map(instant)
        let wake = (seconds + [isWanted ? stream?.reconnectsAt : nil].compactMap { $0 }).min()
        check(machine.nextWake == wake, "C10", "wakes at \(machine.nextWake as Any), not at \(wake as Any)")
    }
}
