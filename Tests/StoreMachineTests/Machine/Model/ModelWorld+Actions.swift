@testable import StoreCore

// Carries out the actions of the machine like the engine, and checks them.

extension ModelWorld {
    mutating func carryOut(_ transition: inout Transition) {
        transition.actions.takeAll().consumeEach { carryOut($0, &transition) }
        beginSaving()
        if transition.isPublished { moment.published += 1 }
        if transition.mirrors {
            check(setting.rules.hasFront, "C6", "mirrors a record without a memory table")
            front = machine.mirrored.map { ($0.record, $0.deadline) }
            wasEvicted = false
        }
    }

    private mutating func carryOut(_ action: KeyAction<[Int]>, _ transition: inout Transition) {
        switch action {
        case .read(let ticket):
            check(!oracle.isKnown, "C6", "reads the cacher although the accepted content is known")
            check(front == nil || oracle.invalidationWaits, "C6", "reads the cacher although memory holds the record")
            begin(Call(kind: .read, ticket: ticket))
        case .save:
            check(!saveWaits, "C6", "requests a save twice")
            saveIsRequested()
            saveWaits = true
        case .readEnded: violate("C22", "reports the end of a read, although no fetch inherits a context")
        case .saveFailed: isFailureNoted = true
        case .saveRecovered: isFailureNoted = false
        case .fetch(let ticket, .content(let validator, let pages)):
            beginFetch(ModelFetch(ticket: ticket, order: .content(revalidating: validator, pages: pages), epoch: oracle.epoch))
        case .fetch(let ticket, .values(let last)): beginStream(ticket, last)
        case .fetch(let ticket, .page(let direction, let key)):
            beginPage(ModelFetch(ticket: ticket, order: .page(direction, key: key), epoch: oracle.epoch), direction, key)
        case .cancel(let ticket): cancel(ticket)
        case .resume(let id, let answer): receive(answer, id)
        case .report: break
        }
    }

    /// Creates the machine of an idle key with the record in memory, like the engine.
    mutating func becomeLive(_ transition: inout Transition) {
        isLive = true
        guard front != nil || !setting.rules.hasBacking else { return }
        var found: HeldRecord<[Int]>?
        if let front {
            let isDated = front.deadline != .distantPast
            found =
                isDated
                ? HeldRecord(front.record, deadline: front.deadline) : HeldRecord(front.record, at: &transition, setting.rules.expiry)
        }
        oracle.becomeKnown(found.map { ModelOracle.Accepted($0.record) }, setting)
        machine.memoryRead(found, now: instant(oracle.now))
    }

    /// Begins a requested save as the cacher's queue does: after the running call, and with the newest content.
    private mutating func beginSaving() {
        guard saveWaits, call == nil, !isEmptying else { return }
        saveWaits = false
        if let record = machine.saveBegan().record {
            check(oracle.accepted == ModelOracle.Accepted(record), "C6", "saves \(record.content), which is not the accepted content")
            check(oracle.accepted?.isForbidden != true, "C6", "saves unstorable content")
            begin(Call(kind: .save, record: record, revision: oracle.revision))
        } else {
            check(oracle.accepted == nil || oracle.accepted?.isForbidden == true, "C4", "removes the record of the accepted content")
            begin(Call(kind: .remove, revision: oracle.revision))
        }
    }

    private mutating func begin(_ new: Call) {
        check(call == nil, "C6", "two calls of the cacher at once")
        check(setting.rules.hasBacking, "C6", "calls a cacher although there is none")
        check(new.kind == .read || new.revision > oracle.settled, "C6", "saves a record again")
        call = new
        call?.isDeferred = isEmptying
    }

    // MARK: Fetches

    private mutating func beginFetch(_ fetch: ModelFetch) {
        check(flight == nil, "C1", "two fetches of the content at once")
        check(isWanted || moment.servedStale || isBeingServedStale, "C1", "an unwanted fetch")
        check(oracle.isKnown, "C1", "a fetch before the accepted content is known")
        let resets = isAskedByName && setting.rules.policy.refreshScope == .firstPage
        let pages = resets ? PageCounts() : oracle.accepted?.refetched(setting.window) ?? PageCounts()
        check(fetch.pages == pages, "C13", "fetches \(fetch.pages) instead of \(pages)")
        let confirmable = oracle.accepted?.isConfirmable == true ? oracle.accepted?.tag : nil
        check(fetch.tag == (pages == PageCounts() ? confirmable : nil), "C25", "sends a validator that confirms other pages")
        checkCause()
        if !oracle.isValid(setting) { oracle.isArmed = false }
        oracle.triggerWaits = false
        moment.begun.append(fetch.ticket)
        running.append(fetch)
    }

