/// What a scripted fetcher keeps: its answers, its requests and its gate; used through the methods of `ScriptedOrigin`.
public final class FetchScript<Param: Hashable & Sendable, Content: Sendable>: Sendable {
    /// What makes the answers that no list of answers gives.
    typealias Answering = @Sendable (ScriptedRequest<Param>) async throws -> ScriptedAnswer<Content>

    /// One lock guards all of it; fetches are resumed outside it.
    let state: WatchedState<ScriptState<Param, Content>>
    private let answering: Answering?

    init(answers: [ScriptedAnswer<Content>], cancellation: ScriptedCancellation, answering: Answering?) {
        state = WatchedState(ScriptState(answers: answers, cancellation: cancellation))
        self.answering = answering
    }

    /// Runs one fetch: records it, holds it, answers it.
    func respond(
        to request: OriginRequest<Param>, isolation: isolated (any Actor)? = #isolation
    ) async throws -> OriginResponse<Content> {
        let ticket = state.update { $0.makeTicket() }
        return try await withTaskCancellationHandler {
            // Captured, for else the closure runs on no actor, and fetches on one actor would not begin in order.
            _ = isolation
            // The number is known once the fetch has begun, which is before the gate lets it pass.
            var number = 0
            defer { state.update { $0.end(ticket: ticket) } }
            let answer = try await withCheckedThrowingContinuation { passage in
                let begun = state.update { state in
                    state.begin(request, ticket: ticket, isCancelled: Task.isCancelled, passage: passage)
                }
                number = begun.number
                begun.action.perform()
            }
            if let answer { return try answer.result.get() }
            return try await ask(ScriptedRequest(number: number, request: request))
        } onCancel: {
            state.update { $0.cancel(ticket: ticket) }.perform()
        }
    }

    /// Waits until `condition` returns a value; a timeout shows the requests so far.
    func wait<Value: Sendable>(
        _ wait: TestWait, isolation: isolated (any Actor)? = #isolation,
        until condition: @escaping @Sendable (ScriptState<Param, Content>) -> Value?
    ) async throws -> Value {
        try await state.wait(wait, history: { $0.history }, until: condition)
    }

    private func ask(_ request: ScriptedRequest<Param>) async throws -> OriginResponse<Content> {
        guard let answering else {
            throw StoreError(
                .unscriptedRequest,
                "answering fetch \(request.number), \(request.request): the script has no answer left;"
                    + " enqueue one, answer the held fetch, or make the fetcher with a closure")
        }
        return try await answering(request).result.get()
    }
}

extension StoreError.Code {
    /// A scripted fetcher was asked for more than its script has answers for.
    public static let unscriptedRequest = StoreError.Code(rawValue: "unscriptedRequest")
    /// A fetch that was to be released or answered by hand is not held any longer.
    public static let notHeld = StoreError.Code(rawValue: "notHeld")
    /// A recording ended before a matching state came.
    public static let recordingEnded = StoreError.Code(rawValue: "recordingEnded")
    /// A wait of the testing kit reached its timeout; the message shows what came until then.
    public static let waitTimedOut = StoreError.Code(rawValue: "waitTimedOut")
}
