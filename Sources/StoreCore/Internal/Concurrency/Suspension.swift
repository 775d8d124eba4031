/// What a suspended task waits on; whoever takes it out of where it is kept resumes it, once.
///
/// In debug builds that is checked. In release builds a check would be an allocation for each state that an observer sees, and for each of
/// thousands of callers. The thread sanitizer, too, needs the checked one: where an unsafe one is resumed just before its task waits, it
/// takes what that task does next for a race, for the runtime's own synchronisation is hidden from it.
#if DEBUG
@usableFromInline typealias Suspension = CheckedContinuation<Void, Never>
#else
@usableFromInline typealias Suspension = UnsafeContinuation<Void, Never>
#endif

/// Suspends the task until it is resumed.
///
/// - Parameters:
///   - isolation: The caller's actor, which is not left.
///   - body: Puts what the task waits on where somebody will resume it.
@inlinable
@inline(__always)
func suspend(isolation: isolated (any Actor)? = #isolation, _ body: (Suspension) -> Void) async {
    #if DEBUG
    await withCheckedContinuation(isolation: isolation, body)
    #else
    await withUnsafeContinuation(isolation: isolation, body)
    #endif
}
