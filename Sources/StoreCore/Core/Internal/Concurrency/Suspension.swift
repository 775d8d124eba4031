/// The continuation of a suspended task; the code that takes it out of its list resumes it, once.
///
/// Debug builds check the single resumption. In release builds the check would cost an allocation for each state that an observer receives,
/// and for each of thousands of callers. The thread sanitizer needs the checked form as well: it cannot see the synchronization inside the
/// runtime, and reports a race if an unchecked continuation is resumed just before its task suspends.
#if DEBUG
@usableFromInline package typealias Suspension = CheckedContinuation<Void, Never>
#else
@usableFromInline package typealias Suspension = UnsafeContinuation<Void, Never>
#endif

/// Suspends the task until another task resumes it, without regard to cancellation.
@inlinable
@inline(__always)
package func suspend(isolation: isolated (any Actor)? = #isolation, _ begin: (Suspension) -> Void) async {
    #if DEBUG
    await withCheckedContinuation(isolation: isolation, begin)
    #else
    await withUnsafeContinuation(isolation: isolation, begin)
    #endif
}

/// Suspends the task until another task resumes it. The cancellable waits use this function.
///
/// The waits of observers and of callers for content repeat its body, because the closures of this function add two frames to a waiting
/// task. The task then needs another kilobyte.
///
/// `onCancel` runs before `begin` if the task is canceled already; it must ensure that the task is resumed.
package func suspend(
    isolation: isolated (any Actor)? = #isolation, _ begin: (Suspension) -> Void, onCancel: @Sendable () -> Void
) async {
    await withTaskCancellationHandler {
        // Capturing the isolation keeps the closure on the caller's actor; otherwise each wait on an actor costs two hops.
        _ = isolation
        await suspend(begin)
    } onCancel: {
        onCancel()
    }
}
