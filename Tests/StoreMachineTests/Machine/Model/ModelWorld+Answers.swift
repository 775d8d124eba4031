@testable import StoreCore

// Checks the results that callers get.

extension ModelWorld {
    mutating func receive(_ answer: CallerResult<[Int]>, _ id: CallerID) {
        guard let place = callers.firstIndex(where: { $0.id == id }) else {
            return violate("C9", "resumes a caller that has a result or has left")
        }
        let caller = callers[place]
        if log.names != nil { moment.answers.append(described(answer)) }
        if caller.isAnswered { violate("C9", "resumes a caller twice") }
        if !isRight(answer, for: caller) { violate(law(of: caller.need), "a caller for \(caller.need) gets \(answer)") }
        if caller.need == .acceptedContent { callers[place].isAnswered = true } else { callers.remove(at: place) }
    }

    private func law(of need: CallerNeed) -> String {
        switch need {
        case .content, .cached, .freshness, .prefetch: "C3"
        case .origin: "C5"
        case .refresh, .saved, .savedEdit, .allSaved, .acceptedContent: "C6"
        case .page, .pageAfterFetch, .joinedPage: "C13"
        }
    }

    private mutating func isRight(_ answer: CallerResult<[Int]>, for caller: Caller) -> Bool {
        switch (caller.need, answer) {
        case (.content, .content(let content)): content == oracle.visible && mayServe()
        case (.content, .failure(let error)): mayFail(number(of: error))
        case (.origin, .content(let content)): content == oracle.visible && (moment.isFetchAccepted || moment.isUpdated || isConnected)
        case (.origin, .failure(let error)): moment.failedWith == number(of: error)
        case (.cached, .content(let content)): content == oracle.visible && (oracle.isValid(setting) || moment.isUpdated)
        case (.cached, .failure(let error)):
            if moment.readFailed { number(of: error) == 0 } else { isNoValidCache(error) && !oracle.isValid(setting) }
        case (.freshness, .done):
            moment.isFetchEnded || moment.isUpdated || oracle.isHeldOff || (oracle.isValid(setting) && oracle.failure == nil)
        case (.prefetch, .done):
            oracle.isValid(setting) || moment.isFetchEnded || moment.isUpdated || oracle.isHeldOff || moment.isCleared
                || callers.contains { $0.need == .prefetch && $0.id != caller.id }
        case (.refresh, .done): moment.failedWith != nil || isSaved(caller)
        case (.saved, .done): isSaved(caller) || moment.isClearedWhole
        case (.refresh, .failure), (.saved, .failure): isSettled(caller) && oracle.hasSaveFailed
        case (.allSaved, .done): isAllSaved(caller) || moment.isClearedWhole
        case (.allSaved, .failure): oracle.hasSaveFailed && (isSettled(caller) || oracle.owesInvalidation)
        case (.acceptedContent, .done): oracle.isKnown
        case (.page(let direction, let continues), .page(let request)): isRight(request, direction, continues, caller.part)
        default: false
        }
    }

    /// Whether content may be served: it is valid, just fetched or updated, or stale within the window of a policy (C3).
    private mutating func mayServe() -> Bool {
        if oracle.isValid(setting) || moment.isUpdated || moment.isFetchAccepted { return true }
        let policy = setting.rules.policy
        if moment.failedWith != nil || oracle.isHeldOff || isWaiting, oracle.isServable(policy.staleIfError, setting) { return true }
        guard moment.event == .arrive(.content) || moment.hasBecomeKnown else { return false }
        guard oracle.isServable(policy.staleWhileRevalidate, setting) else { return false }
        moment.servedStale = true
        return true
    }

    private func mayFail(_ number: Int) -> Bool {
        if oracle.isValid(setting) || oracle.isServable(setting.rules.policy.staleIfError, setting) { return false }
        return moment.failedWith == number || (oracle.isHeldOff && oracle.failure?.number == number && flight == nil && !isWaiting)
    }

    private func isSettled(_ caller: Caller) -> Bool { caller.awaits.map { $0 <= oracle.settled } ?? false }

    private func isSaved(_ caller: Caller) -> Bool { isSettled(caller) && !oracle.hasSaveFailed }

    /// Whether everything accepted before the caller arrived is saved.
    private func isAllSaved(_ caller: Caller) -> Bool {
        if oracle.invalidationWaits || oracle.hasSaveFailed { return false }
        return caller.awaits.map { $0 <= oracle.settled } ?? (oracle.settled == oracle.revision)
    }

    private func isNoValidCache(_ error: any Error) -> Bool {
        guard let error = error as? StoreError else { return false }
        return error.code == .noValidCache && error.staleContent as? [Int] == oracle.visible
    }

    private func isRight(_ request: PageRequest, _ direction: PageDirection, _ continues: Bool, _ part: Caller.Part?) -> Bool {
        let hasEnded = moment.pageEnded == direction
        switch (request, part) {
        case (.loaded, .asked), (.joined, .joined): return hasEnded && moment.pageFailedWith == nil
        case (.failed(let error), .asked), (.failed(let error), .joined):
            // A failed fetch of the list also fails the page requests that it interrupted.
            return (hasEnded && moment.pageFailedWith == number(of: error)) || moment.failedWith == number(of: error)
        case (.superseded, .asked), (.superseded, .joined): return moment.isCleared || moment.event == .updateWithKeys || isAskedByName
        case (.notLoadedYet, .afterFetch): return moment.isFetchEnded || moment.isUpdated
        case (.noPage, .asked), (.noPage, .joined), (.noPage, nil):
            return oracle.accepted.map { $0.pageKey(direction) == nil } ?? false
        case (.failed(let error), nil):
            let failures = [flight == nil ? oracle.failure?.number : nil, oracle.failedSides[direction]]
            return !continues && failures.contains(number(of: error))
        default: return false
        }
    }
}
