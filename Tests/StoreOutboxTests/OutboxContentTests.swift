import Foundation
import Testing
import Trials
import StoreCoreTesting

@testable import StoreCore
@testable import StoreFiles
@testable import StoreOutbox

/// What stores show between the submission of a command and the content that contains its change.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct OutboxContentTests {
    /// A directory as a process leaves it that dies after the origin has performed an addition of five to ten.
    private func directory(
        saved: Int?, isNamed: Bool = false, isLogged: Bool = true, change: (inout CacheRecord<Int>) -> Void = { _ in }
    ) async throws -> TemporaryDirectory {
        let directory = try TemporaryDirectory()
        let id = UUID()
        if let saved {
            var record = CacheRecord(content: saved, fetchedAt: entryDate)
            if isNamed { record.fields.commands = [id] }
            change(&record)
            try await FileCacher<Int, Int>(directory: directory.file("numbers")).save(record, param: 1)
        }
        let log = try OutboxLog(directory: directory.file("outbox"))
        let begun: [OutboxEntry.Fact] = [.submitted(try OutboxEntry.Submission(Add(key: 1, amount: 5))), .attempted]
        let facts = begun + (isLogged ? [.delivered(replacement: nil)] : [])
        _ = try log.append(facts.map { OutboxEntry(id: id, lane: .ofKey(1), fact: $0).record }, durability: .crash)
        return directory
    }

    @Test(arguments: [(10, false, true), (15, true, true), (15, true, false), (nil, false, true)] as [(Int?, Bool, Bool)])
    func `O7: after a restart, a delivered change is in the content once, with or without a record, its name in it, or a logged delivery`(
        saved: Int?, isNamed: Bool, isLogged: Bool
    ) async throws {
        // Content that is fetched contains the change.
        let fetcher = ScriptedFetcher<Int, Int> { _ in .success(saved == nil ? 15 : 0) }
        let place = try await directory(saved: saved, isNamed: isNamed, isLogged: isLogged)
        let bench = try await OutboxBench(in: place, fetcher: fetcher).registered()
        if saved != nil { #expect(try await bench.value() == 15) }
        if !isLogged { bench.outbox.start() }
        try await bench.settled()
        #expect(bench.origin.startedCount == (isLogged ? 0 : 1))
        #expect(try await bench.value() == 15)
        try await bench.store.waitUntilSaved()
        #expect(try await bench.saved()?.content == 15)
        let again = try await OutboxBench(in: place).registered()
        #expect(try await again.value() == 15)
        #expect(again.origin.startedCount == 0)
    }

    @Test(arguments: [false, true])
    func `O7: a command is not applied to a record that names it and was read before the registration of its type`(
        _ registersAnother: Bool
    ) async throws {
        let bench = try await OutboxBench(in: directory(saved: 15, isNamed: true))
        if registersAnother {
            await bench.outbox.register(Draft.self, patching: bench.store, at: \.key, patch: { $1 = $0.value }, perform: { _, _ in })
            #expect(try await bench.value() == 15)
        }
        let observer = RecordingObserver(bench.store[1].publish())
        await bench.register()
        bench.outbox.start()
        #expect(try await bench.value() == 15)
        try await bench.settled()
        #expect(try await bench.value() == 15)
        _ = try await observer.next { $0.content == 15 }
        await bench.store[1].update { $0 += 100 }
        #expect(try await bench.saved()?.content == 115)
        #expect(bench.origin.startedCount == 0)
    }

    private struct OtherAdd: Command {
        static let name = "add"
        var key: Int
        var amounts: [Int]
    }

    @Test func `O6, O7: a delivered command that cannot be decoded stays in the log until a program folds its change`() async throws {
        let place = try await directory(saved: 10, isNamed: false)
        let other = try OutboxBench(in: place)
        await other.outbox.register(
            OtherAdd.self, patching: other.store, at: \.key, patch: { $1 += $0.amounts.count }, perform: { _, _ in })
        #expect(other.events.count("cannot decode add") > 0)
        #expect(await !other.outbox.core.isEmpty)
        await other.outbox.core.shutDown()
        let bench = try await OutboxBench(in: place).registered()
        #expect(try await bench.value() == 15)
        try await bench.settled()
        #expect(try await bench.saved()?.content == 15)
    }

    @Test(arguments: [false, true])
    func `D1, O7: a record that names a command gets no change, even if the delivery is not known yet`(_ isKnown: Bool) async throws {
        let directory = try TemporaryDirectory()
        func cacher() -> FileCacher<Int, Int> { FileCacher(directory: directory.file("numbers"), sharing: .processes) }
        let (files, other) = (cacher(), cacher())
        let fetcher = ScriptedFetcher<Int, Int> { _ in .success(15) }
        let store = Store(cacher: TieredCacher(over: files), fetcher: fetcher, time: ManualTime())
        let outbox = try Outbox(directory: directory.file("outbox"))
        await outbox.register(Add.self, patching: store, at: \.key, patch: { $1 += $0.amount }, perform: { _, _ in })
        await store[1].update(10)
        _ = try await files.load(param: 1)
        // This process learns of the record before it learns of the delivery, and perhaps of the command. A look at the log that began earlier
        // and is late may still find the delivery first; the store then fetches what the origin has.
        try await until("the log is followed") { await outbox.core.log.isWatched }
        await outbox.core.log.unfollow()
        await otherTasksRun()
        let id = try await isKnown ? outbox.submit(Add(key: 1, amount: 5)) : UUID()
        let submitted = OutboxEntry.Fact.submitted(try OutboxEntry.Submission(Add(key: 1, amount: 5)))
        let facts = (isKnown ? [] : [submitted]) + [.attempted, .delivered(replacement: nil)]
        let log = try OutboxLog(directory: directory.file("outbox"))
        _ = try log.append(facts.map { OutboxEntry(id: id, lane: .ofKey(1), fact: $0).record }, durability: .crash)
        var record = CacheRecord(content: 15, fetchedAt: entryDate)
        record.fields.commands = [id]
        try await other.save(record, param: 1)
        try await until("the record is read") {
            let known = store.engine.state.withLock { $0.live[BoxedKey(1)]?.value.machine.saving.elsewhere.known }
            let isRead = known.map { $0.number == other.position.number } ?? true
            return try await store[1].requireData() >= 15 && (isRead || !fetcher.requests.isEmpty)
        }
        await outbox.core.refresh()
        try await until("the command is forgotten") { await outbox.core.isEmpty }
        try await store.waitUntilSaved()
        #expect(try await store[1].requireData() == 15)
        #expect(try await other.load(param: 1)?.content == 15)
    }

    @Test func `O7: a success makes the change part of the saved content, and the names of old commands do not accumulate there`()
        async throws
    {
        let directory = try TemporaryDirectory()
        for launch in 1...5 {
            let bench = try OutboxBench(in: directory)
            if launch == 1 { await bench.fill() }
            await bench.register()
            bench.outbox.start()
            try await bench.outbox.submit(Add(key: 1, amount: 5))
            try await bench.settled()
            #expect(try await bench.value() == 5 * launch)
            #expect(try await bench.saved()?.content == 5 * launch)
            #expect(bench.origin.commands == [Add(key: 1, amount: 5)])
            #expect(try await bench.saved()?.fields.commands?.count ?? 0 <= 1)
        }
    }

    /// Raises a number, which a repetition does not change.
    private struct Raise: Command, Hashable {
        static let name = "raise"
        var key: Int
        var value: Int
    }

    @Test func `O7: no observer sees the value without the change, even if content is fetched meanwhile`() async throws {
        let origin = WatchedState(0)
        let bench = try OutboxBench(fetcher: ScriptedFetcher { _ in .success(origin.current) })
        let raising = ScriptedDeliveries<Raise, Void> { delivery in
            origin.update { $0 = max($0, delivery.command.value) }
            return .success(())
        }
        #expect(try await bench.value() == 0)
        await bench.outbox.register(
            Raise.self, patching: bench.store, at: \.key, patch: { $1 = max($1, $0.value) }, perform: { try await raising.perform($0, $1) })
        let observer = RecordingObserver(bench.store[1].publish())
        _ = try await observer.next { $0.content == 0 }
        raising.hold()
        bench.outbox.start()
        for value in 1...20 {
            try await bench.outbox.submit(Raise(key: 1, value: value))
            #expect(try await bench.value() == value)
            async let refreshed: Void = bench.store[1].refresh()
            try await raising.release(next: 1, timeout: .seconds(600))
            await refreshed
            #expect(try await bench.value() == value)
        }
        raising.release()
        try await bench.settled()
        _ = try await observer.next { $0.isCompleted && $0.content == 20 }
        let contents = observer.states.compactMap(\.content)
        #expect(contents == contents.sorted())
        #expect(try await bench.saved()?.content == 20)
    }

    @Test func `O7: content that was fetched during a delivery may contain the change, and is fetched again`() async throws {
        let origin = WatchedState(0)
        let bench = try await OutboxBench(fetcher: ScriptedFetcher { _ in .success(origin.current) }).registered()
        #expect(try await bench.value() == 0)
        try await bench.deliverHeld(5)
        // The origin has performed the addition, and its response is under way.
        origin.update { $0 = 5 }
        await bench.store[1].refresh()
        bench.origin.release()
        try await bench.settled()
        #expect(try await bench.value() == 5)
    }

    @Test(arguments: [false, true])
    func `O7: content that was fetched during a delivery of an earlier launch may contain the change, and is fetched again`(
        _ isReadFirst: Bool
    ) async throws {
        let origin = WatchedState(0)
        let first = try await OutboxBench(fetcher: ScriptedFetcher { _ in .success(origin.current) }).registered()
        #expect(try await first.value() == 0)
        try await first.deliverHeld(5)
        // The origin has performed the addition; the process ends before the response.
        origin.update { $0 = 5 }
        first.time.advance(by: .seconds(1))
        await first.store[1].refresh()
        try await first.store.waitUntilSaved()
        try await first.outbox.close()
        let next = try OutboxBench(in: first.directory, time: first.time, fetcher: first.fetcher)
        if isReadFirst { #expect(try await next.value() == 5) }
        await next.register()
        next.outbox.start()
        try await next.settled()
        #expect(try await next.value() == 5)
    }

    /// The ways in which content can become part of a record after the submission.
    private static let arrivals: [@Sendable (inout CacheRecord<Int>) -> Void] = [
        { $0.fetchedAt = entryDate + 1 }, { $0.fields.stamp = (entryDate + 1).stamp },
        { ($0.fields.stamp, $0.fields.parts) = (entryDate.stamp, ["likes": (entryDate + 1).stamp]) },
        { $0.fields.pages = LoadedPages([LoadedPage(count: 0), LoadedPage(direction: .next, key: "2", count: 0)]) },
    ]

    @Test(arguments: arrivals.indices)
    func `O7, E3: a record with content from after the submission may contain the delivered change, and is fetched again`(
        _ arrival: Int
    ) async throws {
        let place = try await directory(saved: 15, change: Self.arrivals[arrival])
        let bench = try await OutboxBench(in: place, fetcher: ScriptedFetcher { _ in .success(15) }).registered()
        try await bench.settled()
        #expect(try await bench.value() == 15)
        #expect(bench.fetcher.startedCount == 1)
    }

    @Test func `O7: the response to a mutation during a delivery may contain the change, and the content is fetched again`() async throws {
        let bench = try await OutboxBench(fetcher: ScriptedFetcher { _ in .success(105) }).prepared()
        try await bench.deliverHeld(5)
        // The origin has performed both additions, and the response to the first one is under way.
        _ = try await bench.store[1].mutate(optimistically: { $0 += 100 }, perform: { 105 })
        bench.origin.release()
        try await bench.settled()
        #expect(try await bench.value() == 105)
    }

    @Test(arguments: [false, true])
    func `O7: content that was fetched during the delivery of another process may contain the change, and is fetched again`(
        learnsLate: Bool
    ) async throws {
        let bench = try await OutboxBench().prepared()
        let (origin, other) = (WatchedState(0), try Outbox(directory: bench.directory.file("outbox"), time: bench.time))
        let store = Store<Int, Int>(cacher: MemoryCacher(), time: bench.time) { _ in origin.current }
        await other.register(Add.self, patching: store, at: \.key, patch: { $1 += $0.amount }, perform: { _, _ in })
        #expect(try await store[1].requireData() == 0)
        try await bench.outbox.submit(Add(key: 1, amount: 5))
        try await until("the other process knows the command") { await other.core.machine.pendingCount == 1 }
        if learnsLate { await other.core.log.unfollow() }
        bench.time.advance(by: .seconds(1))
        bench.origin.hold()
        bench.outbox.start()
        try await bench.origin.started(count: 1, timeout: .seconds(600))
        if !learnsLate {
            try await until("the other process knows of the delivery") { await other.core.machine.items.values.first?.isAttempted == true }
        }
        // The origin has performed the addition, and its response is under way.
        origin.update { $0 = 5 }
        await store[1].refresh()
        bench.origin.release()
        if learnsLate {
            try await bench.settled()
            await other.core.refresh()
        }
        try await until("the command is forgotten") { await other.core.isEmpty }
        try await until("the change is saved") { await other.core.unsettled.isEmpty }
        #expect(try await store[1].requireData() == 5)
    }

    @Test(arguments: [false, true])
    func `O7: the change of a delivered command is not lost if the record could not be read`(_ restarts: Bool) async throws {
        let (cacher, directory, time) = (GatedCacher<Int, Int>(), try TemporaryDirectory(), ManualTime())
        cacher.put(CacheRecord(content: 10, fetchedAt: entryDate), param: 1)
        func launch(fetching content: Int) async throws -> (store: Store<Int, Int>, outbox: Outbox) {
            let store = Store(cacher: cacher, time: time) { _ in content }
            let outbox = try Outbox(directory: directory.file("outbox"), time: time)
            await outbox.register(Add.self, patching: store, at: \.key, patch: { $1 += $0.amount }, perform: { _, _ in })
            return (store, outbox)
        }
        cacher.fail(.load)
        let (store, outbox) = try await launch(fetching: 15)
        outbox.start()
        try await outbox.submit(Add(key: 1, amount: 5))
        #expect(await outbox.drain(until: .seconds(1)) == .drained)
        try await until("the change is confirmed") {
            store.engine.state.withLock { $0.live[BoxedKey(1)]?.value.machine.book.patches.isEmpty ?? true }
        }
        cacher.recover()
        if restarts {
            try await outbox.close()
            let next = try await launch(fetching: 0)
            #expect(try await next.store[1].requireData() == 15)
            try await until("the command is forgotten") { await next.outbox.core.isEmpty }
            #expect(cacher.record(of: 1)?.content == 15)
        } else {
            #expect(try await store[1].requireData() == 15)
        }
    }

    @Test(arguments: [true, false])
    func `O7: content that was pushed during a delivery may contain the change, and is pushed again`(_ isWhole: Bool) async throws {
        let feed = ScriptedLiveFetcher<Int, Int>()
        let store = Store(cacher: MemoryCacher<Int, Int>(), fetcher: feed, time: ManualTime())
        let origin = ScriptedDeliveries<Add, Void> { _ in .success(()) }
        let outbox = try Outbox(directory: TemporaryDirectory().file("outbox"), time: ManualTime())
        await outbox.register(
            Add.self, patching: store, at: \.key, patch: { $1 += $0.amount }, perform: { try await origin.perform($0, $1) })
        let observer = RecordingObserver(store[1].publish())
        try await feed.send(.content(10), timeout: .seconds(600))
        origin.hold()
        outbox.start()
        try await outbox.submit(Add(key: 1, amount: 5))
        try await origin.started(count: 1, timeout: .seconds(600))
        // The origin has performed the addition, and its response is under way.
        try await feed.send(isWhole ? .content(15) : .change { $0 = 15 }, timeout: .seconds(600))
        origin.release()
        try await until { feed.connections.count == 2 }
        try await feed.send(.content(15), timeout: .seconds(600))
        _ = try await observer.next(timeout: .seconds(600)) { $0.isCompleted && $0.content == 15 }
        try await until { await outbox.core.isEmpty }
        #expect(try await store[1].requireData() == 15)
    }

    @Test(arguments: [false, true])
    func `O7: content that the origin responds with replaces the change, and nothing is fetched`(_ isObserved: Bool) async throws {
        let directory = try TemporaryDirectory()
        let record = CacheRecord(content: 10, fetchedAt: entryDate)
        try await FileCacher<Int, Int>(directory: directory.file("numbers")).save(record, param: 1)
        let bench = try OutboxBench(in: directory)
        await bench.outbox.register(Add.self, patching: bench.store, at: \.key, patch: { $1 += $0.amount }, perform: { _, _ in 1_000 })
        let observer = isObserved ? RecordingObserver(bench.store[1].publish()) : nil
        _ = try await observer?.next { $0.content == 10 }
        try await bench.outbox.submit(Add(key: 1, amount: 5))
        bench.outbox.start()
        _ = try await observer?.next { $0.isCompleted && $0.content == 1_000 }
        try await bench.settled()
        #expect(try await bench.saved()?.content == 1_000)
        #expect(bench.fetcher.startedCount == 0)
        if let observer { #expect(observer.states.compactMap(\.content).allSatisfy { [10, 15, 1_000].contains($0) }) }
    }

    @Test func `O7: the response of a command does not bring the change of another lane twice`() async throws {
        let bench = try OutboxBench()
        await bench.fill()
        let origin = ScriptedDeliveries<Add, Int>()
        origin.hold()
        await bench.outbox.register(
            Add.self, patching: bench.store, at: \.key, lane: { "\($0.amount)" }, patch: { $1 += $0.amount }, perform: origin.perform)
        bench.outbox.start()
        for amount in 1...2 { try await bench.outbox.submit(Add(key: 1, amount: amount)) }
        try await origin.started(count: 2)
        // The origin has performed both when the response of the second one arrives.
        let second = try #require(origin.requests.firstIndex { $0.param.command.amount == 2 }) + 1
        #expect(origin.releaseOne(second, with: .success(3)))
        try await bench.events.first("delivered")
        try await until("the response is handled") { await bench.outbox.core.responses.isEmpty }
        await otherTasksRun()
        #expect(try await bench.value() == 3)
        #expect(origin.releaseOne(3 - second, with: .success(1)))
        try await bench.settled()
        #expect(try await bench.value() == 3)
        #expect(bench.fetcher.startedCount == 0)
    }

    @Test func `O2, O7: a command changes the content of several stores`() async throws {
        let bench = try OutboxBench()
        let totals = Store(
            cacher: FileCacher<Int, Int>(directory: bench.directory.file("totals")),
            fetcher: ScriptedFetcher<Int, Int> { _ in .success(100) })
        let patch = CommandPatch<Add>(totals, at: { _ in 0 }) { $1 += $0.amount }
        await bench.outbox.register(
            Add.self, patching: bench.store, at: \.key, and: [patch], patch: { $1 += $0.amount }, perform: { _, _ in })
        try await bench.outbox.submit(Add(key: 1, amount: 5))
        #expect(try await bench.value() == 5)
        #expect(try await totals[0].requireData() == 105)
        bench.outbox.start()
        try await bench.settled()
        #expect(try await bench.saved()?.content == 5)
        #expect(try await FileCacher<Int, Int>(directory: bench.directory.file("totals")).load(param: 0)?.content == 105)
    }

    @Test func `O7: a cleared key drops the change of a delivered command, and keeps that of a pending one`() async throws {
        let bench = try OutboxBench(
            origin: ScriptedDeliveries(.success(()), .failure(Offline())), fetcher: ScriptedFetcher { .success($0.number * 1_000) })
        await bench.store[1].update(10)
        _ = await bench.started()
        try await bench.outbox.submit(Add(key: 1, amount: 5))
        try await bench.settled()
        try await bench.outbox.submit(Add(key: 1, amount: 7))
        try await bench.events.first("attempt 1 failed")
        #expect(try await bench.value() == 22)
        await bench.store[1].clear()
        #expect(try await bench.value() == 1_007)
    }

    @Test func `O8: a refresh that waits for the cacher while the entity is created does not fetch the temporary key later`() async throws {
        let cacher = GatedCacher<String, String>()
        let fetcher = ScriptedFetcher<String, String> { _ in .success("fetched") }
        let store = Store(cacher: cacher, fetcher: fetcher, time: ManualTime())
        let directory = try TemporaryDirectory()
        let outbox = try Outbox(directory: directory.file("outbox"), time: ManualTime())
        await outbox.register(CreateNote.self, creating: store, at: \.id, content: { $0.text }, perform: { _, _ in Created("42") })
        cacher.hold(.load)
        fetcher.hold()
        let observer = RecordingObserver(store["t"].publish(forceRefresh: true))
        try await cacher.began(.load)
        try await outbox.submit(CreateNote(id: "t", text: "a"))
        #expect(try await observer.next { $0.content == "a" }.isLoading == false)
        // The update waits for the cacher, too.
        let update = Task { await store["t"].update("b") }
        #expect(try await observer.next { $0.content == "b" }.isLoading == false)
        cacher.release()
        await update.value
        #expect(fetcher.startedCount == 0)
    }
}
