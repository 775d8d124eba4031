#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The share of the process's file descriptors that leases and watches may hold (D10).
enum DescriptorShare {
    /// The permits for leases: three quarters of the share.
    static let leases = Permits(leaseCount)
    /// The permits for watches, where each watch holds a descriptor.
    static let watches = Permits(max(2, total - leaseCount))

    static var leaseCount: Int { max(1, total - total / 4) }

    /// 64 descriptors, or an eighth of the process's limit if that is less; read once.
    static let total = total(of: descriptorLimit())

    static func total(of limit: UInt64) -> Int { Int(min(64, max(8, limit / 8))) }

    private static func descriptorLimit() -> UInt64 {
        var limit = rlimit()
        #if canImport(Glibc)
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        #else
        let resource = RLIMIT_NOFILE
        #endif
        // A process without a known limit gets the share of a small one.
        return getrlimit(resource, &limit) == 0 ? UInt64(limit.rlim_cur) : 256
    }
}

/// A fetch that waits for its turn to get a lease.
enum LeaseTurn {
    /// The key of the fetch; set by the store.
    @TaskLocal static var key: FetchedKey?

    /// Waits for a permit, in the order of the calls.
    ///
    /// Another fetch may wait for this one, and hold a permit until it ends: then the two would wait for each other. So this fetch waits no
    /// longer once another fetch waits for it, and never longer than the lease would last.
    ///
    /// - Parameters:
    ///   - permits: The permits.
    ///   - duration: The longest wait.
    /// - Returns: The permit; `nil` if the fetch must go on without a lease.
    /// - Throws: `CancellationError` as soon as the task is canceled.
    static func take(_ permits: Permits, within duration: Duration) async throws -> Permits.Permit? {
        try Task.checkCancellation()
        if let permit = permits.takeIfFree() { return permit }
        let waiting = Task { try await permits.take() }
        let timer = Task {
            // A canceled sleep means that the wait has ended.
            guard (try? await Task.sleep(for: min(duration, Duration.seconds(86_400)), clock: .suspending)) != nil else { return }
            waiting.cancel()
        }
        defer { timer.cancel() }
        key?.onAwaited { waiting.cancel() }
        defer { key?.onAwaited(nil) }
        // Only the timer, another fetch, or the cancellation ends the wait without a permit.
        let permit = await withTaskCancellationHandler {
            try? await waiting.value
        } onCancel: {
            waiting.cancel()
        }
        try Task.checkCancellation()
        return permit
    }
}
