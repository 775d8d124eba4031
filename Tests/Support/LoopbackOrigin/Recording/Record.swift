extension LoopbackOrigin {
    /// The origin's record at one moment.
    public struct Record: Sendable {
        /// The requests in order of arrival.
        public internal(set) var requests: [RecordedRequest] = []
        /// The malformed requests in order of arrival.
        public internal(set) var rejections: [Rejection] = []
        /// The number of open connections.
        public internal(set) var openConnections = 0
        /// The number of accepted connections since the start.
        public internal(set) var acceptedConnections = 0

        /// Returns the requests to a path, with any query.
        public func requests(to path: String) -> [RecordedRequest] { requests.filter { $0.path == path } }
    }
}
