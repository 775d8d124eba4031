import StoreCore
import Testing

@testable import RemoteRouting

/// Errors that no exchange has completed.
struct RemoteErrorTests {
    @Test func `H7: a new error is not retryable unless its request may be repeated`() {
        var error = RemoteError(.transport, .connectionLost, operation: "GET /x", "lost")
        #expect(!error.mayRepeat && !error.isRetryable && error.failureKind == .permanent)
        error.mayRepeat = true
        #expect(error.isRetryable && error.failureKind == .transient)
    }
}
