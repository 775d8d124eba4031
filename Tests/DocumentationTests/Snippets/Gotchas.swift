internal import Foundation
internal import StoreCore
import StoreFiles
import StoreCoreTesting
internal import Testing
internal import Trials

// The rules of the article with this name: one test for each rule that a program can demonstrate.

struct GotchaTests {
    private let fetcher = ScriptedFetcher<Int, String> { .success("fetched \($0.number)") }
    private let time = ManualTime()

    private func store(
        expiry: Expiry = .never, onEvent: (@Sendable (StoreEvent<Int>) -> Void)? = nil
    ) -> Store<Int, String> {
        Store(cacher: MemoryCacher(expiry: expiry), fetcher: fetcher, time: time, onEvent: onEvent)
    }

    @Test func `observers of a store do not see the writes of another store over its cacher`() async throws {
        let cacher = MemoryCacher<Int, String>()
        let first = Store(cacher: cacher, fetcher: fetcher)
        let second = Store(cacher: cacher, fetcher: fetcher)
        let recorder = RecordingObserver(first[1].publish())
        try await recorder.next { $0.isCompleted }
        #expect(try await second[1].requireData() == "fetched 1")
        await second[1].update("set in the second")
        // The observers of the first store do not see the write.
        #expect(recorder.states.last == .completed("fetched 1"))
    }

    @Test func `observers do not see direct changes of the cacher`() async throws {
        let cacher = MemoryCacher<Int, String>()
        let users = Store(cacher: cacher, fetcher: fetcher)
        let recorder = RecordingObserver(users[1].publish())
        try await recorder.next { $0.isCompleted }
        await cacher.removeAll()
        // The store keeps the content of an observed key.
        #expect(try await users[1].requireData() == "fetched 1")
        #expect(fetcher.startedCount == 1)
    }

    @Test func `content with zero expiry is valid for the callers of its fetch`() async throws {
        let users = store(expiry: .after(.zero))
        #expect(try await users[1].requireData() == "fetched 1")
        #expect(try await users[1].requireData() == "fetched 2")
        await #expect(throws: StoreError.self) { try await users[1].requireData(from: .cache) }
        let recorder = RecordingObserver(users[1].publish())
        try await recorder.next { $0 == .completed("fetched 3") }
    }

    @Test func `a sequence never ends by itself, and each iterator is an observer`() async throws {
        let users = store()
        let sequence = users[1].publish(forceRefresh: true)
        let first = RecordingObserver(sequence)
        try await first.next { $0.isCompleted }
        let second = RecordingObserver(sequence)
        try await second.next { $0 == .completed("fetched 2") }
        first.stop()
        try await first.stopAndLeave()
        #expect(fetcher.startedCount == 2)
    }

    @Test func `a sequence fetches only when an iterator joins`() async throws {
        let users = store()
        let states = users[1].publish()
        var iterator = states.makeAsyncIterator()
        #expect(fetcher.startedCount == 0)
        _ = await iterator.next()
        try await fetcher.started(count: 1)
    }

    @Test func `update sets a value or changes existing content`() async throws {
        let users = store()
        #expect(await users[1].update { $0 += "!" } == false)
        await users[1].update("set")
        #expect(await users[1].update { $0 += "!" })
        #expect(try await users[1].requireData() == "set!")
    }

