import StorePlatform

/// The descriptors that one thread polls, with its interest in each.
struct Poller {
    /// The owner of a descriptor; a connection's number is never reused, but its descriptor may be.
    enum Token: Hashable {
        case mailbox
        case listener
        case connection(Int)
    }

    struct Interest: OptionSet {
        let rawValue: Int16

        static let reading = Interest(rawValue: Int16(POLLIN))
        static let writing = Interest(rawValue: Int16(POLLOUT))
    }

    struct Readiness {
        let token: Token
        let canRead: Bool
        let canWrite: Bool
        /// Whether the peer is gone for good; reported regardless of the interest.
        let isBroken: Bool
    }

    private var entries: [pollfd] = []
    private var tokens: [Token] = []
    private var slots: [Token: Int] = [:]

    /// Starts watching `descriptor`, or changes the interest in it.
    mutating func watch(_ descriptor: Int32, for interest: Interest, as token: Token) {
        if let slot = slots[token] {
            entries[slot].events = interest.rawValue
        } else {
            slots[token] = entries.count
            entries.append(pollfd(fd: descriptor, events: interest.rawValue, revents: 0))
            tokens.append(token)
        }
    }

    /// Stops watching; the last entry fills the gap.
    mutating func forget(_ token: Token) {
        guard let slot = slots.removeValue(forKey: token) else { return }
        let lastEntry = entries.removeLast()
        let lastToken = tokens.removeLast()
        guard slot < entries.count else { return }
        entries[slot] = lastEntry
        tokens[slot] = lastToken
        slots[lastToken] = slot
    }

    /// Waits for the first readiness until `timeout`; without a timeout, indefinitely.
    mutating func wait(for timeout: Duration?) -> [Readiness] {
        guard poll(&entries, nfds_t(entries.count), Self.milliseconds(timeout)) > 0 else { return [] }
        var ready: [Readiness] = []
        for (slot, entry) in entries.enumerated() where entry.revents != 0 {
            ready.append(
                Readiness(
                    token: tokens[slot],
                    canRead: entry.revents & Int16(POLLIN) != 0,
                    canWrite: entry.revents & Int16(POLLOUT) != 0,
                    isBroken: entry.revents & Int16(POLLERR | POLLHUP | POLLNVAL) != 0
                ))
        }
        return ready
    }

    /// Returns whole milliseconds, rounded up, because waking early would only repeat the poll.
    private static func milliseconds(_ duration: Duration?) -> Int32 {
        guard let duration else { return -1 }
        return Int32((max(.zero, min(duration, .seconds(3600))) / .milliseconds(1)).rounded(.up))
    }
}
