/// The way of a key's content to the cacher (C6): what the cacher lacks, the call that saves it, and the last failure.
///
/// A machine requests a call, and the queue of the store begins it. A call takes the content of the moment at which it begins. So a change
/// during a call requests one more, and any number of changes before a call need no other.
struct SavePhase: Hashable {
    private enum Call: Hashable {
        /// None is requested: the cacher has the content or failed to take it, or gets it later.
        case none
        case requested
        /// `isRequestedAgain` after a change during the call.
        case running(Save, isRequestedAgain: Bool)
    }

    /// A running call: the revision of the content that it saves, and its change if the cacher is shared.
    struct Save: Hashable {
        var revision: Ticket
        var change: OutgoingChange?
    }

    /// A change that the cacher failed to take; the key stays live until it has taken it.
    enum Failure: Hashable {
        case content
        /// The record to be invalidated could not be read.
        case invalidation
    }

    private var call = Call.none
    /// The last revision that the cacher took or failed to take.
    var tried = Ticket(number: 0)
    var failure: Failure?
    /// The change that the next call saves in a shared cacher; `nil` if there is none, and in any other cacher.
    var next: OutgoingChange?
    /// The changes that others make of this key; unused if the cacher is not shared.
    var elsewhere = SharedKey()

    var isRequested: Bool {
        switch call {
        case .none: false
        case .requested: true
        case .running(_, let isRequestedAgain): isRequestedAgain
        }
    }

    var running: Save? { if case .running(let save, _) = call { save } else { nil } }

    @inline(__always)
    var isRunning: Bool { if case .running = call { true } else { false } }

    /// Whether no call that is requested or runs saves this revision.
    func lacksRequest(for revision: Ticket) -> Bool { !isRequested && running?.revision != revision }

    mutating func request() {
        if case .running(let save, _) = call { call = .running(save, isRequestedAgain: true) } else { call = .requested }
    }

    /// The requested call is not needed any longer.
    mutating func withdraw() {
        if case .running(let save, _) = call { call = .running(save, isRequestedAgain: false) } else { call = .none }
    }

    /// The requested call begins. Later changes belong to the next one.
    mutating func begin(_ revision: Ticket) {
        call = .running(Save(revision: revision, change: next), isRequestedAgain: false)
        next = nil
    }

    /// The running call ends.
    ///
    /// - Returns: The call; `nil` if none runs.
    mutating func end() -> Save? {
        guard case .running(let save, let isRequestedAgain) = call else { return nil }
        call = isRequestedAgain ? .requested : .none
        return save
    }

    // MARK: Changes in a shared cacher

    /// A call has failed: its change is saved again as it was, with the changes that were derived from its content meanwhile.
    mutating func keep(_ failed: OutgoingChange?) {
        guard var failed else { return }
        if let next {
            // Content that was set or fetched meanwhile replaces the content that could not be saved.
            guard next.isDerived else {
                if failed.invalidates { self.next?.invalidates = true }
                return
            }
            failed.invalidates = failed.invalidates || next.invalidates
            failed.isUnattended = failed.isUnattended || next.isUnattended
        }
        next = failed
    }

    /// The caller that has made this revision no longer waits for its save.
    mutating func leaveUnattended(_ revision: Ticket) {
        guard case .running(var save, let isRequestedAgain) = call, revision <= save.revision else {
            next?.isUnattended = true
            return
        }
        save.change?.isUnattended = true
        call = .running(save, isRequestedAgain: isRequestedAgain)
    }
}
