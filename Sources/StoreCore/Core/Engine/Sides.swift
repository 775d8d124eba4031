/// The page requests at both sides of a list (C13), and the index that merges pages.
struct Sides {
    var next = Side()
    var prev = Side()
    /// The page merger's index of the content; dropped when the content changes in another way.
    var mergeIndex: AnyObject?

    @inline(__always)
    var isLoading: Bool { next.ticket != nil || prev.ticket != nil }
    @inline(__always)
    var isInterrupted: Bool { next.isInterrupted || prev.isInterrupted }

    subscript(direction: PageDirection) -> Side {
        get { direction == .next ? next : prev }
        set { if direction == .next { next = newValue } else { prev = newValue } }
    }

    mutating func forgetFailures(into leftovers: inout [any Sendable]) {
        next.forgetFailure(into: &leftovers)
        prev.forgetFailure(into: &leftovers)
    }
}

/// The page request in one direction of a list.
struct Side {
    var ticket: Ticket?
    /// The stamp of the start of the request; zero in a store without links.
    var stamp: Stamp = 0
    /// Whether the page request was interrupted and begins again when no fetch of the list runs. Never true after a transition without
    /// such a fetch.
    var isInterrupted = false
    var failure: (any Error)?

    mutating func forgetFailure(into leftovers: inout [any Sendable]) {
        guard let failure else { return }
        leftovers.append(failure)
        self.failure = nil
    }
}
