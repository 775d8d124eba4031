internal import CHeapUsage

/// What the process holds on the heap.
enum HeapUsage {
    /// Bytes allocated and not freed: malloc's own statistics, because resident memory counts what was freed and kept.
    static var bytes: Double { Double(heap_usage_bytes()) }

    /// Whether this allocator tells.
    static var isKnown: Bool { bytes > 0 }

    /// What is held when `body` has ended more than when it began.
    static func growth(_ body: () async throws -> Void) async rethrows -> Double {
        let before = bytes
        try await body()
        return bytes - before
    }
}