    /// Whether an observer, a caller or a dropped fetch requests the fetch explicitly, so that it may reset a list.
    var isAskedByName: Bool {
        return wantsRefresh || oracle.forceWaits || moment.lostExplicit || moment.event == .join(forces: true)
    }

    /// Whether the arriving caller gets stale content because a fetch begins; its result follows this action.
    var isBeingServedStale: Bool { oracle.isServable(setting.rules.policy.staleWhileRevalidate, setting) && isArrivalOfContent }

    private var isArrivalOfContent: Bool { moment.event == .arrive(.content) || moment.hasBecomeKnown }

    /// Checks that the event may begin a fetch, and that no failure holds off an automatic one.
    func checkCause() {
        switch moment.event {
        case .arrive(.cached), .arrive(.acceptedContent), .arrive(.saved), .arrive(.allSaved), .leave, .depart, .saved, .late, .pushed,
            .streamEnds:
            check(moment.hasBecomeKnown, "C1", "an event that must not begin a fetch begins one")
        case .command, .begin, .confirm, .retire, .kill: violate("C1", "an event that must not begin a fetch begins one")
        case .patch: check(moment.hadFlight && !setting.rules.isLive, "C1", "an event that must not begin a fetch begins one")
        case .join(forces: false), .arrive(.content), .arrive(.freshness):
            let isAsked = moment.hasBecomeKnown
            check(isAsked || !oracle.isHeldOff, "C12", "an automatic fetch although a failure holds it off")
            let isDue = !oracle.isValid(setting) || oracle.failure != nil || (moment.event == .join(forces: false) && lacksStream)
            check(isAsked || isDue, "C1", "a fetch although the content is valid")
        case .arrive(.prefetch):
            let isAsked = moment.hasBecomeKnown
            check(isAsked || !oracle.isHeldOff, "C12", "prefetches although a failure holds it off")
            check(isAsked || !oracle.isValid(setting), "C1", "prefetches valid content")
        case .arrive(.page(_, continueWhenError: false)):
            check(
                moment.hasBecomeKnown || oracle.failure == nil, "C13",
                "fetches a failed list although the caller does not continue after errors")
        case .timer: check(moment.dueBefore.map { $0 <= oracle.now } ?? false, "C10", "an automatic fetch before its time")
        case .trigger:
            check(moment.dueBefore != nil || (oracle.due(setting).map { $0 <= oracle.now } ?? false), "C16", "a fetch before its time")
        default: break
        }
    }

    private mutating func beginPage(_ fetch: ModelFetch, _ direction: PageDirection, _ key: String) {
        check(!running.contains { $0.direction == direction }, "C13", "two fetches of one page at once")
        check(flight == nil, "C13", "fetches a page during a fetch of the list")
        let expected = oracle.accepted?.pageKey(direction)
        check(key == expected, "C13", "fetches page \(key) instead of \(expected ?? "none")")
        check(isWanted, "C1", "an unwanted page fetch")
        if moment.event == .arrive(.page(direction, continueWhenError: false)) {
            check(oracle.failedSides[direction] == nil, "C13", "fetches a failed page although the caller does not continue after errors")
        }
        moment.begun.append(fetch.ticket)
        running.append(fetch)
    }

    private mutating func cancel(_ ticket: Ticket) {
        if oracle.stream?.ticket == ticket { endUnwantedStream() }
        if let place = moment.ended.firstIndex(of: ticket) {
            moment.ended.remove(at: place)
            return
        }
        guard let place = running.firstIndex(where: { $0.ticket == ticket }) else {
            return violate("C9", "cancels a fetch that is not running")
        }
        let fetch = running.remove(at: place)
        check(!moment.begun.contains(ticket), "C1", "begins a fetch and cancels it in the same transition")
        moment.cancelled.append(fetch)
        late.removeAll { $0.direction == fetch.direction }
        late.append(fetch)
    }
}
