import StoreCore
import Testing

@testable import RemoteRouting

/// Errors that no exchange has completed.
struct RemoteErrorTests {
    @Test(arguments: [
        (RemoteError.Stage.build, false), (.transport, false), (.status, true), (.decode, true), (.timeout, false), (.cancelled, false),
    ])
    func `W2: a new error reports arrival only in a stage with a response`(_ stage: RemoteError.Stage, _ mayHaveArrived: Bool) {
        #expect(RemoteError(stage, .connectionLost, operation: "GET /x", "lost").mayHaveArrived == mayHaveArrived)
    }

    @Test func `H7: a new error is not retryable unless its request may be repeated`() {
        var error = RemoteError(.transport, .connectionLost, operation: "GET /x", "lost")
        #expect(!error.mayRepeat && !error.isRetryable && error.failureKind == .permanent)
        error.mayRepeat = true
        #expect(error.isRetryable && error.failureKind == .transient)
    }
}
