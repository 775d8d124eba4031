extension LoopbackOrigin {
    /// What the origin has seen until now; an exchange whose answer has arrived in full is found complete.
    public var record: Record {
        // The origin's thread sends the last byte before it enters that it has, so it is asked to finish what it is at. Only a stopped
        // origin does not answer, and that has nothing more to enter.
        try? ask(Mailbox.Letter.settle)
        return service.journal.snapshot.record
    }

    /// The requests it got, in order of arrival, malformed ones excepted.
    public var requests: [RecordedRequest] { record.requests }

    /// The requests it got for a path, whatever their query.
    public func requests(to path: String) -> [RecordedRequest] {
        record.requests(to: path)
    }

    /// How many connections are open.
    public var openConnections: Int { record.openConnections }

    /// How many connections were accepted since the origin was started.
    public var acceptedConnections: Int { record.acceptedConnections }

    /// Forgets the requests recorded so far; their numbers and the count of connections go on.
    public func forget() {
        service.journal.forget()
    }

    /// Waits until as many requests have arrived, counting those that are already there.
    ///
    /// A request counts once its body is complete, before it is answered.
    ///
    /// - Parameters:
    ///   - count: How many to wait for.
    ///   - path: Counts only requests to this path.
    ///   - allowance: How long the wait may last.
    /// - Returns: The requests that count, perhaps more than `count`.
    /// - Throws: `CancellationError`, or `Failure` with code `timedOut` or `stopped`.
    @discardableResult
    public func waitForRequests(
        count: Int, to path: String? = nil, within allowance: Duration = .seconds(300)
    ) async throws -> [RecordedRequest] {
        let counted = { (record: Record) in path.map { record.requests(to: $0) } ?? record.requests }
        return counted(try await waitUntil(within: allowance) { counted($0).count >= count })
    }

    /// Waits until the record is as wanted; looks at it now and after every change.
    ///
    /// ```swift
    /// try await origin.waitUntil { $0.openConnections == 0 }
    /// try await origin.waitUntil { $0.requests.last?.ending == .clientLeft }
    /// ```
    ///
    /// - Parameters:
    ///   - allowance: How long the wait may last.
    ///   - isWanted: Whether the record is as wanted; called outside any lock.
    /// - Returns: The record that was.
    /// - Throws: `CancellationError`, or `Failure` with code `timedOut` or `stopped`.
    @discardableResult
    public func waitUntil(within allowance: Duration = .seconds(300), _ isWanted: (Record) throws -> Bool) async throws -> Record {
        let deadline = ContinuousClock.now + allowance
        mailbox.post(.nudge(at: deadline))
        while true {
            let (record, version) = service.journal.snapshot
            if try isWanted(record) { return record }
            guard ContinuousClock.now < deadline else { throw Failure.timedOut(after: allowance, record) }
            try await service.journal.change(since: version)
        }
    }

    /// Calls `hook` behind every exchange, in the order in which they end, from now on and instead of an earlier hook.
    ///
    /// ```swift
    /// origin.onExchange { print($0) }  // GET /users → 200, 512 bytes
    /// ```
    ///
    /// - Parameter hook: Runs on the origin's own thread and must not block.
    public func onExchange(_ hook: @escaping @Sendable (RecordedRequest) -> Void) {
        service.setHook(hook)
    }
}

extension LoopbackOrigin.Failure {
    /// A wait that ended too late says what there was instead of what it waited for.
    fileprivate static func timedOut(after allowance: Duration, _ record: LoopbackOrigin.Record) -> Self {
        let seen = record.requests.suffix(10).map(\.description).joined(separator: "; ")
        let counts = "\(record.requests.count) requests, \(record.openConnections) open connections"
        return Self(code: .timedOut, description: "waited \(allowance) in vain; \(counts); \(seen)")
    }
}
