/// One piece of running work that a call of `close()` waits for: a fetch of a store, an attempt of an outbox, or a refresh of a credential.
///
/// Work that itself waits for a `close()` does not count meanwhile: otherwise the two would wait for each other.
package struct CountedWork {
    private var hasEnded = false
    /// The number of calls of `close()` that this work waits for.
    private var closings = 0

    package init() {}

    private var isCounted: Bool { !hasEnded && closings == 0 }

    /// Changes the work.
    ///
    /// - Returns: The change of the number of running pieces of work.
    package mutating func change(_ body: (inout CountedWork) -> Void) -> Int {
        let before = isCounted
        body(&self)
        return (isCounted ? 1 : 0) - (before ? 1 : 0)
    }

    /// Records the end of the work.
    package mutating func end() { hasEnded = true }

    /// The work begins to wait for a `close()`.
    mutating func closingBegan() { closings += 1 }

    /// The work no longer waits for a `close()`.
    mutating func closingEnded() { closings -= 1 }
}

/// Running work that is bound to a task, and inherited by the child tasks of that task.
package protocol CountedScope: AnyObject, Sendable {
    /// The numbers of running pieces of work that include this one until it ends, one for each member of a scope.
    var running: Few<WatchedState<Int>> { get }

    /// Changes the state of the work under its lock.
    func withWork<Result: Sendable>(_ body: (inout CountedWork) -> Result) -> Result
}

extension CountedScope {
    /// Changes the work, and then the numbers of running pieces of work.
    package func change(_ body: (inout CountedWork) -> Void) {
        let difference = withWork { $0.change(body) }
        if difference != 0 { running.forEach { $0.update { $0 += difference } } }
    }

    /// Ends the work, and takes it out of the numbers of running pieces of work.
    package func end() { change { $0.end() } }
}

/// Running work outside the fetches of a store: an attempt of an outbox, or a refresh of a credential.
package final class WorkScope: CountedScope {
    package let running: Few<WatchedState<Int>>
    private let work = Lock(CountedWork())

    /// Begins the work.
    ///
    /// - Parameter running: The number of running pieces of work of the outbox, or of the credential.
    package init(_ running: WatchedState<Int>) {
        self.running = .one(running)
        running.update { $0 += 1 }
    }

    package func withWork<Result: Sendable>(_ body: (inout CountedWork) -> Result) -> Result { work.withLock { body(&$0) } }

    /// Runs a part of the work, which may call `close()`.
    package func run<Result: Sendable>(_ body: () async throws -> Result) async rethrows -> Result {
        try await ClosingCall.$works.withValue(ClosingCall.works + [self], operation: body)
    }
}

/// A call of `close()`, possibly from inside the work that it ends.
package enum ClosingCall {
    /// The attempts and refreshes that this task belongs to. There may be several, because a delivery may cause a refresh.
    @TaskLocal package static var works: [any CountedScope] = []

    /// Runs the wait of a call.
    ///
    /// A fetcher, the `perform` of a command, or the refresh of a credential may find that the user is signed out, and close the scope. The
    /// call cancels the work that it comes from. That cancellation must not end the wait.
    package static func wait(_ body: @escaping @Sendable () async throws -> Void) async throws {
        let fetch: (any CountedScope)? = FetchScope.active
        let scopes = works + [fetch].compactMap { $0 }
        guard !scopes.isEmpty else { return try await body() }
        for scope in scopes { scope.change { $0.closingBegan() } }
        defer { for scope in scopes { scope.change { $0.closingEnded() } } }
        try await Task { try await body() }.value
    }
}
