extension LoopbackOrigin {
    /// The limits on the size of a request.
    public struct Limits: Sendable, Hashable {
        /// The longest request line in bytes; a longer one is refused with 414.
        public var requestLine: Int
        /// The largest head in bytes; a larger one is refused with 431.
        public var head: Int
        /// The largest body in bytes; a larger one is refused with 413.
        public var body: Int

        /// Makes limits in bytes; the defaults exceed every ordinary request.
        public init(requestLine: Int = 16_384, head: Int = 65_536, body: Int = 67_108_864) {
            self.requestLine = requestLine
            self.head = head
            self.body = body
        }
    }
}
