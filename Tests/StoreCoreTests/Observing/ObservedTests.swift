import MainActorClient
import Observation
import Testing
import Trials
import StoreCoreTesting
import StoreTrials

@testable import StoreCore

/// Counts the invalidations of a view that reads one property.
@MainActor
final class ReadingView {
    private let read: @MainActor () -> Void
    private(set) var invalidations = 0

    init(_ read: @escaping @MainActor () -> Void) {
        self.read = read
        draw()
    }

    /// Reads as SwiftUI evaluates a body.
    func draw() { withObservationTracking(read) { [weak self] in MainActor.assumeIsolated { self?.invalidations += 1 } } }
}

@MainActor
@Suite(.timeLimit(.minutes(hangMinutes)))
struct ObservedTests {
    private func following<Content>(
        _ observed: Observed<Content>, _ states: ManualStates<Content>, as id: Int = 1
    ) async throws -> Task<Void, Never> {
        let joined = states.joinedCount
        let task = Task { await observed.follow(states.sequence, as: id) }
        try await until("the model has joined") { states.joinedCount > joined }
        try await states.taken(by: states.observerCount)
        return task
    }

    @Test func `I1, V2, O8: a temporary key has the state in memory and the snapshot of the key that has replaced it`() async throws {
        let store = Store(cacher: MemoryCacher<Int, String>(cost: { $0.count })) { "\($0)" }
        await store[7].update("made")
        store.engine.replaceKey(BoxedKey(-1), with: BoxedKey(7), unlessShown: false)
        #expect(Observed<String>().state(for: store[-1]) == .completed("made"))
        #expect(store.snapshot(of: -1)?.content == "made" && store.snapshot(of: -1)?.size == 4)
    }

    // MARK: V1

    @Test func `V1: follow returns when its task is canceled, and then nothing is observed or fetched`() async throws {
        let bench = Bench(policy: StorePolicy(revalidatesOnExpiry: true))
        let observed = Observed<Int>()
        #expect(observed.state == .loading(content: nil))
        for round in 1...3 {
            let task = Task { await observed.follow(bench.store[1]) }
            try await until("the content is shown") { observed.content == round }
            #expect(bench.observers() == 1)
            await task.cancelAndWait()
            try await bench.idle()
            #expect(observed.state == .completed(round))
            await bench.store[1].invalidate()
        }
        #expect(bench.fetcher.startedCount == 3)
    }

    @Test func `V1: a model that is only created and read observes and fetches nothing`() async throws {
        let bench = Bench()
        let observed = Observed<Int>()
        #expect(observed.state(for: bench.store[1]) == .loading(content: nil) && observed.state(for: 1) == .loading(content: nil))
        #expect(observed.content == nil && observed.error == nil && !observed.isContent(of: 1))
        #expect(bench.liveKeys == 0 && bench.fetcher.startedCount == 0)
    }

    @Test func `V1: a task that is canceled before it follows neither observes nor changes the model`() async throws {
        let bench = Bench()
        let observed = Observed<Int>()
        let task = Task { await observed.follow(bench.store[1]) }
        await task.cancelAndWait()
        #expect(bench.fetcher.startedCount == 0)
        #expect(observed.state(for: 2) == .loading(content: nil) && !observed.isContent(of: 1))
    }

    @Test func `V1: follow returns when the sequence ends, and the last state stays`() async throws {
        let states = ManualStates<Int>(.completed(1))
        let observed = Observed<Int>()
        let task = try await following(observed, states)
        states.finish()
        await task.value
        #expect(observed.state(for: 1) == .completed(1))
    }

    @Test func `C15, V1: a view that follows and is dropped any number of times leaves nothing behind`() async throws {
        let counter = LifeCounter()
        let store = Store(cacher: MemoryCacher<Int, LifeCounter.Life>(limit: 2)) { _ in counter.make() }
        let observed = Observed<LifeCounter.Life>()
        let settled = Memory.resident()
        for round in 0..<Cycles.count {
            let task = Task { await observed.follow(store[round % 7]) }
            if !round.isMultiple(of: 3) { await Task.yield() }
            await task.cancelAndWait()
        }
        #expect(Memory.resident() - settled < Memory.growthLimit)
        try await until("the engine is idle") { store.engineIsIdle }
        try await store.clear()
        let last = observed.content == nil ? 0 : 1
        try await until("only the shown content is alive") { counter.alive == last }
    }

