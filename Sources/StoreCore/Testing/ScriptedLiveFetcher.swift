public import StoreCore

/// A live fetcher whose streams a test controls: the test sends values, and ends or fails connections.
///
/// ```swift
/// let feed = ScriptedLiveFetcher<String, Int>()
/// let prices = Store(cacher: MemoryCacher(), fetcher: feed)
/// let observer = RecordingObserver(prices["A"].publish())
/// // Returns when the store has accepted the value.
/// try await feed.send(.content(7))
/// try await feed.end(throwing: Offline())
/// #expect(feed.connections.map(\.param) == ["A"])
/// ```
///
/// <doc:TestingYourStore> lists the tools for tests.
public final class ScriptedLiveFetcher<Param: Hashable & Sendable, Content: Sendable>: LiveFetcher {
    let state: WatchedState<LiveScriptState<Param, Content>>

    /// Creates a fetcher without values.
    ///
    /// - Parameter cancellation: The behavior of a connection whose task is canceled.
    public init(cancellation: ScriptedCancellation = .honored) {
        state = WatchedState(LiveScriptState(cancellation: cancellation))
    }

    /// Records a connection, and returns the values that the test sends.
    ///
    /// - Parameters:
    ///   - param: The key; recorded.
    ///   - last: The validator of the store's version; recorded.
    public func values(param: Param, after last: Validator?) -> Values {
        Values(connection: Connection(state: state, number: state.update { $0.begin(param, last) }))
    }

    /// The values that the test sends over one connection.
    public struct Values: AsyncSequence, AsyncIteratorProtocol {
        let connection: Connection

        /// Returns the sequence itself, which has one iterator.
        public func makeAsyncIterator() -> Values { self }

        /// Waits for the next value that the test sends.
        public func next(isolation: isolated (any Actor)? = #isolation) async throws -> LiveValue<Content>? {
            try await connection.next()
        }

        /// Waits for the next value that the test sends.
        public func next() async throws -> LiveValue<Content>? {
            try await connection.next()
        }
    }

    /// One connection; its release ends it.
    final class Connection: Sendable {
        private let state: WatchedState<LiveScriptState<Param, Content>>
        private let number: Int

        init(state: WatchedState<LiveScriptState<Param, Content>>, number: Int) {
            self.state = state
            self.number = number
        }

        deinit { state.update { $0.end(number) } }

        func next(isolation: isolated (any Actor)? = #isolation) async throws -> LiveValue<Content>? {
            let (state, number) = (state, number)
            await suspend { suspension in
                if !state.update({ $0.request(number, suspension) }) { suspension.resume() }
            } onCancel: {
                state.update { $0.cancel(number) }?.resume()
            }
            return try state.update { $0.take(number) }.get()
        }
    }
}

/// A connection that a scripted live fetcher received.
public struct ScriptedConnection<Param: Hashable & Sendable>: Hashable, Sendable {
    /// The connection's number at its fetcher, from 1.
    public let number: Int

    /// The key for which the store has connected.
    public let param: Param

    /// The validator of the store's version; `nil` if the store has none.
    public let last: Validator?
}

// MARK: Values

extension ScriptedLiveFetcher {
    /// Waits until a connection requests a value, sends the value, and waits until the store has accepted it.
    ///
    /// - Parameters:
    ///   - value: The value.
    ///   - connection: The number of the connection; `nil` for the newest one.
    ///   - timeout: The longest wait, in real time.
    ///   - fileID: The file of the wait, for the error.
    ///   - line: The line of the wait, for the error.
    /// - Throws: ``StoreError/Code/waitTimedOut`` after the timeout, `CancellationError` as soon as the waiting task is canceled.
    public func send(
        _ value: LiveValue<Content>, on connection: Int? = nil, timeout: Duration = .seconds(120), fileID: String = #fileID,
        line: Int = #line
    ) async throws {
        let wait = TestWait(subject: "a connection that takes a value", timeout: timeout, fileID: fileID, line: line)
        try await pass(.success(value), on: connection, wait)
    }

    /// Waits until a connection, by default the newest one, requests a value, and ends it.
    ///
    /// The connection throws the error; without one, its stream ends. Timeout, place and errors are those of
    /// ``send(_:on:timeout:fileID:line:)``.
    public func end(
        throwing error: (any Error)? = nil, on connection: Int? = nil, timeout: Duration = .seconds(120), fileID: String = #fileID,
        line: Int = #line
    ) async throws {
        let wait = TestWait(subject: "a connection to end", timeout: timeout, fileID: fileID, line: line)
        try await pass(error.map { .failure($0) } ?? .success(nil), on: connection, wait)
    }

    /// The error with which every later connection fails at once; `nil` accepts connections.
    public var refusal: (any Error)? {
        get { state.read { $0.refusal } }
        set { state.update { $0.refusal = newValue } }
    }

    private func pass(_ value: Result<LiveValue<Content>?, any Error>, on connection: Int?, _ wait: TestWait) async throws {
        let (number, suspension) = try await state.take(wait) { $0.pass(value, on: connection) }
        suspension.resume()
        try await state.wait(wait, history: { $0.history }) { $0.isOccupied(number) ? nil : () }
    }
}

// MARK: Counts

extension ScriptedLiveFetcher {
    /// All connections, in the order in which they began.
    public var connections: [ScriptedConnection<Param>] { state.read { $0.connections } }

    /// The number of connections that have not ended.
    public var openCount: Int { state.read { $0.lines.count } }

    /// The number of connections that were canceled before they ended, including those that ignored it.
    public var cancelledCount: Int { state.read { $0.cancelledCount } }

    /// Waits until `count` connections have begun since the fetcher was created, without polling.
    ///
    /// Timeout, place and errors are those of ``send(_:on:timeout:fileID:line:)``.
    public func connected(
        count: Int, timeout: Duration = .seconds(120), fileID: String = #fileID, line: Int = #line
    ) async throws {
        try await state.wait(for: "\(count) begun connections", timeout, fileID, line) { $0.connections.count >= count }
    }

    /// Waits until `count` connections have ended since the fetcher was created, without polling.
    ///
    /// Timeout, place and errors are those of ``send(_:on:timeout:fileID:line:)``.
    public func ended(
        count: Int, timeout: Duration = .seconds(120), fileID: String = #fileID, line: Int = #line
    ) async throws {
        try await state.wait(for: "\(count) ended connections", timeout, fileID, line) { $0.connections.count - $0.lines.count >= count }
    }

    /// Waits until the tasks of `count` connections have been canceled, without polling.
    ///
    /// Timeout, place and errors are those of ``send(_:on:timeout:fileID:line:)``.
    public func cancelled(
        count: Int, timeout: Duration = .seconds(120), fileID: String = #fileID, line: Int = #line
    ) async throws {
        try await state.wait(for: "\(count) canceled connections", timeout, fileID, line) { $0.cancelledCount >= count }
    }
}
