public import StoreCore

/// The state of a scripted fetcher: its answers, its requests and its gate. Use it through the methods of `ScriptedOrigin`.
public final class FetchScript<Param: Hashable & Sendable, Content: Sendable>: Sendable {
    /// Makes the answer to a request for which the script has no enqueued answer.
    typealias Answering = @Sendable (ScriptedRequest<Param>) async throws -> ScriptedAnswer<Content>

    /// One lock guards the whole state; fetches are resumed outside it.
    let state: WatchedState<ScriptState<Param, Content>>
    private let answering: Answering?

    init(answers: [ScriptedAnswer<Content>], cancellation: ScriptedCancellation, answering: Answering?) {
        state = WatchedState(ScriptState(answers: answers, cancellation: cancellation))
        self.answering = answering
    }

    /// Runs one fetch: records it, holds it at the gate, and returns its answer.
    func respond(
        to request: OriginRequest<Param>, isolation: isolated (any Actor)? = #isolation
    ) async throws -> OriginResponse<Content> {
        let number = state.update { $0.begin(request, isCancelled: Task.isCancelled) }
        defer { state.update { $0.end(number) } }
        return try await withTaskCancellationHandler {
            // Capturing the isolation keeps the closure on the caller's actor.
            _ = isolation
            await suspend { suspension in
                if !state.update({ $0.suspend(number, suspension) }) { suspension.resume() }
            }
            if let answer = try state.read({ $0.passage(of: number) }).get() { return try answer.result.get() }
            return try await callClosure(ScriptedRequest(number: number, request: request))
        } onCancel: {
            state.update { $0.cancel(number) }?()
        }
    }

    private func callClosure(_ request: ScriptedRequest<Param>) async throws -> OriginResponse<Content> {
        guard let answering else {
            state.update { _ = $0.unanswered.insert(request.number) }
            var error = StoreError(
                .unscriptedRequest,
                "answering fetch \(request.number), \(request.request): the script has no answer left;"
                    + " enqueue one, answer the held fetch, or create the fetcher with a closure")
            // A retry would find no answer either, and wait for a time that nothing advances.
            error.isRepeatable = false
            throw error
        }
        return try await answering(request).result.get()
    }
}

extension StoreError.Code {
    /// A scripted fetcher received a request for which its script has no answer.
    public static let unscriptedRequest = StoreError.Code(rawValue: "unscriptedRequest")
    /// A fetch to release or answer is no longer held.
    public static let notHeld = StoreError.Code(rawValue: "notHeld")
    /// A recording ended before a matching state arrived.
    public static let recordingEnded = StoreError.Code(rawValue: "recordingEnded")
    /// A wait of a test tool timed out; the message lists everything recorded until then.
    public static let waitTimedOut = StoreError.Code(rawValue: "waitTimedOut")
}
