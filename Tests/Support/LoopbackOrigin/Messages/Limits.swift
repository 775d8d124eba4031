extension LoopbackOrigin {
    /// The limits on requests, connections, and the record.
    public struct Limits: Sendable, Hashable {
        /// The longest request line in bytes; a longer one is refused with 414.
        public var requestLine: Int
        /// The largest head in bytes; a larger one is refused with 431.
        public var head: Int
        /// The largest body in bytes; a larger one is refused with 413.
        public var body: Int

        /// The largest number of open connections; a further one is closed at once.
        public var connections: Int
        /// The longest time without a complete request, or without progress of a response; `nil` for any. A running handler may take longer.
        public var idle: Duration?
        /// The number of requests that the record keeps, and of refused ones; the oldest are forgotten.
        public var records: Int

        /// Makes limits, sizes in bytes; the defaults exceed every ordinary request.
        public init(
            requestLine: Int = 16_384, head: Int = 65_536, body: Int = 67_108_864, connections: Int = .max, idle: Duration? = nil,
            records: Int = .max
        ) {
            self.requestLine = requestLine
            self.head = head
            self.body = body
            self.connections = connections
            self.idle = idle
            self.records = records
        }
    }
}
