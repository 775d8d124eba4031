/// The work that finds a key's content: the read of its record, then fetches, one at a time (C1), or a stream.
struct OriginWork<Content: Sendable> {
    enum Phase {
        /// The accepted content is unknown, and nothing reads its record yet.
        case unread
        case reading(Ticket)
        /// The accepted content is known, because the record was read or the content was set.
        case idle
        case fetching(Flight)
        case streaming(OutOfLine<LiveStream<Content>>)
    }

    /// The use of a record that is read.
    enum ReadPurpose: Hashable {
        case content
        /// The page keys of a list that was updated before its record was read; outdated after newer ones of the origin.
        case pageKeys(isOutdated: Bool)
        /// The record of another user up to this revision; outdated after a further change, which the read may have missed.
        case newerRecord(Revision, isOutdated: Bool)
        /// None any longer.
        case nothing
    }

    var phase = Phase.unread
    /// A read while the accepted content is known.
    var reread: (ticket: Ticket, purpose: ReadPurpose)?
    /// Whether the record could not be read, so that the cacher may have one without later changes.
    var isUnreadable = false
    /// The last fetch's failure, until a fetch succeeds or the content is set.
    var failure: FetchFailure?
    var lastEnded: MonotonicInstant?
    /// The time at which an unwanted fetch is canceled.
    var graceEnds: MonotonicInstant?
    /// Whether an observed key is fetched when the last mutation is settled.
    var refetchesAfterMutations = false
    /// Whether the command that creates the entity of this temporary key has failed or was taken back.
    var isAbandoned = false
    /// The moment at which the entity was removed, so that only an explicit refresh fetches it (E7); `nil` if it was not.
    var removal: Stamp?

    @inline(__always)
    var isIdle: Bool {
        switch phase {
        case .unread, .idle: reread == nil
        case .reading, .fetching, .streaming: false
        }
    }

    @inline(__always)
    var isRunning: Bool {
        switch phase {
        case .unread, .reading, .idle: false
        case .fetching, .streaming: true
        }
    }

    func holdsOff(at now: MonotonicInstant) -> Bool { failure.map { now < $0.holdsUntil } ?? false }

    // MARK: Reads

    @inline(__always)
    var isKnown: Bool {
        switch phase {
        case .unread, .reading: false
        case .idle, .fetching, .streaming: true
        }
    }

    var reading: Ticket? { if case .reading(let ticket) = phase { ticket } else { reread?.ticket } }

    /// The accepted content is known from now on. A read that still runs has no purpose any longer.
    mutating func becomeKnown() {
        switch phase {
        case .unread: phase = .idle
        case .reading(let ticket): (phase, reread) = (.idle, (ticket, .nothing))
        case .idle, .fetching, .streaming: break
        }
    }

    /// The record of an idle key must be read once more before anything else.
    mutating func forget() { phase = .unread }

    mutating func beginReading(_ ticket: Ticket) {
        if isKnown { reread = (ticket, .nothing) } else { phase = .reading(ticket) }
    }

    /// A read has ended. Returns its purpose; `nil` if this read is not the requested one.
    mutating func endReading(_ ticket: Ticket) -> ReadPurpose? {
        if case .reading(ticket) = phase {
            phase = .unread
            return .content
        }
        guard let reread, reread.ticket == ticket else { return nil }
        self.reread = nil
        return reread.purpose
    }

    /// Whether a read brings page keys.
    var awaitsKeys: Bool { if case .pageKeys = reread?.purpose { true } else { false } }

    mutating func outdateKeys() { if awaitsKeys { reread?.purpose = .pageKeys(isOutdated: true) } }

    mutating func outdateNewerRecord() {
        guard case .newerRecord(let revision, _) = reread?.purpose else { return }
        reread?.purpose = .newerRecord(revision, isOutdated: true)
    }

    mutating func forgetKeys() { if awaitsKeys { reread?.purpose = .nothing } }

    mutating func forgetNewerRecord() { if case .newerRecord = reread?.purpose { reread?.purpose = .nothing } }

    // MARK: Fetches

    /// The fetch of the content; a stream is one until it is connected.
    @inline(__always)
    var flight: Flight? {
        switch phase {
        case .unread, .reading, .idle: nil
        case .fetching(let flight): flight
        case .streaming(let stream): if case .connecting(let flight) = stream.value.connection { flight } else { nil }
        }
    }

    /// The time at which callers get stale content; `nil` without a fetch. The failed connections of a stream, and the pauses after them,
    /// belong to one fetch.
    var staleDue: MonotonicInstant? { flight?.staleDue ?? stream?.staleDue }

    mutating func changeFlight(_ change: (inout Flight) -> Void) {
        switch phase {
        case .unread, .reading, .idle:
            break
        case .fetching(var flight):
            change(&flight)
            phase = .fetching(flight)
        case .streaming:
            changeStream { stream in
                guard case .connecting(var flight) = stream.connection else { return }
                change(&flight)
                stream.connection = .connecting(flight)
            }
        }
    }
}

/// A fetch of the whole content; pages have their own requests.
struct Flight: Hashable {
    var ticket: Ticket
    /// Whether a caller or an observer has requested this fetch explicitly, so that an update starts it again.
    var forceRefresh: Bool
    /// Whether a caller got stale content in reliance on this fetch, which then runs to its end without a waiting caller.
    var isPromised = false
    var revalidates: Bool
    /// The position of a shared cacher before the fetch began.
    var base = Revision.none
    /// Whether the fetch has not begun because a newer record of another user is being read.
    var isParked = false
    /// The stamp of the start of the request; zero in a store without links.
    var stamp: Stamp = 0
    /// The time at which callers get stale content (C26): `.distantFuture` for never, `.distantPast` once it has come.
    var staleDue = MonotonicInstant.distantFuture
}

struct FetchFailure {
    var error: any Error
    var holdsUntil: MonotonicInstant
}
