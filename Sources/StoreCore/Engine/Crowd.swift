/// Callers who wait for the same answer: of thousands who want one key's content at once, its machine sees a single one.
///
/// The crowd lies under a lock of its own, which may be taken while the engine's is held and never the other way round.
final class Crowd<Answer: Sendable>: Sendable {
    /// Where one of them is found.
    typealias Seat = Int

    private enum Member {
        /// He has left; whoever comes next takes his seat, and after him the one behind it.
        case nobody(behind: Seat?)
        /// He is here, and not suspended yet.
        case present
        // Whoever leaves this case resumes it.
        case waiting(Suspension)
        case cancelled
    }

    private struct State {
        var members: [Member] = []
        var count = 0
        /// The seat that was left last. Seats are taken again, for those who come and give up while one waits may be any number.
        var free: Seat?
        var answer: Answer?
    }

    /// The one as whom the machine knows them.
    let id: CallerID
    /// What a member is told whose task was cancelled.
    private let cancellation: Answer
    /// Called when the last member has given up, without the crowd's lock.
    private let onEmpty: @Sendable (Crowd) -> Void
    private let state = Lock(State())

    init(_ id: CallerID, cancellation: Answer, onEmpty: @escaping @Sendable (Crowd) -> Void) {
        self.id = id
        self.cancellation = cancellation
        self.onEmpty = onEmpty
    }

    /// How many are still here; more may come as long as there is no answer.
    var count: Int { state.withLock { $0.count } }

    /// How many seats there are, taken or not.
    var seats: Int { state.withLock { $0.members.count } }

    /// How many are suspended until the answer is there.
    var awaiting: Int {
        state.withLock { $0.members.count { if case .waiting = $0 { true } else { false } } }
    }

    func join() -> Seat {
        state.withLock { state in
            state.count += 1
            if let seat = state.free, case .nobody(let behind) = state.members[seat] {
                state.members[seat] = .present
                state.free = behind
                return seat
            }
            state.members.append(.present)
            return state.members.count - 1
        }
    }

    /// Resumes a task when there is an answer for this seat.
    func wait(at seat: Seat, _ suspension: Suspension) {
        let waits = state.withLock { state in
            guard state.answer == nil, case .present = state.members[seat] else { return false }
            state.members[seat] = .waiting(suspension)
            return true
        }
        if !waits { suspension.resume() }
    }

    /// Lets a member go who no longer wants the answer; with the last one the crowd goes.
    func giveUp(_ seat: Seat) {
        if leave(seat) { onEmpty(self) }
    }

    /// Lets a member go; does nothing where the answer is there already.
    ///
    /// - Returns: Whether nobody is left.
    func leave(_ seat: Seat) -> Bool {
        let (waiting, isLast) = state.withLock { state -> (Suspension?, Bool) in
            guard state.answer == nil else { return (nil, false) }
            let member = state.members[seat]
            state.members[seat] = .cancelled
            state.count -= 1
            let isLast = state.count == 0
            if case .waiting(let suspension) = member { return (suspension, isLast) } else { return (nil, isLast) }
        }
        waiting?.resume()
        return isLast
    }

    /// Answers everybody, in the order of their seats.
    func put(_ answer: Answer) {
        let members = state.withLock { state in
            state.answer = answer
            return state.members
        }
        for case .waiting(let suspension) in members { suspension.resume() }
    }

    /// What a member was woken with.
    func take(_ seat: Seat) -> Answer {
        state.withLock { state in
            if case .cancelled = state.members[seat] {
                // After the answer nobody comes any longer.
                if state.answer == nil {
                    state.members[seat] = .nobody(behind: state.free)
                    state.free = seat
                }
                return cancellation
            }
            guard let answer = state.answer else { preconditionFailure("a member of a crowd was woken without an answer") }
            return answer
        }
    }
}
