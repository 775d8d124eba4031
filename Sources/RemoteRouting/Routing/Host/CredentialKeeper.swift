internal import RemoteHTTP
internal import StoreCore

/// Drives a credential's machine: one refresh at a time, in a task that outlives a canceled caller.
final class CredentialKeeper<Credential: Sendable>: Sendable {
    typealias Refresh = @Sendable (Credential, RemoteHost) async throws -> Credential

    private let machine: WatchedState<CredentialMachine<Credential>>
    private let refresh: Refresh
    private let onRefresh: @Sendable (Credential) -> Void
    private let place: CredentialPlace<Credential>?
    /// The first read of the place, or the last one after a refused refresh.
    private let opening = WatchedState(Opening.needed)

    private enum Opening: Sendable { case needed, running, complete }

    /// The number of sign-ins, and that of the last one saved in the place. If they differ, the place may have another user's credential.
    private let signIns = Lock((count: 0, kept: 0))

    /// The running refreshes by generation. After a replacement, several may run.
    private let refreshes = Lock<[Int: Task<Void, Never>]>([:])
    /// The number of running refreshes and calls of the place. Closing the scope waits until it is zero.
    private let running = WatchedState(0)
    /// The permit to pass a new credential to the app, or to change the place.
    private let saves: Permits
    /// Whether the credential was removed. It is removed only once, because the place may contain the next user's credential by then.
    private let isRemoved = Lock(false)

    init(
        _ credential: Credential, in place: CredentialPlace<Credential>? = nil, scope: CacheScope?,
        onRefresh: @escaping @Sendable (Credential) -> Void, refresh: @escaping Refresh
    ) {
        machine = WatchedState(CredentialMachine(credential))
        self.place = place
        saves = place?.saves ?? Permits(1)
        self.onRefresh = onRefresh
        self.refresh = refresh
        guard let scope else { return }
        scope.add(self)
        if scope.isClosed { shut() }
    }

    var current: Credential { machine.read { $0.current } }

    func isTaken(_ generation: Int) -> Bool { machine.read { $0.isTaken(generation) } }

    /// Whether the place has no credential of an earlier user.
    private var sharesPlace: Bool { signIns.withLock { $0.count == $0.kept } }

    /// Replaces the credential in this process only, and returns the number of the sign-in.
    @discardableResult
    func replace(by credential: Credential) -> Int {
        let number = signIns.withLock { signIns in
            signIns.count += 1
            return signIns.count
        }
        machine.update { $0.replace(by: credential) }
        return number
    }

    func keep(_ credential: Credential) async throws {
        let number = replace(by: credential)
        let generation = machine.read { $0.generation }
        // A refresh for the former user must not save its result over this credential.
        cancelRefreshes(before: generation)
        // A task of its own, because the credential is already replaced, even if the sign-in is canceled now.
        try await Task { [self] in
            try await counted {
                let permit = try await saves.take()
                defer { permit.release() }
                guard machine.read({ !$0.isClosed }) else { throw StoreError.closedCredential }
                // The place may have the credential of a later sign-in.
                guard signIns.withLock({ $0.kept < number }) else { return }
                try await place?.save(credential)
                signIns.withLock { $0.kept = number }
            }
        }.value
    }

    func credential() async throws -> (Credential, generation: Int) {
        if let place, machine.read({ !$0.isClosed }) {
            // Another process may have signed in since the refusal.
            if machine.read({ $0.isRefused }), sharesPlace { opening.update { if $0 == .complete { $0 = .needed } } }
            try await open(place)
        }
        return try await settled(machine.read { $0.wanted() })
    }

    /// Reads the place, unless it was read. Its credential is newer than the one with which the program began.
    ///
    /// - Throws: `CancellationError` as soon as the task is canceled; the read continues for the other requests.
    private func open(_ place: CredentialPlace<Credential>) async throws {
        if opening.read({ $0 == .complete }) { return }
        let begins = opening.update { opening in
            guard opening == .needed else { return false }
            opening = .running
            return true
        }
        if begins {
            // A task of its own, because all waiters share it.
            Task { [self] in
                await counted {
                    // Ignores the reason: a place that cannot be read fails the refresh after the first 401.
                    guard machine.read({ !$0.isClosed }), let kept = try? await place.load(), sharesPlace else { return }
                    let isNew = !place.isSame(kept, current)
                    machine.update { $0.opened(with: kept, isNew: isNew) }
                }
                opening.update { $0 = .complete }
            }
        }
        _ = try await opening.wait { $0 == .complete ? true : nil }
    }

    /// Returns the successor of a rejected credential; the host that sends the refresh must have no credentials itself.
    func successor(of generation: Int, at host: RemoteHost) async throws -> (Credential, generation: Int) {
        // Only reads during a refresh: each update wakes every waiter, and there may be thousands.
        let step =
            machine.read { $0.awaits(generation) ? .wait(generation: generation) : nil } ?? machine.update { $0.rejected(generation) }
        if case .refresh(let old, let generation) = step { begin(for: old, generation, at: host) }
        return try await settled(step)
    }

