import Trials
import StoreCore
import StoreCoreTesting
import StoreTrials

// The steps of a history. Each is applied to the model and to the store, which are compared afterward.

extension History {
    mutating func step() async throws {
        let key = dice.below(Self.keyCount)
        switch dice.below(32) {
        case 0, 1: try await observe(key, forces: dice.below(4) == 0)
        case 2: try await leave()
        case 3, 4: try await require(key, .both)
        case 5: try await require(key, .origin)
        case 6: try await require(key, .cache)
        case 7: try await start(key, "refresh", .refresh) { await $0.refresh() }
        case 8: try await start(key, "validate", .freshness) { await $0.validate() }
        case 9, 10: try await page(key)
        case 11: try await set(key, replacesPageKeys: true)
        case 12: try await set(key, replacesPageKeys: false)
        case 13: try await append(key)
        case 14, 15: try await mutate(key)
        case 16: try await endMutation()
        case 17: try await clear(key)
        case 18: try await invalidate(key)
        case 19: try await cancel()
        case 20, 21: try await jump()
        case 22: try await trigger()
        case 23: try await clearAll()
        case 24: try await prefetch(key)
        case 25: if model.rules.hasBacking { try await releaseCall(fails: dice.below(4) == 0) }
        case 26: world.origin.answerCancelled()
        case 27, 28: try await waitUntilSaved(dice.below(2) == 0 ? key : nil)
        default: try await answer()
        }
    }

    /// Completes all work until the store is idle, which ends the history.
    mutating func windUp() async throws {
        while let id = observers.keys.min() { try await leave(id) }
        while model.isBusy {
            world.origin.answerCancelled()
            if !model.requests.isEmpty { try await answer(kind: 0) }
            try await serveCacher()
            while !model.performing.isEmpty { try await endMutation() }
        }
        world.origin.answerCancelled()
        world.bell.end()
    }

    mutating func serveCacher() async throws { while !model.cacherCalls.isEmpty { try await releaseCall(fails: false) } }

    // MARK: Observers

    private mutating func observe(_ key: Int, forces: Bool) async throws {
        guard observers.count < 4 else { return }
        let id = ids.next()
        model.join(key, forces: forces)
        observers[id] = (key, world.observe(id, key, forces: forces))
        try await settle("observer \(id) joins \(key)\(forces ? ", forcing" : "")")
    }

    private mutating func leave() async throws {
        guard !observers.isEmpty else { return }
        try await leave(observers.keys.sorted()[dice.below(observers.count)])
    }

    private mutating func leave(_ id: Int) async throws {
        guard let (key, task) = observers.removeValue(forKey: id) else { return }
        model.leave(key)
        await task.cancelAndWait()
        try await settle("observer \(id) leaves \(key)")
    }

    // MARK: Callers

    /// Begins a call of a list, and compares.
    private mutating func call(
        _ id: Int, _ key: Int, _ step: String,
        _ body: @escaping @Sendable (PaginationStoreFlowable<Int, Int>) async throws -> String
    ) async throws {
        callers[id] = world.clients.call(id) { [list = world.lists[key]] in try await body(list) }
        try await settle("\(id): \(step)")
    }

    private mutating func require(_ key: Int, _ source: GettingFrom) async throws {
        let id = ids.next()
        let need: HistoryModel.Need = source == .both ? .content : source == .origin ? .origin : .cached
        model.arrive(id, key, need)
        try await call(id, key, "require \(key) from \(source)") { list in "\(try await list.requireData(from: source))" }
    }

    private mutating func start(
        _ key: Int, _ name: String, _ need: HistoryModel.Need,
        _ body: @escaping @Sendable (PaginationStoreFlowable<Int, Int>) async -> Void
    ) async throws {
        let id = ids.next()
        model.arrive(id, key, need)
        try await call(id, key, "\(name) \(key)") { list in
            await body(list)
            return "done"
        }
    }

    private mutating func page(_ key: Int) async throws {
        let (id, direction, continues) = (ids.next(), dice.below(2) == 0 ? PageDirection.next : .prev, dice.below(3) > 0)
        model.arrive(id, key, .page(direction, continues: continues))
        try await call(id, key, "request \(direction) of \(key), \(continues ? "" : "not ")continuing after errors") { list in
            await
                (direction == .next
                ? list.requestNextData(continueWhenError: continues) : list.requestPrevData(continueWhenError: continues)).word
        }
    }

    private mutating func cancel() async throws {
        let waiting = callers.keys.filter { model.results[$0] == nil }.sorted()
        guard !waiting.isEmpty else { return }
        let id = waiting[dice.below(waiting.count)]
        model.cancel(id)
        world.clients.state.update { _ = $0.performing.remove(id) }
        callers[id]?.cancel()
        try await settle("\(id) is canceled")
    }