    @available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *)
    @Test func `an update closure may run again`() async throws {
        let users = store()
        await users[1].update("a")
        let runs = Printed()
        await users[1].update { content in
            runs.add(content)
            // Another writer is faster: the task runs here until it suspends, which is after its update.
            if runs.count == 1 { Task.immediate { await users[1].update("b") } }
            content += "!"
        }
        #expect(try await runs.next(2) == ["a", "b"])
        #expect(try await users[1].requireData() == "b!")
    }

    @Test func `a store with onEvent reports hits`() async throws {
        let events = Printed()
        let users = store { events.add("\($0.kind)") }
        await users[1].update("set")
        _ = try await users[1].requireData()
        while try await events.next(1) != ["hit"] {}
    }

    @Test func `errors are compared by type and reflection`() {
        struct Broken: Error { var id: Int }
        #expect(LoadingState<Int>.error(rawError: Broken(id: 1), content: nil) == .error(rawError: Broken(id: 1), content: nil))
        #expect(LoadingState<Int>.error(rawError: Broken(id: 1), content: nil) != .error(rawError: Broken(id: 2), content: nil))
        final class Object: Error, Sendable {}
        #expect(LoadingState<Int>.error(rawError: Object(), content: nil) == .error(rawError: Object(), content: nil))
    }

    @Test func `a fetch does not see the task-locals of its caller`() async throws {
        let seen = Printed()
        let users = Store(cacher: MemoryCacher<Int, String>()) { _ in Printed.page == nil ? "nothing" : "the page" }
        #expect(try await Printed.$page.withValue(seen) { try await users[1].requireData() } == "nothing")
    }

    @Test func `refresh and origin join a running fetch`() async throws {
        let users = store()
        fetcher.hold()
        async let first = users[1].requireData()
        try await fetcher.started(count: 1)
        async let refresh: Void = users[1].refresh()
        async let origin = users[1].requireData(from: .origin)
        try await fetcher.release(next: 1)
        _ = try await (first, refresh)
        // The last call may have come after the fetch, and then starts its own.
        fetcher.release()
        _ = try await origin
    }

    @Test func `invalidate closes the stale windows`() async throws {
        var policy = StorePolicy()
        policy.staleWhileRevalidate = .seconds(3600)
        let users = Store(cacher: MemoryCacher<Int, String>(), fetcher: fetcher, policy: policy, time: time)
        _ = try await users[1].requireData()
        await users[1].invalidate()
        #expect(try await users[1].requireData() == "fetched 2")
    }

    @Test func `an update discards the lifetime from the origin`() async throws {
        let users = store()
        fetcher.enqueue(.success("Ada", freshness: .fresh(for: .seconds(10))))
        _ = try await users[1].requireData()
        await users[1].update { $0 += " Lovelace" }
        time.advance(by: .seconds(3600))
        #expect(try await users[1].requireData() == "Ada Lovelace")
    }

    @Test func `clearing an observed key fetches it again`() async throws {
        let users = store()
        let recorder = RecordingObserver(users[1].publish())
        try await recorder.next { $0.isCompleted }
        try await users.clear()
        try await recorder.next { $0 == .completed("fetched 2") }
    }

    // MARK: Files

    @Test func `two kinds of data in one directory overwrite each other`() async throws {
        let directory = temporaryURL()
        let names = FileCacher<Int, String>(directory: directory)
        let ages = FileCacher<Int, Int>(directory: directory)
        try await names.save(CacheRecord(content: "Ada", fetchedAt: Date()), param: 1)
        try await ages.save(CacheRecord(content: 36, fetchedAt: Date()), param: 1)
        #expect(try await names.load(param: 1) == nil)
    }

    @Test func `a raised version is a miss`() async throws {
        let directory = temporaryURL()
        try await FileCacher<Int, String>(directory: directory).save(CacheRecord(content: "Ada", fetchedAt: Date()), param: 1)

        //: Persisting.md: let cacher = FileCacher

        #expect(try await cacher.load(param: 1) == nil)
        #expect(try await cacher.keys() == [])
        #expect(try await FileCacher<Int, String>(directory: directory).load(param: 1)?.content == "Ada")
    }

    @Test func `a cacher sees a changed file, an observer does not`() async throws {
        let directory = temporaryURL()
        let here = Store(cacher: FileCacher<Int, String>(directory: directory), fetcher: fetcher)
        let there = Store(cacher: FileCacher<Int, String>(directory: directory), fetcher: fetcher)
        let recorder = RecordingObserver(here[1].publish())
        try await recorder.next { $0.isCompleted }
        // A later save of the fetched content would replace the other process's record.
        try await here.waitUntilSaved()
        await there[1].update("set by another process")
        #expect(try await here[1].requireData() == "fetched 1")
        try await recorder.stopAndLeave()
        while try await here[1].requireData() != "set by another process" { await Task.yield() }
    }
}
