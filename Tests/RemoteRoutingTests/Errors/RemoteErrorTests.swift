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

    @Test(arguments: [
        (RemoteError.Code.offline, nil, "You are offline."), (.connectionRefused, nil, "The server cannot be reached. Try again later."),
        (.idleTimedOut, nil, "The server takes too long. Try again later."),
        (.pinMismatch, nil, "The connection to the server is not secure."),
        (.badStatus, 401, "Sign in again."), (.badStatus, 404, "This is not available."),
        (.badStatus, 418, "The server does not accept this."),
        (.badStatus, 503, "The server has a problem. Try again later."),
        (.undecodable, 200, "The response of the server cannot be read. Try again later."), (.engineFailed, nil, "Something went wrong."),
    ])
    func `a notice is a sentence for people, without address and cause`(_ code: RemoteError.Code, _ status: Int?, _ notice: String) {
        var error = RemoteError(.transport, code, operation: "GET https://a.example/x", "the reason", underlyingError: CancellationError())
        error.status = status
        #expect(error.notice == notice)
        #expect(error.description.contains("a.example") && !error.notice.contains("a.example"))
    }
}
