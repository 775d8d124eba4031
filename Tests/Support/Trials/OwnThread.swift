internal import Foundation

/// Runs work that blocks its thread, on a thread of its own.
///
/// The pool has few threads. While a test blocks them, no other test makes progress, and the time limits of their waits pass.
public func onOwnThread<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in Thread { continuation.resume(with: Result { try work() }) }.start() }
}
