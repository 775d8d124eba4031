import Testing
import Trials
import StoreCoreTesting
import StoreTrials

@testable import StoreCore

/// A store of texts whose origin pushes, with a feed, a cacher and a clock controlled by the test.
final class LiveBench: Sendable {
    let time = ManualTime()
    let feed: ScriptedLiveFetcher<Int, String>
    let cacher: GatedCacher<Int, String>
    let store: Store<Int, String>
    let events = EventLog()

    init(
        _ backing: Backing = .memory, expiry: Expiry = .never, policy: StorePolicy = .default,
        cancellation: ScriptedCancellation = .honored, reports: Bool = false
    ) {
        let feed = ScriptedLiveFetcher<Int, String>(cancellation: cancellation)
        self.feed = feed
        let cacher = GatedCacher<Int, String>(expiry: expiry)
        self.cacher = cacher
        let onEvent: (@Sendable (StoreEvent<Int>) -> Void)? = reports ? events.append : nil
        store = Store(backing, over: cacher, fetcher: feed, policy: policy, time: time, onEvent: onEvent)
    }

    /// Observes a key until the test releases the recorder.
    func observe(_ param: Int = 1, forceRefresh: Bool = false) -> RecordingObserver<String> {
        RecordingObserver(store[param].publish(forceRefresh: forceRefresh))
    }

    /// Observes key 1, and lets its stream deliver a value.
    func observe(sending value: LiveValue<String>) async throws -> RecordingObserver<String> {
        let observer = observe()
        try await feed.send(value)
        return observer
    }

    /// The time of the next step of the only live key that no fact causes.
    var nextWake: MonotonicInstant? { store.engine.state.withLock { $0.live.values.first?.value.machine.nextWake } }

    var liveKeys: Int { store.engine.state.withLock { $0.live.count } }

    /// Waits until no key is live.
    func idle() async throws { try await until("no live keys") { self.liveKeys == 0 } }

    /// Waits until the given number of callers wait for a key.
    func callers(_ count: Int, of param: Int = 1) async throws {
        try await until("\(count) callers wait") { self.store.waiting(param) == count }
    }
}

/// An origin whose streams call a closure for each value, with the key and the number of the value.
struct ClosureLiveFetcher<Content: Sendable>: LiveFetcher {
    let value: @Sendable (_ param: Int, _ number: Int) async throws -> LiveValue<Content>?

    init(_ value: @escaping @Sendable (_ param: Int, _ number: Int) async throws -> LiveValue<Content>?) { self.value = value }

    struct Values: AsyncSequence, AsyncIteratorProtocol {
        let fetcher: ClosureLiveFetcher
        let param: Int
        var number = 0

        func makeAsyncIterator() -> Values { self }

        mutating func next() async throws -> LiveValue<Content>? {
            number += 1
            return try await fetcher.value(param, number)
        }
    }

    func values(param: Int, after last: Validator?) -> Values { Values(fetcher: self, param: param) }
}

extension Validator {
    init(_ tag: String) { self.init(entityTag: tag) }
}

extension StorePolicy {
    static func reconnecting(attempts: Int = .max) -> StorePolicy { StorePolicy(retry: .exponential(attempts: attempts)) }
}

extension RecordingObserver {
    /// Waits for the next state with this summary.
    func sees(_ summary: String, fileID: String = #fileID, line: Int = #line) async throws {
        try await next(fileID: fileID, line: line) { $0.summary == summary }
    }
}
