/// Which credential is in use, and whether a new one is being fetched: a pure machine.
///
/// A generation is one credential. Each may be refreshed once; a refresh that failed stays failed until somebody signs in anew.
struct CredentialMachine<Credential: Sendable>: Sendable {
    /// What a caller does next.
    enum Step: Sendable {
        /// Send the request with this credential.
        case use(Credential, generation: Int)
        /// Fetch a new credential in the place of this one, for everybody, and report how that ended.
        case refresh(Credential, generation: Int)
        /// Wait until the refresh under way has ended, and ask again.
        case wait
        /// There is none, and there will be none.
        case fail(any Error)
    }

    private enum Phase: Sendable {
        case ready
        case refreshing
        case failed(any Error)
    }

    private var credential: Credential
    private(set) var generation = 0
    private var phase = Phase.ready

    init(_ credential: Credential) { self.credential = credential }

    /// The credential in use.
    var current: Credential { credential }

    /// A request wants a credential.
    func wanted() -> Step {
        switch phase {
        case .ready: .use(credential, generation: generation)
        case .refreshing: .wait
        case .failed(let error): .fail(error)
        }
    }

    /// The server did not accept the credential of a generation.
    mutating func rejected(_ rejected: Int) -> Step {
        // An answer to a request that was sent before the last refresh: its successor has not been tried yet.
        guard rejected == generation else { return wanted() }
        switch phase {
        case .ready:
            phase = .refreshing
            return .refresh(credential, generation: generation)
        case .refreshing: return .wait
        case .failed(let error): return .fail(error)
        }
    }

    /// A refresh has ended.
    mutating func refreshEnded(_ result: Result<Credential, any Error>, of refreshed: Int) {
        // Somebody has signed in meanwhile; what the refresh brought belongs to whom was signed in before.
        guard refreshed == generation, case .refreshing = phase else { return }
        switch result {
        case .success(let new): replace(by: new)
        case .failure(let error): phase = .failed(error)
        }
    }

    /// Somebody has signed in.
    mutating func replace(by new: Credential) {
        credential = new
        generation += 1
        phase = .ready
    }
}
