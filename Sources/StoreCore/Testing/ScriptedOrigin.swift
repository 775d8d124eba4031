public import StoreCore

/// The common operations of scripted fetchers: return scripted answers, hold fetches at a gate, count and record requests.
///
/// An answer goes to the next fetch that *leaves the gate*, not to the next fetch that begins. A fetch that is canceled while it is held
/// consumes no answer.
///
/// <doc:TestingYourStore> shows how to hold, script and count fetches.
public protocol ScriptedOrigin<Param, Content>: Origin {
    // Redeclared, so that they can be used in `some ScriptedOrigin<Int, String>`.
    /// The key of one piece of data.
    associatedtype Param
    /// The type of the data that the answers contain.
    associatedtype Content

    /// The answers and the recorded requests, which the methods of this protocol read and change.
    var script: FetchScript<Param, Content> { get }
}

// MARK: Answers

extension ScriptedOrigin {
    /// Adds answers after the remaining ones.
    ///
    /// - Parameter answers: One answer for each fetch that leaves the gate, in this order. The fetcher's closure is called only after all
    ///   answers are used.
    public func enqueue(_ answers: ScriptedAnswer<Content>...) {
        script.state.update { $0.answers += answers }
    }

    /// The behavior of a fetch whose task is canceled; a change applies to later cancellations.
    public var cancellation: ScriptedCancellation {
        get { script.state.read { $0.cancellation } }
        nonmutating set { script.state.update { $0.cancellation = newValue } }
    }
}

// MARK: The gate

extension ScriptedOrigin {
    /// Closes the gate: every later fetch is recorded and then held.
    public func hold() {
        script.state.update { $0.isHolding = true }
    }

    /// Opens the gate: the held fetches continue and receive the script's answers in the order in which they began.
    public func release() {
        for resume in script.state.update({ $0.release() }) { resume() }
    }

    /// Waits until `count` fetches are held, then releases the oldest ones; the gate stays closed for the others.
    ///
    /// - Parameters:
    ///   - count: The number of fetches.
    ///   - timeout: The longest wait, in real time.
    ///   - fileID: The file of the wait, for the error.
    ///   - line: The line of the wait, for the error.
    /// - Throws: ``StoreError/Code/waitTimedOut`` after the timeout, `CancellationError` as soon as the waiting task is canceled.
    public func release(
        next count: Int, timeout: Duration = .seconds(120), fileID: String = #fileID, line: Int = #line
    ) async throws {
        let wait = TestWait(subject: "\(count) held fetches", timeout: timeout, fileID: fileID, line: line)
        let released = try await script.state.take(wait) { state in
            let held = state.held
            return held.count < count ? nil : held.prefix(count).compactMap { state.release($0, with: nil) }
        }
        for resume in released { resume() }
    }

    /// Waits until a fetch is held, then releases the oldest one with this answer, in place of the script's next answer.
    ///
    /// Timeout, place and errors are those of ``ScriptedOrigin/release(next:timeout:fileID:line:)``.
    public func answerNext(
        with answer: ScriptedAnswer<Content>, timeout: Duration = .seconds(120), fileID: String = #fileID, line: Int = #line
    ) async throws {
        let wait = TestWait(subject: "a held fetch", timeout: timeout, fileID: fileID, line: line)
        let resume = try await script.state.take(wait) { state in state.held.first.flatMap { state.release($0, with: answer) } }
        resume()
    }

    /// Waits until the fetch with this number, from 1, is held, then releases it with this answer, in place of the script's next answer.
    ///
    /// Timeout, place and errors are those of ``ScriptedOrigin/release(next:timeout:fileID:line:)``; the call also throws
    /// ``StoreError/Code/notHeld`` if the fetch has already left the gate.
    public func answer(
        _ number: Int, with answer: ScriptedAnswer<Content>, timeout: Duration = .seconds(120), fileID: String = #fileID, line: Int = #line
    ) async throws {
        let wait = TestWait(subject: "fetch \(number) at the gate", timeout: timeout, fileID: fileID, line: line)
        let released = try await script.state.take(wait) { state -> Result<ScriptState<Param, Content>.Release, StoreError>? in
            if state.hasPassed(number) {
                return .failure(StoreError(.notHeld, "answering fetch \(number): it has left the gate; call hold() before it begins"))
            }
            return state.release(number, with: answer).map { .success($0) }
        }
        try released.get()()
    }
}

// MARK: Counts

extension ScriptedOrigin {
    /// All requests, in the order in which their fetches began.
    public var requests: [ScriptedRequest<Param>] { script.state.read { $0.requests } }

    /// The number of fetches that have begun.
    public var startedCount: Int { script.state.read { $0.requests.count } }

    /// The number of fetches that have returned or thrown.
    public var endedCount: Int { script.state.read { $0.endedCount } }

    /// The number of fetches that were canceled before they ended, including fetches that ignored it.
    public var cancelledCount: Int { script.state.read { $0.cancelledCount } }

    /// The number of fetches that have begun and not ended, including held ones.
    public var runningCount: Int { script.state.read { $0.runningCount } }

    /// The number of fetches held at the gate.
    public var heldCount: Int { script.state.read { $0.held.count } }

    /// Waits until `count` fetches have begun since the fetcher was created, without polling.
    ///
    /// Timeout, place and errors are those of ``ScriptedOrigin/release(next:timeout:fileID:line:)``.
    public func started(
        count: Int, timeout: Duration = .seconds(120), fileID: String = #fileID, line: Int = #line
    ) async throws {
        try await script.state.wait(for: "\(count) begun fetches", timeout, fileID, line) { $0.requests.count >= count }
    }

    /// Waits until `count` fetches have ended since the fetcher was created, without polling.
    ///
    /// Timeout, place and errors are those of ``ScriptedOrigin/release(next:timeout:fileID:line:)``.
    public func ended(
        count: Int, timeout: Duration = .seconds(120), fileID: String = #fileID, line: Int = #line
    ) async throws {
        try await script.state.wait(for: "\(count) ended fetches", timeout, fileID, line) { $0.endedCount >= count }
    }

    /// Waits until the tasks of `count` fetches have been canceled, without polling.
    ///
    /// Timeout, place and errors are those of ``ScriptedOrigin/release(next:timeout:fileID:line:)``.
    public func cancelled(
        count: Int, timeout: Duration = .seconds(120), fileID: String = #fileID, line: Int = #line
    ) async throws {
        try await script.state.wait(for: "\(count) canceled fetches", timeout, fileID, line) { $0.cancelledCount >= count }
    }
}
