/// One piece of running work that a call of `close()` waits for: a fetch of a store, an attempt of an outbox, or a refresh of a credential.
///
/// Work that itself waits for a `close()` does not count meanwhile: otherwise the two would wait for each other.
package final class WorkScope: Sendable {
    private struct State {
        var hasEnded = false
        /// The number of calls of `close()` that this work waits for.
        var closings = 0

        var isCounted: Bool { !hasEnded && closings == 0 }
    }

    /// The numbers of running pieces of work that include this one until it ends, one for each member of a scope.
    let running: Few<WatchedState<Int>>
    private let state = Lock(State())

    init(_ running: Few<WatchedState<Int>>) {
        self.running = running
        running.forEach { $0.update { $0 += 1 } }
    }

    /// Begins work of an outbox or of a credential.
    package convenience init(_ running: WatchedState<Int>) { self.init(.one(running)) }

    package func end() { change { $0.hasEnded = true } }

    /// Runs a part of the work, which may call `close()`. For work outside the fetches of a store.
    package func run<Result: Sendable>(_ body: () async throws -> Result) async rethrows -> Result {
        try await ClosingCall.$works.withValue(ClosingCall.works + [self], operation: body)
    }

    /// Records that the work begins to wait for a `close()`, or that it waits no longer.
    fileprivate func addClosings(_ number: Int) { change { $0.closings += number } }

    private func change(_ body: (inout State) -> Void) {
        let difference = state.withLock { state in
            let before = state.isCounted
            body(&state)
            return (state.isCounted ? 1 : 0) - (before ? 1 : 0)
        }
        if difference != 0 { running.forEach { $0.update { $0 += difference } } }
    }
}

/// A call of `close()`, possibly from inside the work that it ends.
package enum ClosingCall {
    /// The attempts and refreshes that this task belongs to. There may be several, because a delivery may cause a refresh.
    @TaskLocal package static var works: [WorkScope] = []

    /// Runs the wait of a call.
    ///
    /// A fetcher, the `perform` of a command, or the refresh of a credential may find that the user is signed out, and close the scope. The
    /// call cancels the work that it comes from. That cancellation must not end the wait.
    package static func wait(_ body: @escaping @Sendable () async throws -> Void) async throws {
        let scopes = works + [FetchScope.active?.work].compactMap { $0 }
        guard !scopes.isEmpty else { return try await body() }
        for scope in scopes { scope.addClosings(1) }
        defer { for scope in scopes { scope.addClosings(-1) } }
        try await Task { try await body() }.value
    }
}
