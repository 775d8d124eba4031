/// Decides which credential is in use and whether to refresh it: a pure machine.
///
/// A generation is one credential between two refreshes. A refused refresh stays failed until the user signs in again. A transient failure
/// fails the waiters and all requests sent before the refresh ended. The credential then starts a new generation, so that later requests
/// may trigger a refresh again.
struct CredentialMachine<Credential: Sendable>: Sendable {
    enum Step: Sendable {
        case use(Credential, generation: Int)
        /// Refresh this credential on behalf of all waiters and report the result.
        case refresh(Credential, generation: Int)
        /// Wait until the refresh of this generation has ended, then ask for the outcome.
        case wait(generation: Int)
        case fail(any Error)
    }

    private enum Phase: Sendable {
        case ready
        case refreshing
        case failed(any Error)
    }

    private(set) var current: Credential
    private(set) var generation = 0
    private var firstGeneration = 0
    /// The last generation with a credential of another process; `nil` without one.
    private var takenGeneration: Int?
    private var phase = Phase.ready
    /// The error of the last refresh that failed transiently.
    private var lapse: (any Error)?
    /// Whether the scope is closed, so that no request gets a credential (C23).
    private(set) var isClosed = false

    init(_ credential: Credential) { current = credential }

    func isTaken(_ generation: Int) -> Bool { takenGeneration == generation }

    func wanted() -> Step {
        switch phase {
        case .ready: .use(current, generation: generation)
        case .refreshing: .wait(generation: generation)
        case .failed(let error): .fail(error)
        }
    }

    mutating func rejected(_ rejected: Int) -> Step {
        guard rejected == generation else { return outcome(of: rejected) }
        guard case .ready = phase else { return wanted() }
        phase = .refreshing
        return .refresh(current, generation: generation)
    }

    /// Returns the step of a request that waited for a refresh or was sent before the refresh ended.
    func outcome(of refreshed: Int) -> Step {
        // The server would reject the same credential again, and another refresh for each request would flood it.
        if let lapse, refreshed < generation, refreshed >= firstGeneration { return .fail(lapse) }
        return wanted()
    }

    /// Whether the refresh of a generation is still needed: no replacement arrived meanwhile.
    func awaits(_ refreshed: Int) -> Bool {
        if case .refreshing = phase { return refreshed == generation }
        return false
    }

    /// Records the end of a refresh. A failure that `passes` is transient, so the next refresh may succeed.
    mutating func refreshEnded(
        _ result: Result<Credential, any Error>, of refreshed: Int, passes: Bool = false, isTaken: Bool = false
    ) {
        // A replacement arrived meanwhile, so the result belongs to the previous sign-in.
        guard awaits(refreshed) else { return }
        switch result {
        case .success(let new):
            replace(by: new)
            if isTaken { takenGeneration = generation }
        case .failure(let error) where passes:
            lapse = error
            generation += 1
            phase = .ready
        case .failure(let error): phase = .failed(error)
        }
    }

    /// Whether a refresh was refused, so that only a sign-in helps.
    var isRefused: Bool { if case .failed = phase { !isClosed } else { false } }

    /// Begins with a kept credential, unless it was replaced or refreshed already. After a refused refresh, a new one is from a sign-in.
    mutating func opened(with kept: Credential, isNew: Bool) {
        if isRefused, isNew { return replace(by: kept) }
        if generation == 0, case .ready = phase { current = kept }
    }

    /// Drops a refresh in progress: its waiters fail, and later requests have the same credential.
    mutating func dropRefresh() {
        refreshEnded(.failure(CancellationError()), of: generation, passes: true)
    }

    /// Ends the use of the credential for good. Each later request fails with the error.
    mutating func close(_ error: any Error) {
        isClosed = true
        lapse = nil
        phase = .failed(error)
    }

    mutating func replace(by new: Credential) {
        guard !isClosed else { return }
        current = new
        generation += 1
        firstGeneration = generation
        lapse = nil
        phase = .ready
    }
}
