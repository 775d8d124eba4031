internal import StoreCore
internal import StoreFiles

// Closing (C23): nothing is delivered or logged any longer, and the call returns when nothing runs.

extension Outbox {
    /// Ends all work of the outbox for good, for example when the user signs out.
    ///
    /// The observations end. Each later submission, cancellation, retry and replacement fails with ``StoreError/Code/closed``; methods
    /// that cannot throw do nothing. Running attempts are canceled. The call returns when none runs; from then on, the outbox changes no
    /// file, and its directory may be deleted.
    ///
    /// A `perform` that ignores its cancellation delays the call, unless it makes the call itself.
    ///
    /// - Parameter clearing: Whether all commands are dropped, as by ``clear()``. Otherwise they stay on disk, and the next outbox on the
    ///   directory delivers them.
    /// - Throws: ``StoreError/Code/fileSystem`` if the commands could not be dropped, after everything has ended. `CancellationError` if
    ///   the task is canceled; the outbox is closed even then, and only the wait ends early. Call the method again to wait.
    public func close(clearing: Bool = false) async throws { try await core.close(clearing: clearing) }
}

extension OutboxCore {
    func shut() {
        guard !isClosed else { return }
        phase = .closed
        shutDown()
        // Ends the observations and the waits for deliveries.
        version.update { $0 += 1 }
    }

    func close(clearing: Bool) async throws {
        shut()
        var failure: (any Error)?
        // Emptied once, because the directory may have been deleted since.
        if clearing, phase < .emptied {
            do {
                _ = try empty()
                phase = .emptied
            } catch {
                failure = error
            }
        }
        let (running, leases) = (running, leases)
        try await ClosingCall.wait {
            try await running.wait { $0 == 0 ? () : nil }
            // The lease ends on this queue.
            try await leases.perform {}
        }
        if let failure { throw failure }
    }

    func checkOpen() throws {
        if isClosed { throw StoreError.closedOutbox }
    }

    func emptyIfOpen() throws -> Int {
        try checkOpen()
        return try empty()
    }
}

extension StoreError {
    static var closedOutbox: StoreError {
        StoreError(.closed, "the outbox or its scope was closed, so it accepts no commands; create a new outbox in a new scope")
    }
}
