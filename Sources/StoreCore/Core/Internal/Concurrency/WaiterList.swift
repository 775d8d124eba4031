internal import Synchronization

/// Tasks that wait for a change of one state, in the order of their tickets; the lock of the state guards the list.
///
/// A task joins the list in the critical section in which it decides to wait, and suspends afterward. A task that leaves the list between
/// the two steps is not suspended. Therefore a cancellation, which may arrive before the suspension, needs no further bookkeeping.
package struct WaiterList<Tag> {
    package typealias Ticket = UInt64

    /// A task that waits, or is about to.
    package struct Waiter {
        package let ticket: Ticket
        package var tag: Tag
        /// `nil` before the task is suspended.
        fileprivate(set) var suspension: Suspension?
        fileprivate var hasLeft = false

        /// Resumes the task if it is suspended. Call it outside the lock, because a resumed task may take the lock.
        package func resume() { suspension?.resume() }
    }

    /// Sorted by ticket. Waiters that have left stay until they are first, or outnumber the others.
    private var waiters: ArraySlice<Waiter> = []
    private var lastTicket: Ticket = 0
    package private(set) var count = 0

    package init() {}

    package var isEmpty: Bool { count == 0 }

    package var suspendedCount: Int { all.count { $0.suspension != nil } }

    package var all: some Sequence<Waiter> { waiters.lazy.filter { !$0.hasLeft } }

    /// The number of waiters for which there is storage, for tests.
    package var capacity: Int { waiters.capacity }

    /// The waiter with this ticket; `nil` if it has left.
    package subscript(ticket: Ticket) -> Waiter? {
        let position = position(of: ticket)
        guard position < waiters.endIndex, waiters[position].ticket == ticket, !waiters[position].hasLeft else { return nil }
        return waiters[position]
    }

    package mutating func join(_ tag: Tag) -> Ticket {
        join(tag, as: lastTicket + 1)
        return lastTicket
    }

    /// Adds a waiter with a ticket of its owner.
    package mutating func join(_ tag: Tag, as ticket: Ticket) {
        lastTicket = max(lastTicket, ticket)
        count += 1
        let waiter = Waiter(ticket: ticket, tag: tag)
        waiters.insert(waiter, at: waiters.last.map { $0.ticket < ticket } ?? true ? waiters.endIndex : position(of: ticket))
    }

    /// Sets the tag of a waiter, which must be in the list.
    package mutating func setTag(_ tag: Tag, of ticket: Ticket) { waiters[position(of: ticket)].tag = tag }

    /// Registers the suspension of a waiter. Returns `false` if the waiter has left; its task must then be resumed.
    package mutating func suspend(_ ticket: Ticket, _ suspension: Suspension) -> Bool {
        guard self[ticket] != nil else { return false }
        waiters[position(of: ticket)].suspension = suspension
        return true
    }

    /// Takes out a waiter; returns `nil` if it has left.
    package mutating func remove(_ ticket: Ticket) -> Waiter? {
        guard let waiter = self[ticket] else { return nil }
        let position = position(of: ticket)
        (waiters[position].suspension, waiters[position].hasLeft) = (nil, true)
        count -= 1
        compact()
        return waiter
    }

    /// Removes the waiter with the lowest ticket; the caller resumes it.
    package mutating func removeFirst() -> Waiter? {
        while let waiter = waiters.popFirst() {
            guard !waiter.hasLeft else { continue }
            count -= 1
            compact()
            return waiter
        }
        return nil
    }

    /// Removes the waiters in the order of their tickets; the caller resumes them.
    package mutating func removeAll(where isMatch: (Tag) -> Bool = { _ in true }) -> [Waiter] {
        var removed: [Waiter] = []
        waiters.removeAll { waiter in
            guard !waiter.hasLeft, isMatch(waiter.tag) else { return waiter.hasLeft }
            removed.append(waiter)
            return true
        }
        count -= removed.count
        compact()
        return removed
    }

    /// Takes the suspensions of all waiters, which stay in the list.
    package mutating func wake(_ resumed: inout Few<Suspension>) {
        for position in waiters.indices {
            guard let suspension = waiters[position].suspension else { continue }
            waiters[position].suspension = nil
            resumed.append(suspension)
        }
    }

    /// The first position with this ticket or a later one.
    private func position(of ticket: Ticket) -> Int {
        var range = waiters.startIndex..<waiters.endIndex
        while !range.isEmpty {
            let middle = range.lowerBound + range.count / 2
            range = waiters[middle].ticket < ticket ? middle + 1..<range.upperBound : range.lowerBound..<middle
        }
        return range.lowerBound
    }

    /// Bounds the storage at twice the number of waiters, so that the waiters of an idle list leave nothing behind.
    private mutating func compact() {
        if count == 0 {
            waiters = []
        } else if waiters.count > 2 * count + 64 {
            waiters = waiters.filter { !$0.hasLeft }[...]
        }
    }
}

extension WaiterList.Waiter: Sendable where Tag: Sendable {}
extension WaiterList: Sendable where Tag: Sendable {}

extension WaiterList {
    /// Suspends the task, which has joined a list, until it is taken out; returns `false` if its cancellation has taken it out.
    ///
    /// `register` calls ``suspend(_:_:)``, and `leave` calls ``remove(_:)``, both under the list's lock.
    package static func wait(
        isolation: isolated (any Actor)? = #isolation, _ register: (Suspension) -> Bool, onCancel leave: @Sendable () -> Waiter?
    ) async -> Bool {
        let isCanceled = Atomic(false)
        await StoreCore.suspend { suspension in
            if !register(suspension) { suspension.resume() }
        } onCancel: {
            guard let waiter = leave() else { return }
            isCanceled.store(true, ordering: .releasing)
            waiter.resume()
        }
        return !isCanceled.load(ordering: .acquiring)
    }
}