    private mutating func prefetch(_ key: Int) async throws {
        let id = ids.next()
        model.arrive(id, key, .prefetch)
        world.lists.prefetch([key])
        try await until("the prefetch queue is empty") { world.lists.isPrefetchQueueEmpty }
        // Prefetching returns no result.
        try await settleSilently(id, "prefetch \(key)")
    }

    // MARK: Changes

    private mutating func set(_ key: Int, replacesPageKeys: Bool) async throws {
        let (id, content) = (ids.next(), [contents.next()])
        let next = replacesPageKeys && dice.below(2) == 0 ? "n\(id)" : nil
        let prev = replacesPageKeys && dice.below(2) == 0 ? "p\(id)" : nil
        let revision = model.update(key, content, keys: replacesPageKeys ? (next: next, prev: prev) : nil)
        model.arrive(id, key, .saved(revision, result: "done"))
        let keys = replacesPageKeys ? "with the keys \(next ?? "nil"), \(prev ?? "nil")" : "keeping its keys"
        try await call(id, key, "set \(key) to \(content), \(keys)") { list in
            if replacesPageKeys { await list.update(content, nextKey: next, prevKey: prev) } else { await list.update(content) }
            return "done"
        }
    }

    /// Whether a change may wait for the cache read: after other changes or a trigger the order would be undefined.
    private func mayWaitForRead(_ key: Int) -> Bool { model[key].isRead || !(model[key].isTriggered || model.isReadAwaited(key)) }

    private mutating func append(_ key: Int) async throws {
        guard mayWaitForRead(key) else { return }
        let (id, number) = (ids.next(), contents.next())
        model.arrive(id, key, .acceptedContent(.append(number)))
        try await call(id, key, "append \(number) to \(key)") { list in "\(await list.update { $0.append(number) })" }
    }

    private mutating func mutate(_ key: Int) async throws {
        guard mayWaitForRead(key) else { return }
        let (id, number) = (ids.next(), contents.next())
        let response = dice.below(3) == 0 ? contents.next() : nil
        model.responses[id] = response
        model.arrive(id, key, .acceptedContent(.patch(number)))
        let words = "mutate \(key) by \(number)\(response.map { ", with the response \($0)" } ?? "")"
        try await call(id, key, words) { [clients = world.clients] list in
            if let response {
                try await list.mutate {
                    $0.append(number)
                } perform: {
                    try await clients.perform(id)
                    return [response]
                }
            } else {
                try await list.mutate(optimistically: { $0.append(number) }) { try await clients.perform(id) }
            }
            return "done"
        }
    }

    mutating func endMutation() async throws {
        let works = model.performing.keys.sorted()
        guard !works.isEmpty else { return }
        let (id, succeeds) = (works[dice.below(works.count)], dice.below(2) == 0)
        if succeeds {
            model.patchSucceeded(id)
        } else {
            model.results[id] = "Offline"
            if let key = model.performing[id] { model.patchFailed(id, key) }
        }
        world.clients.end(id, succeeds: succeeds)
        try await settle("mutation \(id) \(succeeds ? "succeeds" : "fails")")
    }

    private mutating func clear(_ key: Int) async throws {
        let id = ids.next()
        let revision = model.clear(key)
        model.arrive(id, key, .saved(revision, result: "done"))
        try await call(id, key, "clear \(key)") { list in
            await list.clear()
            return "done"
        }
    }

    private mutating func invalidate(_ key: Int) async throws {
        guard mayWaitForRead(key) else { return }
        let id = ids.next()
        model.invalidate(id, key)
        try await call(id, key, "invalidate \(key)") { list in
            await list.invalidate()
            return "done"
        }
    }

    private mutating func clearAll() async throws {
        let id = ids.next()
        model.clearAll(id)
        callers[id] = world.clients.call(id) { [lists = world.lists] in
            try await lists.clear()
            return "done"
        }
        try await settle("\(id): clear all")
    }

    private mutating func waitUntilSaved(_ key: Int?) async throws {
        let id = ids.next()
        model.waitUntilSaved(id, key.map { [$0] } ?? Array(0..<Self.keyCount))
        callers[id] = world.clients.call(id) { [lists = world.lists] in
            if let key { try await lists[key].waitUntilSaved() } else { try await lists.waitUntilSaved() }
            return "done"
        }
        try await settle("\(id): wait until \(key.map { "\($0)" } ?? "everything") is saved")
    }

