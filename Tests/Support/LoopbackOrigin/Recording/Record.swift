extension LoopbackOrigin {
    /// What the origin has seen, at one moment.
    public struct Record: Sendable {
        /// The requests in order of arrival.
        public internal(set) var requests: [RecordedRequest] = []
        /// What was refused as malformed, in order of arrival.
        public internal(set) var rejections: [Rejection] = []
        /// How many connections are open.
        public internal(set) var openConnections = 0
        /// How many connections were accepted since the origin was started.
        public internal(set) var acceptedConnections = 0

        /// The requests to a path, whatever their query.
        public func requests(to path: String) -> [RecordedRequest] {
            requests.filter { $0.path == path }
        }
    }
}
