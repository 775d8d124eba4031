public import StoreCore

/// A recorder of a store's events, for tests that wait for steps without a state of their own.
///
/// ```swift
/// let events = EventRecorder<Int>()
/// let users = Store(
///     cacher: MemoryCacher<Int, String>(), fetcher: fetcher,
///     onEvent: events.record)
/// fetcher.hold()
/// async let first = users[1].requireData()
/// async let second = users[1].requireData()
/// try await events.joined(count: 1)
/// fetcher.release()
/// ```
///
/// <doc:TestingYourStore> tests concurrent callers with a recorder.
public final class EventRecorder<Param: Hashable & Sendable>: Sendable {
    /// One lock guards the events, in the order of their delivery.
    private let delivered = WatchedState<[StoreEvent<Param>]>([])

    /// Creates an empty recorder, for the events of one store.
    public init() {}

    /// Records an event; pass this method as the `onEvent` of a store.
    ///
    /// - Parameter event: The event.
    @Sendable public func record(_ event: StoreEvent<Param>) {
        delivered.update { $0.append(event) }
    }

    /// The recorded events, in the order of their numbers.
    public var events: [StoreEvent<Param>] { delivered.current.sorted { $0.number < $1.number } }

    /// Waits until `count` callers and observers have joined a running fetch since the recorder was created, without polling.
    ///
    /// The caller that starts the fetch does not join it: of five callers, four join.
    ///
    /// - Parameters:
    ///   - count: The least number of callers and observers.
    ///   - param: The key of the fetch; `nil` counts every key.
    ///   - timeout: The longest wait, in real time.
    ///   - fileID: The file of the wait, for the error.
    ///   - line: The line of the wait, for the error.
    /// - Throws: ``StoreError/Code/waitTimedOut`` after the timeout, `CancellationError` as soon as the waiting task is canceled.
    public func joined(
        count: Int, param: Param? = nil, timeout: Duration = .seconds(120), fileID: String = #fileID, line: Int = #line
    ) async throws {
        let wait = TestWait(subject: "\(count) joined callers", timeout: timeout, fileID: fileID, line: line)
        try await self.wait(wait, count) { event in
            if case .coalesced = event.kind { param == nil || event.param == param } else { false }
        }
    }

    /// Waits until `count` events that `predicate` accepts have been recorded since the recorder was created, without polling.
    ///
    /// The predicate receives each event once, and runs outside all locks. Timeout, place and errors are those of
    /// ``joined(count:param:timeout:fileID:line:)``.
    public func recorded(
        count: Int = 1, timeout: Duration = .seconds(120), fileID: String = #fileID, line: Int = #line,
        where predicate: (StoreEvent<Param>) -> Bool
    ) async throws {
        try await wait(
            TestWait(subject: "\(count) matching events", timeout: timeout, fileID: fileID, line: line), count, where: predicate)
    }

    private func wait(_ wait: TestWait, _ count: Int, where predicate: (StoreEvent<Param>) -> Bool) async throws {
        var (seen, matching) = (0, 0)
        while matching < count {
            let known = seen
            let events = try await delivered.wait(wait, history: { _ in self.events.map(\.description) }) { $0.count > known ? $0 : nil }
            matching += events[known...].count(where: predicate)
            seen = events.count
        }
    }
}
