/// What every scripted fetcher can do: give scripted answers, hold fetches at a gate, count and record them.
///
/// An answer belongs to the fetch that *leaves the gate* next, not to the one that began next: a fetch that is cancelled while it is
/// held uses none up.
public protocol ScriptedOrigin<Param, Content>: Origin {
    // Declared again, so that they can be named in `some ScriptedOrigin<Int, String>`.
    /// The key of one piece of data.
    associatedtype Param
    /// The data itself.
    associatedtype Content

    /// What the fetcher keeps.
    var script: FetchScript<Param, Content> { get }
}

// MARK: Answers

extension ScriptedOrigin {
    /// Adds answers behind those that are still to be given.
    ///
    /// - Parameter answers: One for each fetch that leaves the gate, in this order; they go before the closure.
    public func enqueue(_ answers: ScriptedAnswer<Content>...) {
        script.state.update { $0.enqueue(answers) }
    }

    /// What a fetch does when its task is cancelled; a change holds for cancellations from now on.
    public var cancellation: ScriptedCancellation {
        get { script.state.read { $0.cancellation } }
        nonmutating set { script.state.update { $0.cancellation = newValue } }
    }
}

// MARK: The gate

extension ScriptedOrigin {
    /// Closes the gate: every fetch that begins from now on is recorded and then held.
    public func hold() {
        script.state.update { $0.hold() }
    }

    /// Opens the gate: the held fetches go on, and the script's answers go to them in the order in which they began.
    public func release() {
        for action in script.state.update({ $0.release() }) { action.perform() }
    }

    /// Waits until `count` fetches are held, then lets the oldest ones go; the gate stays closed for the others.
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
        let state = script.state
        let wait = TestWait(subject: "\(count) held fetches", timeout: timeout, fileID: fileID, line: line)
        while true {
            let actions = state.update { state in
                let held = state.held
                return held.count < count ? nil : held.prefix(count).map { state.release($0, with: nil) }
            }
            if let actions { return actions.forEach { $0.perform() } }
            try await script.wait(wait) { $0.held.count >= count ? () : nil }
        }
    }

    /// Waits until a fetch is held, then lets the oldest one go with this answer.
    ///
    /// - Parameters:
    ///   - answer: What the fetch returns or throws, in place of the script's next answer.
    ///   - timeout: The longest wait, in real time.
    ///   - fileID: The file of the wait, for the error.
    ///   - line: The line of the wait, for the error.
    /// - Throws: ``StoreError/Code/waitTimedOut`` after the timeout, `CancellationError` as soon as the waiting task is canceled.
    public func answerNext(
        with answer: ScriptedAnswer<Content>, timeout: Duration = .seconds(120), fileID: String = #fileID, line: Int = #line
    ) async throws {
        let state = script.state
        let wait = TestWait(subject: "a held fetch", timeout: timeout, fileID: fileID, line: line)
        while true {
            let action = state.update { state in
                state.held.first.map { state.release($0, with: answer) }
            }
            if let action { return action.perform() }
            try await script.wait(wait) { $0.held.isEmpty ? nil : () }
        }
    }

    /// Waits until the fetch of this number is held, then lets it go with this answer.
    ///
    /// - Parameters:
    ///   - number: The number of the request, from 1.
    ///   - answer: What the fetch returns or throws, in place of the script's next answer.
    ///   - timeout: The longest wait, in real time.
    ///   - fileID: The file of the wait, for the error.
    ///   - line: The line of the wait, for the error.
    /// - Throws: ``StoreError/Code/notHeld`` where the fetch has left the gate already, ``StoreError/Code/waitTimedOut`` after the
    ///   timeout, `CancellationError` as soon as the waiting task is canceled.
    public func answer(
        _ number: Int, with answer: ScriptedAnswer<Content>, timeout: Duration = .seconds(120), fileID: String = #fileID, line: Int = #line
    ) async throws {
        let state = script.state
        let wait = TestWait(subject: "fetch \(number) at the gate", timeout: timeout, fileID: fileID, line: line)
        while true {
            let (action, hasPassed) = state.update { state in
                state.isHeld(number) ? (state.release(number, with: answer), false) : (nil, state.hasPassed(number))
            }
            if let action { return action.perform() }
            guard !hasPassed else {
                throw StoreError(.notHeld, "answering fetch \(number): it has left the gate; call hold() before it begins")
            }
            try await script.wait(wait) { $0.isHeld(number) || $0.hasPassed(number) ? () : nil }
        }
    }
}

// MARK: Counts

extension ScriptedOrigin {
    /// Every request so far, in the order in which the fetches began.
    public var requests: [ScriptedRequest<Param>] { script.state.read { $0.requests } }

    /// How many fetches have begun so far.
    public var startedCount: Int { script.state.read { $0.requests.count } }

    /// How many fetches have ended so far: returned or thrown.
    public var endedCount: Int { script.state.read { $0.endedCount } }

    /// How many fetches so far saw their task cancelled before they ended, whether they honoured it or not.
    public var cancelledCount: Int { script.state.read { $0.cancelledCount } }

    /// How many fetches have begun and not ended.
    public var runningCount: Int { script.state.read { $0.runningCount } }

    /// How many fetches are held at the gate.
    public var heldCount: Int { script.state.read { $0.held.count } }

    /// Waits until so many fetches have begun since the fetcher was made; no polling.
    ///
    /// - Parameters:
    ///   - count: The least number of fetches.
    ///   - timeout: The longest wait, in real time.
    ///   - fileID: The file of the wait, for the error.
    ///   - line: The line of the wait, for the error.
    /// - Throws: ``StoreError/Code/waitTimedOut`` after the timeout, `CancellationError` as soon as the waiting task is canceled.
    public func started(
        count: Int, timeout: Duration = .seconds(120), fileID: String = #fileID, line: Int = #line
    ) async throws {
        let wait = TestWait(subject: "\(count) begun fetches", timeout: timeout, fileID: fileID, line: line)
        try await script.wait(wait) { $0.requests.count >= count ? () : nil }
    }

    /// Waits until so many fetches have ended since the fetcher was made; no polling.
    ///
    /// - Parameters:
    ///   - count: The least number of fetches.
    ///   - timeout: The longest wait, in real time.
    ///   - fileID: The file of the wait, for the error.
    ///   - line: The line of the wait, for the error.
    /// - Throws: ``StoreError/Code/waitTimedOut`` after the timeout, `CancellationError` as soon as the waiting task is canceled.
    public func ended(
        count: Int, timeout: Duration = .seconds(120), fileID: String = #fileID, line: Int = #line
    ) async throws {
        let wait = TestWait(subject: "\(count) ended fetches", timeout: timeout, fileID: fileID, line: line)
        try await script.wait(wait) { $0.endedCount >= count ? () : nil }
    }

    /// Waits until so many fetches have seen their task cancelled; no polling.
    ///
    /// - Parameters:
    ///   - count: The least number of fetches.
    ///   - timeout: The longest wait, in real time.
    ///   - fileID: The file of the wait, for the error.
    ///   - line: The line of the wait, for the error.
    /// - Throws: ``StoreError/Code/waitTimedOut`` after the timeout, `CancellationError` as soon as the waiting task is canceled.
    public func cancelled(
        count: Int, timeout: Duration = .seconds(120), fileID: String = #fileID, line: Int = #line
    ) async throws {
        let wait = TestWait(subject: "\(count) canceled fetches", timeout: timeout, fileID: fileID, line: line)
        try await script.wait(wait) { $0.cancelledCount >= count ? () : nil }
    }
}
