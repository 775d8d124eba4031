internal import StoreCore

/// Runs a credential's machine: one refresh at a time, in a task that no caller's cancellation ends.
final class CredentialKeeper<Credential: Sendable>: Sendable {
    typealias Refresh = @Sendable (Credential, RemoteHost) async throws -> Credential

    /// The machine, and those who wait for a refresh to end.
    private let machine: WatchedState<CredentialMachine<Credential>>
    private let refresh: Refresh?
    private let onRefresh: @Sendable (Credential) -> Void

    init(_ credential: Credential, onRefresh: @escaping @Sendable (Credential) -> Void, refresh: Refresh?) {
        machine = WatchedState(CredentialMachine(credential))
        self.onRefresh = onRefresh
        self.refresh = refresh
    }

    var current: Credential { machine.read { $0.current } }

    func replace(by credential: Credential) { machine.update { $0.replace(by: credential) } }

    /// The credential for a request, once no refresh is under way.
    func credential() async throws -> (Credential, generation: Int) {
        try await settled(machine.read { $0.wanted() })
    }

    /// A credential in the place of one that was not accepted; `nil` where none can be had.
    ///
    /// - Parameter host: The host to refresh at; it must send no credentials itself.
    func successor(of generation: Int, at host: RemoteHost) async throws -> (Credential, generation: Int)? {
        guard let refresh else { return nil }
        // Only a look while a refresh is under way: a change is looked at by all who wait, and they may be thousands.
        let step =
            machine.read { $0.awaits(generation) ? .wait(generation: generation) : nil } ?? machine.update { $0.rejected(generation) }
        if case .refresh(let old, let generation) = step {
            // Not the caller's task: the refresh is for everybody who waits.
            Task {
                let result: Result<Credential, any Error>
                do {
                    result = .success(try await refresh(old, host))
                } catch {
                    result = .failure(error)
                }
                // Saved before anybody uses it; not where somebody has signed in meanwhile, whose token it would replace.
                if case .success(let new) = result, machine.read({ $0.awaits(generation) }) { onRefresh(new) }
                let passes = if case .failure(let error) = result { error.passesByItself } else { false }
                machine.update { $0.refreshEnded(result, of: generation, passes: passes) }
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

extension Error {
    /// Whether a refresh that failed so may succeed next time: the way failed, or a server was overloaded, but nobody said no.
    ///
    /// Asked of the cause and not of ``FailureAdvising/failureKind``, which is permanent for every POST: one may not be sent twice by
    /// itself, but the next 401 asks for a new one.
    var passesByItself: Bool {
        switch self {
        case let error as RemoteError: return error.isPassing || error.stage == .timeout || error.stage == .cancelled
        case is CancellationError: return true
        case let advice as any FailureAdvising: return advice.failureKind == .transient || advice.failureKind == .cancelled
        default: return false
        }
    }
}