    @Test func `C15, V1: a store is held only while it is followed, and the model shows its content afterward`() async throws {
        let observed = Observed<Int>()
        var store: Store<Int, Int>? = Store(cacher: MemoryCacher<Int, Int>()) { 10 * $0 }
        weak let engine = store?.engineObject
        let task = Task { [handle = try #require(store)[1]] in await observed.follow(handle) }
        store = nil
        try await until("the content is shown") { observed.content == 10 }
        #expect(engine != nil)
        await task.cancelAndWait()
        try await until("the store is released") { engine == nil }
        #expect(observed.state(for: 1) == .completed(10) && observed.isContent(of: 1))
    }

    @Test func `C15, V1: a model can be released while no task follows`() async throws {
        let states = ManualStates<Int>(.completed(1))
        var observed: Observed<Int>? = Observed<Int>()
        weak let released = observed
        let task = Task { [observed] in await observed?.follow(states.sequence, as: 1) }
        try await states.taken(by: 1)
        await task.cancelAndWait()
        observed = nil
        try await until("the model is released") { released == nil }
    }

    // MARK: V2

    @Test func `V2: valid content in memory is shown without a loading state, before and while it is followed`() async throws {
        let bench = Bench(expiry: .after(.seconds(60)), reports: true)
        #expect(try await bench.store[1].requireData() == 1)
        let observed = Observed<Int>()
        #expect(observed.state(for: bench.store[1]) == .completed(1))
        var seen: [LoadingState<Int>] = []
        let view = ReadingView { seen.append(observed.state(for: 1)) }
        let task = Task { await observed.follow(bench.store[1]) }
        try await until("the model observes") { bench.observers() == 1 }
        view.draw()
        #expect(seen == [.loading(content: nil), .completed(1)])
        await task.cancelAndWait()
        bench.time.advance(by: .seconds(60) - .nanoseconds(1))
        #expect(Observed<Int>().state(for: bench.store[1]) == .completed(1))
        bench.time.advance(by: .nanoseconds(1))
        #expect(Observed<Int>().state(for: bench.store[1]) == .loading(content: nil))
    }

    @Test(arguments: [Observed<Int>.Switching.clearing, .keepingContent])
    func `V2: a new key never shows the old key's content as its own`(_ switching: Observed<Int>.Switching) async throws {
        let bench = Bench()
        let observed = Observed<Int>(whenSwitching: switching)
        let first = Task { await observed.follow(bench.store[1]) }
        try await until("the content is shown") { observed.state(for: 1) == .completed(1) }
        let waiting = LoadingState.loading(content: switching == .keepingContent ? 1 : nil)
        // SwiftUI evaluates `body` before it switches the task.
        #expect(observed.state(for: 2) == waiting && observed.state(for: bench.store[2]) == waiting)
        #expect(observed.isContent(of: 1) && !observed.isContent(of: 2))
        bench.fetcher.hold()
        await first.cancelAndWait()
        let second = Task { await observed.follow(bench.store[2]) }
        try await bench.fetcher.started(count: 2)
        try await until("the model has switched") { observed.state(for: 1) == waiting && observed.state(for: 2) == waiting }
        #expect(observed.isContent(of: 2) == (switching == .clearing) && observed.state == waiting)
        bench.fetcher.release()
        try await until("the content is shown") { observed.state(for: 2) == .completed(2) }
        #expect(observed.isContent(of: 2) && observed.state(for: 1) != .completed(1))
        await second.cancelAndWait()
    }

    @Test(arguments: [Observed<Int>.Switching.clearing, .keepingContent])
    func `V2: a new key is shown from the moment it is followed, before its cacher has answered`(_ switching: Observed<Int>.Switching)
        async throws
    {
        let cacher = GatedCacher<Int, Int>()
        let store = Store(cacher: cacher) { $0 }
        let observed = Observed<Int>(whenSwitching: switching)
        let first = Task { await observed.follow(store[1]) }
        try await until("the content is shown") { observed.state == .completed(1) }
        cacher.hold(.load)
        let second = Task { await observed.follow(store[2]) }
        try await cacher.began(.load, count: 2)
        let waiting = LoadingState.loading(content: switching == .keepingContent ? 1 : nil)
        #expect(observed.state == waiting && observed.state(for: 2) == waiting && observed.isContent(of: 1) == (waiting.content == 1))
        cacher.release()
        try await until("the new content is shown") { observed.state == .completed(2) }
        for task in [first, second] { await task.cancelAndWait() }
    }

    @Test func `V2: with keepingContent, a failure of the new key shows no other key's content, nor does a cleared key its own`()
        async throws
    {
        let (one, two) = (ManualStates<Int>(.completed(1)), ManualStates<Int>(.loading(content: nil)))
        let observed = Observed<Int>(whenSwitching: .keepingContent)
        let first = try await following(observed, one, as: 1)
        one.send(.loading(content: nil))
        try await one.taken(by: 1)
        #expect(observed.state == .loading(content: nil))
        one.send(.completed(1))
        try await one.taken(by: 1)
        let second = try await following(observed, two, as: 2)
        #expect(observed.state(for: 2) == .loading(content: 1) && observed.isContent(of: 1))
        two.send(.error(rawError: Offline(), content: nil))
        try await two.taken(by: 1)
        #expect(observed.state(for: 2) == .error(rawError: Offline(), content: nil) && observed.content == nil)
        for task in [first, second] { await task.cancelAndWait() }
    }

    @Test func `V2: with keepingContent, a key that is followed again keeps its content while another key loads`() async throws {
        let (one, two) = (ManualStates<Int>(.completed(1)), ManualStates<Int>(.loading(content: nil)))
        let observed = Observed<Int>(whenSwitching: .keepingContent)
        let first = try await following(observed, one, as: 1)
        let second = try await following(observed, two, as: 2)
        let again = try await following(observed, ManualStates<Int>(), as: 1)
        #expect(observed.state == .loading(content: 1) && observed.isContent(of: 1))
        for task in [first, second, again] { await task.cancelAndWait() }
    }

    @Test func `V2: with keepingContent, content stays that of its key if its follow ends before the new key has a state`() async throws {
        let observed = Observed<Int>(whenSwitching: .keepingContent)
        let first = try await following(observed, ManualStates<Int>(.completed(1)), as: 1)
        let second = try await following(observed, ManualStates<Int>(), as: 2)
        await first.cancelAndWait()
        #expect(observed.state(for: 2) == .loading(content: 1) && observed.isContent(of: 1) && !observed.isContent(of: 2))
        await second.cancelAndWait()
    }

    @Test func `V2: the newest of two follows is shown, and the older one again after it`() async throws {
        let (one, two) = (ManualStates<Int>(.completed(1)), ManualStates<Int>(.completed(2)))
        let observed = Observed<Int>()
        let first = try await following(observed, one, as: 1)
        let second = try await following(observed, two, as: 2)
        #expect(observed.state(for: 2) == .completed(2) && observed.state(for: 1) == .loading(content: nil))
        one.send(.completed(10))
        try await one.taken(by: 1)
        #expect(observed.state == .completed(2))
        await second.cancelAndWait()
        #expect(observed.state(for: 1) == .completed(10) && observed.state(for: 2) == .loading(content: nil))
        one.send(.completed(11))
        try await one.taken(by: 1)
        #expect(observed.state == .completed(11))
        await first.cancelAndWait()
    }

    @Test(arguments: [Observed<Int>.Switching.clearing, .keepingContent])
    func `V2: the same key of another store never shows the first store's content as its own`(_ switching: Observed<Int>.Switching)
        async throws
    {
        let (first, second) = (Bench(), Bench())
        await first.store[1].update(10)
        let observed = Observed<Int>(whenSwitching: switching)
        let task = Task { await observed.follow(first.store[1]) }
        try await until("the first content is shown") { observed.state == .completed(10) }
        let kept = switching == .keepingContent ? 10 : nil
        #expect(observed.state(for: second.store[1]) == .loading(content: kept))
        second.fetcher.hold()
        let other = Task { await observed.follow(second.store[1]) }
        try await second.fetcher.started(count: 1)
        #expect(observed.state == .loading(content: kept) && observed.isContent(of: 1) == (kept == nil))
        #expect(observed.state(for: first.store[1]) == .completed(10))
        second.fetcher.release()
        try await until("the second content is shown") { observed.state(for: second.store[1]) == .completed(1) }
        #expect(observed.isContent(of: 1))
        for task in [task, other] { await task.cancelAndWait() }
    }

    @Test func `V2: a store that takes the place of a released one does not show its content`() async throws {
        let observed = Observed<Int>()
        for content in 1...20 {
            let store = Store(cacher: MemoryCacher<Int, Int>()) { $0 }
            let (waiting, shown) = (observed.state(for: store[7]), observed.state)
            #expect(waiting == .loading(content: nil) && (content == 1 || shown == .completed(content - 1)))
            await store[7].update(content)
            let task = Task { await observed.follow(store[7]) }
            try await until("the content is shown") { observed.state == .completed(content) }
            #expect(observed.state(for: store[7]) == .completed(content))
            await task.cancelAndWait()
        }
    }

    @Test func `V2: two views that follow one key with one model fetch once, and one of them may leave`() async throws {
        let bench = Bench()
        let observed = Observed<Int>()
        let tasks = (0..<2).map { _ in Task { await observed.follow(bench.store[1]) } }
        try await until("both observe") { bench.observers() == 2 && observed.content == 1 }
        await tasks[0].cancelAndWait()
        await bench.store[1].update(7)
        try await until("the update is shown") { observed.content == 7 }
        #expect(bench.fetcher.startedCount == 1)
        await tasks[1].cancelAndWait()
        try await bench.idle()
    }

    // MARK: V4

    @Test func `V4: a state that leaves a property as it was does not invalidate the views that read only that property`() async throws {
        let states = ManualStates<Int>(.completed(1))
        let observed = Observed<Int>()
        let task = try await following(observed, states)
        let readers: [(name: String, read: @MainActor () -> Void)] = [
            ("state", { _ = observed.state }), ("state(for:)", { _ = observed.state(for: 1) }), ("content", { _ = observed.content }),
            ("error", { _ = observed.error }), ("isLoading", { _ = observed.isLoading }), ("isContent", { _ = observed.isContent(of: 1) }),
            ("nothing", {}),
        ]
        let steps: [(LoadingState<Int>, changed: Set<String>)] = [
            (.completed(1), []), (.loading(content: 1), ["state", "state(for:)", "isLoading"]),
            (.completed(1), ["state", "state(for:)", "isLoading"]), (.completed(2), ["state", "state(for:)", "content"]),
            (.error(rawError: Offline(), content: 2), ["state", "state(for:)", "error"]),
            (.error(rawError: Offline(), content: 2), []),
            (.error(rawError: Offline(), content: nil), ["state", "state(for:)", "content"]),
            (.completed(3), ["state", "state(for:)", "content", "error"]),
        ]
        for (state, changed) in steps {
            let views = readers.map { ReadingView($0.read) }
            states.send(state)
            try await states.taken(by: 1)
            #expect(observed.state == state)
            for (reader, view) in zip(readers, views) {
                #expect(view.invalidations == (changed.contains(reader.name) ? 1 : 0), "\(reader.name) at \(state)")
            }
        }
        await task.cancelAndWait()
    }

    @Test func `V2, V4: with keepingContent, a view that asks for the content's key is invalidated by the new key's content`() async throws
    {
        let (one, two) = (ManualStates<Int>(.completed(1)), ManualStates<Int>(.loading(content: nil)))
        let observed = Observed<Int>(whenSwitching: .keepingContent)
        let tasks = [try await following(observed, one, as: 1), try await following(observed, two, as: 2)]
        #expect(observed.state(for: 2) == .loading(content: 1) && !observed.isContent(of: 2))
        let view = ReadingView { _ = observed.isContent(of: 2) }
        two.send(.completed(2))
        try await two.taken(by: 1)
        #expect(view.invalidations == 1 && observed.isContent(of: 2))
        for task in tasks { await task.cancelAndWait() }
    }

    @Test func `V4: the same object is unchanged content, and another object or content without equality always changes`() async throws {
        final class Object: Sendable {}
        struct Opaque {}
        let object = Object()
        #expect(try await invalidations(of: object, then: object) == 0)
        #expect(try await invalidations(of: object, then: Object()) == 1)
        #expect(try await invalidations(of: Opaque(), then: Opaque()) == 1)
        #expect(try await invalidations(of: [1, 2], then: [1, 2]) == 0)
    }

    /// Counts the invalidations of a view that reads only the content, while a state with other content is shown.
    private func invalidations<Content: Sendable>(of content: Content, then next: Content) async throws -> Int {
        let states = ManualStates<Content>(.completed(content))
        let observed = Observed<Content>()
        let task = try await following(observed, states)
        let view = ReadingView { _ = observed.content }
        states.send(.loading(content: next))
        try await states.taken(by: 1)
        #expect(observed.isLoading)
        await task.cancelAndWait()
        return view.invalidations
    }

    // MARK: V5

    @Test func `V5: a preview shows its state for every key, without a store and without following`() async throws {
        let observed = Observed(preview: .error(rawError: Offline(), content: 7))
        let bench = Bench()
        var hasReturned = false
        let following = Task {
            await observed.follow(bench.store[1])
            await observed.follow(ManualStates<Int>(.completed(1)).sequence, as: 2)
            hasReturned = true
        }
        try await until("following returns") { hasReturned }
        await following.value
        for id in 1...2 { #expect(observed.state(for: id) == .error(rawError: Offline(), content: 7) && observed.isContent(of: id)) }
        #expect(observed.state(for: bench.store[1]).content == 7)
        #expect(observed.error is Offline && observed.content == 7 && !observed.isLoading)
        #expect(bench.fetcher.startedCount == 0 && bench.liveKeys == 0)
        let list = ObservedList(preview: .completed(content: [1], next: .loading, prev: .fixed(canRequestAdditionalData: true)))
        #expect(list.isLoadingNext && !list.isLoadingPrevious && list.previous.canRequestAdditionalData)
        #expect(await list.loadPrevious() == .notLoadedYet)
    }

    // MARK: Closing

    @Test func `C23: a model that follows a closed store shows an error, and one with content keeps it`() async throws {
        let bench = Bench()
        let (before, during, after) = (Observed<Int>(), Observed<Int>(), Observed<Int>())
        let following = Task { await before.follow(bench.store[1]) }
        try await until("the content is shown") { before.content == 1 }
        bench.fetcher.hold()
        let waiting = Task { await during.follow(bench.store[2]) }
        try await bench.fetcher.started(count: 2)
        try await bench.store.close()
        await following.value
        await waiting.value
        await after.follow(bench.store[1])
        #expect(before.content == 1 && before.error == nil)
        for model in [during, after] { #expect((model.error as? StoreError)?.code == .closed && !model.isLoading) }
    }

    // MARK: Without a model

    @Test func `a client with the main actor as its default isolation follows a sequence`() async throws {
        let states = ManualStates<User>(.loading(content: nil))
        let model = UserModel()
        let following = Task { await model.follow(states.sequence) }
        try await states.taken(by: 1)
        states.send(.completed(try await UserFetcher().fetch(param: 7)))
        try await states.taken(by: 1)
        #expect(model.shown == ["…", "user 7"])
        await following.cancelAndWait()
    }
}
