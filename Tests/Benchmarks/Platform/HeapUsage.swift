internal import CHeapUsage

/// The heap usage of the process.
enum HeapUsage {
    /// The allocated bytes according to malloc's own statistics, because resident memory includes freed memory.
    static var bytes: Double { Double(heap_usage_bytes()) }

    /// Whether this allocator has statistics.
    static var isKnown: Bool { bytes > 0 }

    /// Returns the growth of the heap during `body`.
    static func growth(_ body: () async throws -> Void) async rethrows -> Double {
        let before = bytes
        try await body()
        return bytes - before
    }
}