    // MARK: Time, triggers, cacher and origin

    private mutating func jump() async throws {
        let seconds = 1 + dice.below(3)
        model.now += seconds * 1_000
        world.time.advance(by: .seconds(seconds))
        try await settle("\(seconds) s later")
    }

    private mutating func trigger() async throws {
        guard !(0..<Self.keyCount).contains(where: { !model[$0].isRead && model.isReadAwaited($0) }) else { return }
        model.trigger()
        try await world.bell.ring()
        try await settle("the trigger rings")
    }

    private mutating func releaseCall(fails: Bool) async throws {
        guard let chosen = model.cacherCalls.sorted().first else { return }
        let calls = world.cacher.calls
        let number = world.cacher.heldNumbers.first { number in
            let call = calls[number - 1]
            return chosen.hasPrefix("\(call.operation) \(call.param.map { "\($0)" } ?? "") ")
        }
        guard let number else { throw Difference(description: "no held call matches \(chosen)") }
        if let key = calls[number - 1].param { model.callEnded(key, fails: fails) } else { model.clearingEnded(fails: fails) }
        world.cacher.release(number, failing: fails)
        try await settle("\(chosen) \(fails ? "fails" : "ends")")
    }

    private mutating func answer(kind: Int? = nil) async throws {
        let requests = model.requests.sorted { "\($0)" < "\($1)" }
        guard !requests.isEmpty else { return }
        let asked = requests[dice.below(requests.count)]
        let kind = kind ?? dice.below(5)
        guard let direction = asked.direction else { return try await answerContent(asked, kind) }
        let (key, isFlight) = (asked.key, model[asked.key].flight != nil)
        if kind == 4 {
            if isFlight { model.fetched(key, nil) } else { model.pageFetched(key, direction, nil) }
            world.origin.answer(key, direction, with: .failure(Offline()))
        } else {
            let (element, further) = (contents.next(), dice.below(2) == 0 ? "k\(ids.last)" : nil)
            if isFlight {
                model.flightFetched(key, HistoryModel.Record(content: [element], nextKey: further, prevKey: further, fetchedAt: model.now))
            } else {
                model.pageFetched(key, direction, ([element], further))
            }
            world.origin.answer(key, direction, with: .success(OriginResponse(.modified([element]), nextKey: further, prevKey: further)))
        }
        try await settle("page \(direction) of \(isFlight ? "the fetch of " : "")\(key) \(kind == 4 ? "fails" : "arrives")")
    }

    private mutating func answerContent(_ asked: HistoryOrigin.Asked, _ kind: Int) async throws {
        let key = asked.key
        if kind == 4 {
            model.fetched(key, nil)
            world.origin.answer(key, nil, with: .failure(Offline()))
            return try await settle("fetch of \(key) fails")
        }
        let lifetimes: [Int?] = [nil, nil, 0, 5_500]
        let lifetime = lifetimes[dice.below(4)]
        let freshness = Freshness(lifetime: lifetime.map { .milliseconds($0) })
        let deadline = (lifetime ?? model.rules.lifetime).map { model.now + $0 }
        if kind == 3, asked.validator != nil, var record = model[key].accepted {
            // A confirmation without a lifetime keeps that of the content.
            record.lifetime = lifetime ?? record.lifetime
            record.deadline = (record.lifetime ?? model.rules.lifetime).map { model.now + $0 }
            record.keepInitialPage()
            (record.isInvalidated, record.fetchedAt, record.isNeverValid) = (false, model.now, record.lifetime == 0)
            model.fetched(key, record, confirms: true)
            world.origin.answer(key, nil, with: .success(OriginResponse(.notModified(freshness))))
            return try await settle("fetch of \(key) returns not modified, for \(lifetime.map { "\($0) ms" } ?? "as long as usual")")
        }
        let (content, tag) = (contents.next(), dice.below(2) == 0 ? "t\(ids.last)" : nil)
        let record = HistoryModel.Record(
            content: [content], deadline: deadline, validator: tag, nextKey: dice.below(2) == 0 ? "n" : nil,
            prevKey: dice.below(2) == 0 ? "p" : nil, fetchedAt: model.now, isNeverValid: lifetime == 0, lifetime: lifetime)
        model.flightFetched(key, record)
        let result = FetchResult.modified([content], freshness, tag.map { Validator(entityTag: $0) })
        world.origin.answer(key, nil, with: .success(OriginResponse(result, nextKey: record.nextKey, prevKey: record.prevKey)))
        try await settle("fetch of \(key) returns \(content), for \(lifetime.map { "\($0) ms" } ?? "as long as usual")")
    }
}
