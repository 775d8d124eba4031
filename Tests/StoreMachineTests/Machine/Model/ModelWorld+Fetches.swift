@testable import StoreCore

// Ends fetches.

extension ModelWorld {
    mutating func fetchEnds(_ direction: PageDirection?, _ outcome: ModelEvent.Outcome, _ transition: inout Transition) {
        guard let place = running.firstIndex(where: { $0.direction == direction }) else { return }
        let fetch = running.remove(at: place)
        check(fetch.epoch == oracle.epoch, "C5", "accepts the result of a fetch of an older epoch")
        if let direction { pageEnds(fetch, direction, outcome, &transition) } else { contentEnds(fetch, outcome, &transition) }
    }

    private mutating func contentEnds(_ fetch: ModelFetch, _ outcome: ModelEvent.Outcome, _ transition: inout Transition) {
        moment.isFetchEnded = true
        oracle.lastEnded = oracle.now
        switch outcome {
        case .modified, .unstorable:
            let response = newContent(isForbidden: outcome == .unstorable)
            var new = ModelOracle.Accepted(content: [lastNumber], fetchedAt: oracle.now)
            new.isForbidden = outcome == .unstorable
            new.tag = setting.world.contains(.validators) ? lastNumber : nil
            (new.nextKey, new.prevKey) = (response.nextKey, response.prevKey)
            new.pages = fetch.loaded(outcome == .unstorable ? .forbidden : .allowed)
            // Each page of a list has one element.
            for _ in new.pages.dropFirst() { new.content.append(nextNumber("row")) }
            let content = new.content
            oracle.owesFetch = false
            oracle.failedSides = [:]
            // The fetch began after these patches were confirmed, so its result contains them.
            oracle.dropConfirmed()
            oracle.noteArrival()
            acceptFetched(new)
            var fetched = Fetched(response) { _ in content }
            if !new.pages.isEmpty {
                var fields = fetched.details?.fields ?? RecordDetails.Fields()
                fields.pages = LoadedPages(new.pages)
                fetched = Fetched(content: fetched.content, details: RecordDetails(fields))
            }
            machine.fetchFinished(fetch.ticket, .success(fetched), &transition)
        case .notModified:
            if fetch.tag != nil, var confirmed = oracle.accepted {
                check(confirmed.tag == fetch.tag, "C5", "accepts not modified for a record other than the one with the validator sent")
                confirmed.fetchedAt = oracle.now
                oracle.failedSides = [:]
                confirmed.keepInitialPage()
                confirmed.isInvalidated = false
                acceptFetched(confirmed)
            } else {
                fail(-1)
            }
            machine.fetchFinished(fetch.ticket, .success(Fetched(OriginResponse<[Int]>(.notModified())) { $0 }), &transition)
        case .failure:
            let error = ModelError(number: nextNumber())
            fail(error.number)
            machine.fetchFinished(fetch.ticket, .failure(error), &transition)
        }
    }

    private mutating func newContent(isForbidden: Bool) -> OriginResponse<[Int]> {
        let number = nextNumber("new")
        let freshness = Freshness(storage: isForbidden ? .forbidden : .allowed)
        let validator = setting.world.contains(.validators) ? Validator(entityTag: "\(number)") : nil
        return OriginResponse(
            .modified([number], freshness, validator), nextKey: setting.isList ? "n" : nil, prevKey: setting.isList ? "p" : nil)
    }

    mutating func acceptFetched(_ new: ModelOracle.Accepted) {
        moment.isFetchAccepted = true
        oracle.accept(new, setting)
        // From now on a refresh waits only for the cacher.
        for place in callers.indices where callers[place].need == .refresh && callers[place].awaits == nil {
            callers[place].awaits = oracle.revision
        }
    }

    private mutating func fail(_ number: Int) {
        moment.failedWith = number
        oracle.failure = ModelOracle.Failure(number: number, holdsUntil: oracle.now + whole(setting.rules.policy.errorExpiry))
    }

    private mutating func pageEnds(
        _ fetch: ModelFetch, _ direction: PageDirection, _ outcome: ModelEvent.Outcome, _ transition: inout Transition
    ) {
        moment.pageEnded = direction
        switch outcome {
        case .modified, .unstorable:
            // The second page in a direction is the last one.
            let loaded = direction == .next ? oracle.accepted?.loaded.next : oracle.accepted?.loaded.prev
            let name = direction == .next ? "n" : "p"
            let key: String? = (loaded ?? 0) > 0 ? nil : name
            let page = [nextNumber("page")]
            let freshness = Freshness(storage: outcome == .unstorable ? .forbidden : .allowed)
            oracle.append(page, freshness.storage, direction, asked: fetch.key, key: key, window: setting.window)
            // The key that a page returns for the other direction counts only after a page was dropped.
            let (next, prev): (String?, String?) = direction == .next ? (key, "x") : ("x", key)
            let response = OriginResponse(.modified(page, freshness), nextKey: next, prevKey: prev)
            machine.pageFinished(direction, fetch.ticket, .success(Fetched(response) { $0 }), &transition)
        case .notModified:
            (moment.pageFailedWith, oracle.failedSides[direction]) = (-1, -1)
            machine.pageFinished(direction, fetch.ticket, .success(Fetched(OriginResponse<[Int]>(.notModified())) { $0 }), &transition)
        case .failure:
            let error = ModelError(number: nextNumber())
            (moment.pageFailedWith, oracle.failedSides[direction]) = (error.number, error.number)
            machine.pageFinished(direction, fetch.ticket, .failure(error), &transition)
        }
    }

    /// Reports the result of a canceled fetch, which must be ignored.
    mutating func lateFetchEnds(_ transition: inout Transition) {
        let fetch = late.removeFirst()
        if case .values = fetch.order {
            let goesOn = machine.streamYielded(fetch.ticket, .content([nextNumber()]), &transition)
            return check(!goesOn, "L3", "accepts a value of a canceled connection")
        }
        let result = Fetched(OriginResponse(.modified([nextNumber()]), nextKey: "late", prevKey: "late")) { $0 }
        if let direction = fetch.direction {
            machine.pageFinished(direction, fetch.ticket, .success(result), &transition)
        } else {
            machine.fetchFinished(fetch.ticket, .success(result), &transition)
        }
    }
}