    /// Starts a refresh in a task of its own, because all waiters share it.
    private func begin(for old: Credential, _ generation: Int, at host: RemoteHost) {
        refreshes.withLock { tasks in
            // Starts no refresh that was dropped meanwhile, because only the tasks in this list are canceled.
            guard machine.read({ $0.awaits(generation) }) else { return }
            tasks[generation] = Task { [self] in
                await counted {
                    await run(for: old, generation, at: host)
                    await place?.settle()
                }
                _ = refreshes.withLock { $0.removeValue(forKey: generation) }
            }
        }
    }

    private func run(for old: Credential, _ generation: Int, at host: RemoteHost) async {
        let result: Result<Credential, any Error>
        var isTaken = false
        do {
            try Task.checkCancellation()
            if let place, sharesPlace {
                let (new, isRefreshed) = try await place.successor(of: old, at: host.time) { try await refresh($0, host) }
                result = .success(new)
                isTaken = !isRefreshed
            } else {
                result = .success(try await refresh(old, host))
                // A sign-in that is being saved may still bring the old credential to the place.
                place?.outdated.update { $0 = old }
            }
        } catch {
            result = .failure(error)
        }
        // The task is canceled only by a call that has dropped the refresh. That call may wait for the end of all saves.
        guard let permit = try? await saves.take() else { return }
        defer { permit.release() }
        // Saves the token before any request uses it, unless the user signed in meanwhile: the old token must not replace the new one.
        if case .success(let new) = result, machine.read({ $0.awaits(generation) }) { onRefresh(new) }
        let passes = if case .failure(let error) = result { error.passesByItself } else { false }
        machine.update { [isTaken] in $0.refreshEnded(result, of: generation, passes: passes, isTaken: isTaken) }
    }

    private func settled(_ first: CredentialMachine<Credential>.Step) async throws -> (Credential, generation: Int) {
        var step = first
        while true {
            switch step {
            case .use(let credential, let generation): return (credential, generation)
            case .fail(let error): throw error
            case .wait(let generation), .refresh(_, let generation):
                step = try await machine.wait { $0.awaits(generation) ? nil : $0.outcome(of: generation) }
            }
        }
    }
}

// Clearing and closing the scope (C23): no result of an earlier refresh is used or saved.

extension CredentialKeeper: CacheScopeMember {
    func prepareToClear() async throws {
        let generation = machine.update { machine in
            machine.dropRefresh()
            return machine.generation
        }
        // Keeps a refresh that a request has begun since, because nothing has dropped it.
        cancelRefreshes(before: generation)
    }

    /// Waits until no result of a dropped refresh is being saved.
    ///
    /// The credential stays, because it is not cached content and requests continue.
    func clear() async throws { try await waitUntilSaved() }

    func waitUntilSaved() async throws { try await saves.take().release() }

    func refuse() async { shut() }

    func close(clearing: Bool) async throws {
        shut()
        try await ClosingCall.wait { [self] in
            var failure: (any Error)?
            if clearing {
                do { try await removeFromPlace() } catch { failure = error }
            }
            try await running.wait { $0 == 0 ? () : nil }
            await place?.settle()
            if let failure { throw failure }
        }
    }

    private func shut() {
        machine.update { $0.close(StoreError.closedCredential) }
        // Requests that wait for the first read of the place now fail at once.
        opening.update { $0 = .complete }
        cancelRefreshes()
    }

    private func cancelRefreshes(before generation: Int = .max) {
        let tasks = refreshes.withLock { tasks in tasks.filter { $0.key < generation }.map(\.value) }
        for task in tasks { task.cancel() }
    }

    private func removeFromPlace() async throws {
        guard let place, !isRemoved.withLock(\.self) else { return }
        let ended = WatchedState<Result<Void, any Error>?>(nil)
        // A task of its own, because a canceled call only stops waiting for the removal.
        Task { [self] in
            let removal = Task {
                try await counted {
                    // After any save in progress.
                    let permit = try await saves.take()
                    defer { permit.release() }
                    try await place.remove()
                    isRemoved.withLock { $0 = true }
                }
            }
            let result = await removal.result
            ended.update { $0 = result }
        }
        try await ended.wait { $0 }.get()
    }

    /// Does work that closing the scope waits for, unless the work itself closes it.
    private func counted<Value: Sendable>(_ body: () async throws -> Value) async rethrows -> Value {
        let work = WorkScope(running)
        defer { work.end() }
        return try await work.run(body)
    }
}

extension StoreError {
    fileprivate static var closedCredential: StoreError {
        StoreError(.closed, "the scope of the credentials was closed, so no request has them; create new ones in a new scope")
    }
}
