/// Which credential is in use, and whether a new one is being fetched: a pure machine.
///
/// A generation is one credential, as it was handed out between two refreshes. A refresh that was refused stays failed until somebody
/// signs in anew. One that failed on its way fails those who waited for it and all that was sent before it ended; the credential then
/// begins a new generation, so that what is sent from now on may ask for a refresh again.
struct CredentialMachine<Credential: Sendable>: Sendable {
    /// What a caller does next.
    enum Step: Sendable {
        /// Send the request with this credential.
        case use(Credential, generation: Int)
        /// Fetch a new credential in the place of this one, for everybody, and report how that ended.
        case refresh(Credential, generation: Int)
        /// Wait until the refresh of this generation has ended, and ask what became of it.
        case wait(generation: Int)
        /// There is none for this request.
        case fail(any Error)
    }

    private enum Phase: Sendable {
        case ready
        case refreshing
        case failed(any Error)
    }

    private var credential: Credential
    private(set) var generation = 0
    /// The first generation that had this very credential.
    private var firstGeneration = 0
    private var phase = Phase.ready
    /// Why the last refresh that failed on its way did.
    private var lapse: (any Error)?

    init(_ credential: Credential) { self.credential = credential }

    /// The credential in use.
    var current: Credential { credential }

    /// A request wants a credential.
    func wanted() -> Step {
        switch phase {
        case .ready: .use(credential, generation: generation)
        case .refreshing: .wait(generation: generation)
        case .failed(let error): .fail(error)
        }
    }

    /// The server did not accept the credential of a generation.
    mutating func rejected(_ rejected: Int) -> Step {
        guard rejected == generation else { return outcome(of: rejected) }
        switch phase {
        case .ready:
            phase = .refreshing
            return .refresh(credential, generation: generation)
        case .refreshing: return .wait(generation: generation)
        case .failed(let error): return .fail(error)
        }
    }

    /// What those do who waited for the refresh of a generation, or whose request was sent before it ended.
    func outcome(of refreshed: Int) -> Step {
        // The same credential would be rejected again, and asking for another refresh would make a storm of them.
        if let lapse, refreshed < generation, refreshed >= firstGeneration { return .fail(lapse) }
        return wanted()
    }

    /// Whether the refresh of a generation is still wanted: nobody has signed in meanwhile.
    func awaits(_ refreshed: Int) -> Bool {
        if case .refreshing = phase { return refreshed == generation }
        return false
    }

    /// A refresh has ended.
    ///
    /// - Parameter passes: Whether a failure is one of the way, so that the next refresh may succeed.
    mutating func refreshEnded(_ result: Result<Credential, any Error>, of refreshed: Int, passes: Bool = false) {
        // Somebody has signed in meanwhile; what the refresh brought belongs to whom was signed in before.
        guard awaits(refreshed) else { return }
        switch result {
        case .success(let new): replace(by: new)
        case .failure(let error) where passes:
            lapse = error
            generation += 1
            phase = .ready
        case .failure(let error): phase = .failed(error)
        }
    }

    /// Somebody has signed in.
    mutating func replace(by new: Credential) {
        credential = new
        generation += 1
        firstGeneration = generation
        lapse = nil
        phase = .ready
    }
}
