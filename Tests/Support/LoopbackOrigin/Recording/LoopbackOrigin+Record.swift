extension LoopbackOrigin {
    /// The origin's record until now; an exchange with a fully delivered response is complete.
    public var record: Record {
        // The origin's thread sends the last byte before it records it, so this waits until the thread has finished its work. Only a
        // stopped origin does not reply, and it has nothing more to record.
        try? ask(Mailbox.Letter.settle)
        return service.journal.snapshot.record
    }

    /// The recorded requests in order of arrival, without malformed ones.
    public var requests: [RecordedRequest] { record.requests }

    /// Returns the recorded requests to a path, with any query.
    public func requests(to path: String) -> [RecordedRequest] { record.requests(to: path) }

    /// The number of open connections.
    public var openConnections: Int { record.openConnections }

    /// The number of accepted connections since the start.
    public var acceptedConnections: Int { record.acceptedConnections }

    /// Forgets the recorded requests; their numbers and the connection counters continue.
    public func forget() { service.journal.forget() }

    /// Waits until a number of requests have arrived, including earlier ones.
    ///
    /// A request counts once its body is complete, before the response.
    ///
    /// - Parameters:
    ///   - count: The number of requests.
    ///   - path: Counts only requests to this path.
    ///   - allowance: The time limit of the wait.
    /// - Returns: The counted requests, possibly more than `count`.
    /// - Throws: `CancellationError`, or `Failure` with code `timedOut` or `stopped`.
    @discardableResult
    public func waitForRequests(
        count: Int, to path: String? = nil, within allowance: Duration = .seconds(900)
    ) async throws -> [RecordedRequest] {
        let counted = { (record: Record) in path.map { record.requests(to: $0) } ?? record.requests }
        return counted(try await waitUntil(within: allowance) { counted($0).count >= count })
    }

    /// Waits until the record satisfies a condition; checks it now and after every change.
    ///
    /// ```swift
    /// try await origin.waitUntil { $0.openConnections == 0 }
    /// try await origin.waitUntil { $0.requests.last?.ending == .clientLeft }
    /// ```
    ///
    /// - Parameters:
    ///   - allowance: The time limit of the wait.
    ///   - isWanted: The condition; called outside any lock.
    /// - Returns: The record that satisfied it.
    /// - Throws: `CancellationError`, or `Failure` with code `timedOut` or `stopped`.
    @discardableResult
    public func waitUntil(within allowance: Duration = .seconds(900), _ isWanted: (Record) throws -> Bool) async throws -> Record {
        let deadline = ContinuousClock.now + allowance
        while true {
            let (record, version) = service.journal.snapshot
            if try isWanted(record) { return record }
            let rest = ContinuousClock.now.duration(to: deadline)
            guard rest > .zero else { throw Failure.timedOut(after: allowance, record) }
            try await service.journal.change(since: version, within: rest)
        }
    }
}

extension LoopbackOrigin.Failure {
    /// Makes the failure of a wait, with the record instead of the awaited one.
    fileprivate static func timedOut(after allowance: Duration, _ record: LoopbackOrigin.Record) -> Self {
        let seen = record.requests.suffix(10).map(\.description).joined(separator: "; ")
        let counts = "\(record.requests.count) requests, \(record.openConnections) open connections"
        return Self(code: .timedOut, description: "the condition was not met within \(allowance); \(counts); \(seen)")
    }
}
