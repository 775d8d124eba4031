internal import StoreCore

extension RouteCall {
    /// The permits that the caller of an interceptor holds.
    @TaskLocal private static var held: [Permits] = []

    private var isStream: Bool { if case .stream = delivery { true } else { false } }

    /// The permits from which the call takes one for each exchange.
    var gate: Permits { isStream ? host.streamGate : host.gate }

    /// Waits for a permit of the host; returns `nil` for a call that an interceptor makes while its own stream has a permit.
    ///
    /// - Throws: ``RemoteError`` that names the limit if a stream waits longer than a head may take; `DeadlinePassed`.
    @inline(never)
    func permit() async throws -> Permits.Permit? {
        // Such a call would wait for itself.
        let gate = gate
        if RouteCall.held.contains(where: { $0 === gate }) { return nil }
        sent.withLock { $0.isQueued = true }
        // Streams have no end that a further stream could rely on, and often no overall deadline.
        let limit = isStream ? limits.head.map { host.time.now.advanced(by: $0) } : nil
        let end = [keepsOwnDeadline ? deadline : nil, limit].compactMap { $0 }.min()
        do {
            let permit = try await within(end, of: host.time) { try await gate.take() }
            sent.withLock { $0.isQueued = false }
            return permit
        } catch is DeadlinePassed where end == limit {
            throw error(.timeout, .headTimedOut, request, limitReached)
        }
    }

    /// Runs an operation of an interceptor. Its calls need no permit that this call already has.
    func holdingPermit<Value>(_ operation: () async throws -> Value) async rethrows -> Value {
        guard isStream else { return try await operation() }
        return try await RouteCall.$held.withValue(RouteCall.held + [gate], operation: operation)
    }

    /// The message of a call that found no place.
    var limitReached: String {
        isStream
            ? "all \(host.limits.concurrentStreams) streams of the host are open; end one of them, or raise limits.concurrentStreams"
            : "all \(host.limits.concurrentExchanges) exchanges of the host were in use until the deadline; try again later, or raise "
                + "limits.concurrentExchanges"
    }
}
