internal import RemoteHTTP
internal import StoreCore

/// Drives a credential's machine: one refresh at a time, in a task that outlives a canceled caller.
final class CredentialKeeper<Credential: Sendable>: Sendable {
    typealias Refresh = @Sendable (Credential, RemoteHost) async throws -> Credential

    /// The machine, and the callers that wait for a refresh.
    private let machine: WatchedState<CredentialMachine<Credential>>
    private let refresh: Refresh?
    private let onRefresh: @Sendable (Credential) -> Void
    /// The place that other processes share; `nil` without one.
    private let place: CredentialPlace<Credential>?
    /// The first read of the place.
    private let opening = WatchedState(Opening.needed)

    private enum Opening: Sendable { case needed, running, complete }

    /// Whether the credential in use is not that of the place, which may be another user's.
    private let isApart = Lock(false)

    init(
        _ credential: Credential, in place: CredentialPlace<Credential>? = nil, onRefresh: @escaping @Sendable (Credential) -> Void,
        refresh: Refresh?
    ) {
        machine = WatchedState(CredentialMachine(credential))
        self.place = place
        self.onRefresh = onRefresh
        self.refresh = refresh
    }

    var current: Credential { machine.read { $0.current } }

    /// Whether the credential of a generation is that of another process, and no result of a refresh.
    func isTaken(_ generation: Int) -> Bool { machine.read { $0.isTaken(generation) } }

    /// Replaces the credential in this process only.
    func replace(by credential: Credential) {
        isApart.withLock { $0 = true }
        machine.update { $0.replace(by: credential) }
    }

    /// Replaces the credential after a sign-in, and keeps it in the place.
    func keep(_ credential: Credential) async throws {
        replace(by: credential)
        try await place?.save(credential, at: .system)
        isApart.withLock { $0 = false }
    }

    /// Returns the credential for a request, after any refresh in progress.
    func credential() async throws -> (Credential, generation: Int) {
        if let place { try await open(place) }
        return try await settled(machine.read { $0.wanted() })
    }

    /// Reads the place once. Its credential is newer than the one with which the program began.
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
            Task { [machine, opening] in
                // Ignores the reason: a place that cannot be read fails the refresh after the first 401.
                if let kept = try? await place.load() { machine.update { $0.opened(with: kept) } }
                opening.update { $0 = .complete }
            }
        }
        _ = try await opening.wait { $0 == .complete ? true : nil }
    }

    /// Returns the successor of a rejected credential; `nil` if the credential cannot be refreshed.
    ///
    /// - Parameter host: The host that sends the refresh; it must have no credentials itself.
    func successor(of generation: Int, at host: RemoteHost) async throws -> (Credential, generation: Int)? {
        guard let refresh else { return nil }
        // Only reads during a refresh: each update wakes every waiter, and there may be thousands.
        let step =
            machine.read { $0.awaits(generation) ? .wait(generation: generation) : nil } ?? machine.update { $0.rejected(generation) }
        if case .refresh(let old, let generation) = step {
            // A task of its own, because all waiters share the refresh.
            Task {
                let result: Result<Credential, any Error>
                var isTaken = false
                do {
                    if let place, !isApart.withLock(\.self) {
                        let (new, isRefreshed) = try await place.successor(of: old, at: host.time) { try await refresh($0, host) }
                        result = .success(new)
                        isTaken = !isRefreshed
                    } else {
                        result = .success(try await refresh(old, host))
                    }
                } catch {
                    result = .failure(error)
                }
                // Saves the token before any request uses it, unless the user signed in meanwhile: the old token must not replace the new
                // one.
                if case .success(let new) = result, machine.read({ $0.awaits(generation) }) { onRefresh(new) }
                let passes = if case .failure(let error) = result { error.passesByItself } else { false }
                machine.update { [isTaken] in $0.refreshEnded(result, of: generation, passes: passes, isTaken: isTaken) }
            }
        }
        return try await settled(step)
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
