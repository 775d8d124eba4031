public import StoreCore
public import StoreOutbox

/// An origin for the commands of an outbox that returns answers from a test's script, and can hold the deliveries.
///
/// ```swift
/// let origin = ScriptedDeliveries<Like, Void>(
///     .failure(URLError(.timedOut)), .success(()))
/// await outbox.register(Like.self, patching: posts, at: \.post) { _, post in
///     post.isLiked = true
/// } perform: { command, delivery in
///     try await origin.perform(command, delivery)
/// }
/// outbox.start()
/// try await outbox.submit(Like(post: 7))
/// for await state in outbox.publish()
/// where state.commands.first?.attempts == 1 { break }
/// time.advance(by: .seconds(1))
/// try await origin.ended(count: 2)
/// #expect(Set(origin.deliveries.map(\.delivery.id)).count == 1)
/// ```
///
/// Give the outbox a ``ManualTime``; its advance ends the delays between the attempts. Hold a delivery with ``ScriptedOrigin/hold()`` to
/// examine the state while it runs. A delivery without an answer in the script throws ``StoreError/Code/unscriptedRequest``.
///
/// <doc:TestingYourStore> lists the tools for tests.
public final class ScriptedDeliveries<Value: Command & Hashable, Result: Sendable>: ScriptedOrigin {
    /// A delivered command with the identity of its delivery.
    public typealias Param = ScriptedDelivery<Value>
    /// The value that a successful delivery returns.
    public typealias Content = Result

    /// The answers and the recorded deliveries; use the methods of `ScriptedOrigin` instead.
    public let script: FetchScript<ScriptedDelivery<Value>, Result>

    /// Creates an origin that returns these answers, one for each delivery, in this order.
    ///
    /// - Parameters:
    ///   - answers: The answers; more can be enqueued.
    ///   - cancellation: The behavior of a delivery with a canceled task.
    public init(_ answers: ScriptedAnswer<Result>..., cancellation: ScriptedCancellation = .honored) {
        script = FetchScript(answers: answers, cancellation: cancellation, answering: nil)
    }

    /// Creates an origin that calls a closure for each answer.
    ///
    /// - Parameters:
    ///   - cancellation: The behavior of a held delivery with a canceled task; the closure handles its own cancellation.
    ///   - answering: Makes the answer after the delivery has left the gate; the delivery rethrows its errors.
    public init(
        cancellation: ScriptedCancellation = .honored,
        answering: @escaping @Sendable (ScriptedDelivery<Value>) async throws -> ScriptedAnswer<Result>
    ) {
        script = FetchScript(answers: [], cancellation: cancellation) { try await answering($0.param) }
    }

    /// Returns the next answer of the script.
    ///
    /// - Parameters:
    ///   - command: The command; recorded.
    ///   - delivery: The delivery; recorded.
    /// - Returns: The scripted result.
    /// - Throws: The scripted error; ``StoreError/Code/unscriptedRequest`` if the script has no answer; `CancellationError` as soon as the
    ///   task is canceled, unless the origin ignores cancellation.
    public func perform(_ command: Value, _ delivery: Delivery) async throws -> Result {
        let response = try await script.respond(to: .content(ScriptedDelivery(command: command, delivery: delivery), revalidating: nil))
        guard case .modified(let result, _, _) = response.result else {
            throw StoreError(.nothingToConfirm, "answering a delivery with .notModified: it carried no validator; answer with .success")
        }
        return result
    }

    /// Responds to a request with the script.
    public func respond(to request: OriginRequest<ScriptedDelivery<Value>>) async throws -> OriginResponse<Result> {
        try await script.respond(to: request)
    }

    /// All deliveries, in the order in which they began.
    public var deliveries: [ScriptedDelivery<Value>] { requests.map(\.param) }

    /// All delivered commands, in the order in which their deliveries began.
    public var commands: [Value] { deliveries.map(\.command) }
}

/// A delivery that a test's origin has received.
public struct ScriptedDelivery<Value: Command & Hashable>: Hashable, Sendable {
    /// The command that the outbox delivers.
    public let command: Value

    /// The identity of the command at the origin, and the number of this attempt.
    public let delivery: Delivery
}
