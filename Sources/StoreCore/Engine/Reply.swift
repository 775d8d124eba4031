/// Where somebody finds an answer, and waits for it if it is not there yet.
///
/// The answer lies under a lock and does not come with the continuation, whose way the thread sanitizer cannot follow.
final class Reply<Answer: Sendable>: Sendable {
    private enum Slot {
        case open
        // Whoever leaves this case resumes it.
        case awaited(Suspension)
        case answered(Answer)
    }

    private let slot = Lock(Slot.open)

    /// Whether somebody is suspended until the answer is there.
    var isAwaited: Bool {
        slot.withLock { if case .awaited = $0 { true } else { false } }
    }

    /// Answers; the first answer counts.
    func put(_ answer: Answer) {
        let waiting = slot.withLock { slot -> Suspension? in
            switch slot {
            case .open:
                slot = .answered(answer)
                return nil
            case .awaited(let waiting):
                slot = .answered(answer)
                return waiting
            case .answered:
                return nil
            }
        }
        waiting?.resume()
    }

    /// Resumes a task when the answer is there.
    func wait(_ suspension: Suspension) {
        let isAnswered = slot.withLock { slot in
            if case .answered = slot { return true }
            slot = .awaited(suspension)
            return false
        }
        if isAnswered { suspension.resume() }
    }

    func take() -> Answer {
        guard case .answered(let answer) = slot.withLock({ $0 }) else { preconditionFailure("somebody was woken without an answer") }
        return answer
    }
}

extension Reply {
    /// Suspends until the answer is there.
    ///
    /// - Parameters:
    ///   - isolation: The caller's actor, which is not left.
    ///   - giveUp: What the cancellation of the task does, also where it came before; it must see to it that there is an answer.
    /// - Returns: The answer.
    func value(isolation: isolated (any Actor)? = #isolation, onCancel giveUp: @Sendable () -> Void) async -> Answer {
        await withTaskCancellationHandler {
            // Without the capture the closure runs on no actor, and each wait of an actor's caller costs two hops.
            _ = isolation
            await suspend { wait($0) }
        } onCancel: {
            giveUp()
        }
        return take()
    }
}
