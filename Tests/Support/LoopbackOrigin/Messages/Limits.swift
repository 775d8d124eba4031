extension LoopbackOrigin {
    /// How much a request may bring before it is refused.
    public struct Limits: Sendable, Hashable {
        /// The longest request line in bytes; beyond it the answer is 414.
        public var requestLine: Int
        /// The largest head in bytes; beyond it the answer is 431.
        public var head: Int
        /// The largest body in bytes; beyond it the answer is 413.
        public var body: Int

        /// Limits in bytes that no honest request meets.
        public init(requestLine: Int = 16_384, head: Int = 65_536, body: Int = 67_108_864) {
            self.requestLine = requestLine
            self.head = head
            self.body = body
        }
    }
}
