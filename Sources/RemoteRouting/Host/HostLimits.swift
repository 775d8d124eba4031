/// How much a host may send and how much is asked of it at once.
public struct HostLimits: Hashable, Sendable {
    /// How many bytes an answer may have that is decoded or returned as a whole, once unpacked.
    public var responseBytes: Int
    /// How many bytes that nobody has read yet are held in memory.
    public var memoryBytes: Int
    /// How many unread bytes may lie in a temporary file beyond that.
    public var spillBytes: Int
    /// How many exchanges run at once; further ones wait in order.
    public var concurrentExchanges: Int
    /// How many redirects of one request are followed.
    public var redirects: Int

    /// Makes limits.
    ///
    /// - Parameters:
    ///   - responseBytes: How many bytes an answer may have, once unpacked.
    ///   - memoryBytes: How many unread bytes are held in memory.
    ///   - spillBytes: How many unread bytes may lie in a temporary file.
    ///   - concurrentExchanges: How many exchanges run at once; at least one.
    ///   - redirects: How many redirects of one request are followed.
    public init(
        responseBytes: Int = 16 << 20, memoryBytes: Int = 1 << 20, spillBytes: Int = 1 << 30, concurrentExchanges: Int = 32,
        redirects: Int = 20
    ) {
        self.responseBytes = responseBytes
        self.memoryBytes = memoryBytes
        self.spillBytes = spillBytes
        self.concurrentExchanges = concurrentExchanges
        self.redirects = redirects
    }
}
