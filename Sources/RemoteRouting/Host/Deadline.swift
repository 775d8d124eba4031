internal import StoreCore

/// The time for an operation is over.
struct DeadlinePassed: Error {}

/// Lets an operation run until a moment, and cancels it then.
///
/// Not inlined: its group would lie in the frames of those too who have no deadline to watch over.
///
/// - Parameters:
///   - deadline: The moment; `nil` waits for ever.
///   - time: The clock.
///   - operation: What to do; it must end soon after it is cancelled.
/// - Throws: ``DeadlinePassed``, or what the operation threw.
@inline(never)
func within<Value: Sendable>(
    _ deadline: MonotonicInstant?, of time: any TimeSource, _ operation: @escaping @Sendable () async throws -> Value
) async throws -> Value {
    guard let deadline else { return try await operation() }
    return try await withThrowingTaskGroup(of: Value?.self) { group in
        group.addTask { try await operation() }
        group.addTask {
            try await time.sleep(until: deadline)
            return nil
        }
        defer { group.cancelAll() }
        // Two children were added, so there is a first to end.
        guard let first = try await group.next(), let value = first else { throw DeadlinePassed() }
        return value
    }
}
