internal import Foundation

/// The user of a channel: a table of a cacher.
protocol PostgresListener: AnyObject, Sendable {
    /// A notice has arrived; called on the loop's thread.
    func noticed(_ payload: String)
    /// Notices may be lost from now on; called on the loop's thread or on the thread of a connection attempt.
    func lost(_ error: PostgresError)
    /// The connection that listens works again, and the listener must register its channel again.
    func restored()
}

/// The connections of a database, and the thread that serves them.
///
/// An operation is sent on its caller's thread if a connection is idle. The loop's thread reads the responses and calls the completions.
final class PostgresCore: Sendable {
    enum Lane: Sendable {
        /// The connections of loads and saves.
        case pool
        /// The connection that listens and holds the locks.
        case control
    }

    let timeout: Duration
    private let url: String
    let limit: Int
    private let wake: WakePipe
    private let state = VisibleMutex(State())

    /// The connections of a lane, and the operations that wait for one.
    private struct Connections {
        var all: [PostgresConnection] = []
        var idle: [PostgresConnection] = []
        var connecting = 0
        var pending: [PostgresOperation] = []
        /// The earliest time of another connection beside those that work.
        var retry: ContinuousClock.Instant?

        var isAbsent: Bool { all.isEmpty && connecting == 0 }
        var isBusy: Bool { idle.count < all.count || !pending.isEmpty }

        /// Returns the next operation for a connection that has finished one; without any, the connection is idle.
        mutating func next(on connection: PostgresConnection) -> PostgresOperation? {
            guard all.contains(where: { $0 === connection }) else { return nil }
            if !pending.isEmpty { return pending.removeFirst() }
            idle.append(connection)
            return nil
        }

        mutating func remove(_ connection: PostgresConnection) -> Bool {
            idle.removeAll { $0 === connection }
            guard let position = all.firstIndex(where: { $0 === connection }) else { return false }
            all.remove(at: position)
            return true
        }
    }

    private struct State {
        var pool = Connections()
        var control = Connections()
        /// The number of the session that listens; another one for each connection.
        var session: Int64 = 0
        /// The reason why operations fail at once.
        var outage: PostgresError?
        /// The time of the next attempt to connect, and the delay after it.
        var retry: ContinuousClock.Instant?
        var delay = Duration.zero
        var listeners: [ObjectIdentifier: WeakListener] = [:]
        /// The users of each channel: several cachers may have one table.
        var channels: [String: [WeakListener]] = [:]
        /// Whether the thread sleeps, so that a new operation must wake it.
        var isAsleep = false
        var isStopped = false
        var turns = 0

        var connections: [PostgresConnection] { pool.all + control.all }
        var isBusy: Bool { pool.isBusy || control.isBusy }

        mutating func change<Result>(_ lane: Lane, _ body: (inout Connections) -> Result) -> Result {
            switch lane {
            case .pool: body(&pool)
            case .control: body(&control)
            }
        }
    }

    private struct WeakListener {
        weak var object: (any PostgresListener)?
    }

    init(url: String, limit: Int, timeout: Duration, wake: WakePipe) {
        self.url = url
        self.limit = limit
        self.timeout = timeout
        self.wake = wake
        let thread = Thread { self.run() }
        thread.name = "PostgresCacher"
        thread.start()
    }

    var session: Int64 { state.withLock { $0.session } }

    /// The number of times that the thread has looked for work, for tests.
    var turns: Int { state.withLock { $0.turns } }

    var outage: PostgresError? { state.withLock { $0.outage } }

    func add(_ listener: any PostgresListener) {
        state.withLock { state in
            state.listeners = state.listeners.filter { $0.value.object != nil }
            state.listeners[ObjectIdentifier(listener)] = WeakListener(object: listener)
        }
    }

    func setChannel(_ channel: String, of listener: any PostgresListener) {
        state.withLock { state in
            let others = (state.channels[channel] ?? []).filter { $0.object != nil && $0.object !== listener }
            state.channels[channel] = others + [WeakListener(object: listener)]
        }
    }

    func stop() {
        state.withLock { $0.isStopped = true }
        wake.post()
    }

    // MARK: Operations

    /// Runs a query; the closure receives the outcome as the completion of ``submit(_:on:timeout:_:)`` does, before the call returns.
    func run(
        _ query: PostgresQuery, on lane: Lane = .pool, timeout: Duration? = nil,
        onOutcome: @escaping @Sendable (PostgresOperation.Outcome) -> Void = { _ in }
    ) async throws(PostgresError) -> [PostgresRows] {
        let outcome = await withCheckedContinuation { continuation in
            submit(query, on: lane, timeout: timeout) { outcome in
                onOutcome(outcome)
                continuation.resume(returning: outcome)
            }
        }
        return try outcome.get()
    }

    /// Runs a query and passes the outcome to a closure that must be quick.
    func submit(
        _ query: PostgresQuery, on lane: Lane, timeout: Duration? = nil,
        _ completion: @escaping @Sendable (PostgresOperation.Outcome) -> Void
    ) {
        let operation = PostgresOperation(query: query, deadline: .now + (timeout ?? self.timeout), completion: completion)
        enum Step { case start(PostgresConnection), fail(PostgresError), connect, wait }
        let (step, wasAsleep) = state.withLock { state -> (Step, Bool) in
            if state.isStopped { return (.fail(PostgresError(.connectionLost, "the database was released")), false) }
            if let outage = state.outage { return (.fail(outage), false) }
            let mustWake = state.isAsleep
            state.isAsleep = false
            let limit = lane == .pool ? limit : 1
            let step = state.change(lane) { connections -> Step in
                if let connection = connections.idle.popLast() { return .start(connection) }
                connections.pending.append(operation)
                let mayConnect = connections.isAbsent || connections.retry.map { $0 <= .now } ?? true
                guard mayConnect, connections.all.count + connections.connecting < limit else { return .wait }
                connections.connecting += 1
                return .connect
            }
            return (step, mustWake)
        }
        var mustWake = wasAsleep
        switch step {
        case .start(let connection): mustWake = connection.start(operation) || wasAsleep
        case .fail(let error): completion(.failure(error))
        case .connect: connect(lane)
        case .wait: break
        }
        if mustWake { wake.post() }
    }

    // MARK: Connecting

    /// Connects on a thread of its own, because libpq resolves names there.
    private func connect(_ lane: Lane) {
        Thread { [self] in
            do throws(PostgresError) {
                connected(try PostgresConnection.connect(url, timeout: timeout), lane)
            } catch {
                switch lane {
                case .pool: poolFailed(error)
                case .control: goAway(error)
                }
            }
        }.start()
    }

    private func connected(_ connection: PostgresConnection, _ lane: Lane) {
        let listeners = state.withLock { state -> [any PostgresListener] in
            state.change(lane) { connections in
                connections.connecting -= 1
                connections.retry = nil
                // Busy until the first operation in the queue is found.
                connections.all.append(connection)
            }
            guard lane == .control else { return [] }
            let wasAway = state.delay > .zero
            state.session = .random(in: 1...Int64.max)
            (state.outage, state.retry, state.delay) = (nil, nil, .zero)
            return wasAway ? state.listeners.values.compactMap(\.object) : []
        }
        for listener in listeners { listener.restored() }
        startNext(on: connection)
        wake.post()
    }

    private func poolFailed(_ error: PostgresError) {
        let failed = state.withLock { state -> [PostgresOperation] in
            state.pool.connecting -= 1
            guard state.pool.isAbsent else {
                state.pool.retry = .now + .seconds(1)
                return []
            }
            defer { (state.pool.retry, state.pool.pending) = (nil, []) }
            return state.pool.pending
        }
        for operation in failed { operation.completion(.failure(error)) }
    }

    /// Fails all operations until the server is available again; called after a failed attempt to connect, and by the loop's thread.
    ///
    /// - Parameter isSilent: Whether the connections do not respond, so that all of them are closed.
    private func goAway(_ error: PostgresError, isSilent: Bool = false) {
        let (closed, failed, listeners) = state.withLock { state in
            let closed = isSilent ? state.connections : []
            if isSilent {
                // A running attempt to connect continues. A second one would replace its connection.
                (state.pool.all, state.pool.idle, state.control.all, state.control.idle) = ([], [], [], [])
            } else {
                state.control.connecting -= 1
            }
            state.outage = error
            // The delay is random, because many machines must not connect at the same moment.
            state.delay = min(.seconds(30), max(.milliseconds(100), state.delay * 2))
            state.retry = .now + state.delay * Double.random(in: 0.5...1)
            let failed = state.pool.pending + state.control.pending
            (state.pool.pending, state.control.pending) = ([], [])
            return (closed, failed, state.listeners.values.compactMap(\.object))
        }
        let operations = closed.compactMap { $0.close() }
        for listener in listeners { listener.lost(error) }
        for operation in failed + operations { operation.completion(.failure(error)) }
        wake.post()
    }

    // MARK: The thread

    private func run() {
        var events: [pollfd] = []
        var nextCheck = ContinuousClock.now + tick
        // After an event the thread waits for one tick only, so that a sequence of operations need not wake it each time.
        var lingers = false
        while true {
            let (connections, isOver, timeout, isRetryDue) = prepareTurn(lingers: lingers)
            if isOver { return end() }
            if isRetryDue { connect(.control) }
            events.removeAll(keepingCapacity: true)
            events.append(pollfd(fd: wake.output, events: Int16(POLLIN), revents: 0))
            for connection in connections {
                events.append(
                    pollfd(fd: connection.descriptor, events: Int16(POLLIN) | (connection.wantsWrite ? Int16(POLLOUT) : 0), revents: 0))
            }
            let count = poll(&events, nfds_t(events.count), timeout)
            state.withLock { $0.isAsleep = false }
            lingers = count > 0
            if count == 0 || nextCheck <= .now {
                nextCheck = .now + tick
                expire(connections)
            }
            guard count > 0 else { continue }
            if events[0].revents != 0 { wake.drain() }
            for (index, connection) in connections.enumerated() where events[index + 1].revents != 0 { serve(connection) }
        }
    }

    /// - Returns: The connections, whether the database was released, the longest wait in milliseconds, and whether to connect.
    private func prepareTurn(lingers: Bool) -> ([PostgresConnection], Bool, Int32, Bool) {
        state.withLock { state in
            state.turns += 1
            let connections = state.connections
            var isRetryDue = false
            if let retry = state.retry, retry <= .now, state.control.connecting == 0 {
                (state.retry, state.control.connecting) = (nil, 1)
                isRetryDue = true
            }
            guard !state.isStopped else { return (connections, true, 0, false) }
            // A passed deadline may be noticed one tick late. Without operations, the thread sleeps until an event wakes it.
            let untilRetry = state.control.connecting > 0 ? nil : state.retry.map { ContinuousClock.now.duration(to: $0) }
            if lingers || state.isBusy { return (connections, false, min(tick, untilRetry ?? tick).milliseconds, isRetryDue) }
            state.isAsleep = true
            return (connections, false, untilRetry?.milliseconds ?? -1, isRetryDue)
        }
    }

    /// The interval at which deadlines are checked.
    private var tick: Duration { min(.seconds(1), timeout / 4) }

    private func serve(_ connection: PostgresConnection) {
        let progress = connection.proceed()
        // Notices come first: the caller of the finished operation relies on them.
        for (channel, payload) in progress.notices {
            let listeners = state.withLock { ($0.channels[channel] ?? []).compactMap(\.object) }
            for listener in listeners { listener.noticed(payload) }
        }
        if let finished = progress.finished {
            if progress.loss == nil { startNext(on: connection) }
            finished.operation.completion(finished.outcome)
        }
        if let loss = progress.loss { lose(connection, loss) }
    }

    private func startNext(on connection: PostgresConnection) {
        let next = state.withLock { state -> PostgresOperation? in
            if let next = state.pool.next(on: connection) { return next }
            return state.control.next(on: connection)
        }
        if let next { _ = connection.start(next) }
    }

    private func lose(_ connection: PostgresConnection, _ error: PostgresError) {
        let (lane, listeners) = state.withLock { state -> (Lane?, [any PostgresListener]) in
            guard state.control.remove(connection) else {
                _ = state.pool.remove(connection)
                // Operations in the queue have waited for this connection.
                guard state.pool.isAbsent, !state.pool.pending.isEmpty else { return (nil, []) }
                state.pool.connecting += 1
                return (.pool, [])
            }
            // The first attempt follows at once.
            (state.control.connecting, state.delay) = (1, .milliseconds(50))
            return (.control, state.listeners.values.compactMap(\.object))
        }
        let operation = connection.close()
        for listener in listeners { listener.lost(error) }
        if let lane { connect(lane) }
        operation?.completion(.failure(error))
    }

    /// Ends the operations whose deadline has passed. A silent server counts as unavailable.
    private func expire(_ connections: [PostgresConnection]) {
        let now = ContinuousClock.now
        let error = PostgresError(.timedOut, "the server did not respond within \(timeout); the cacher connects again")
        if connections.contains(where: { $0.deadline.map { $0 <= now } ?? false }) { goAway(error, isSilent: true) }
        // Ends the operations that still wait for a connection, because all connections are in use.
        let late = state.withLock { state in
            let late = (state.pool.pending + state.control.pending).filter { $0.deadline <= now }
            state.pool.pending.removeAll { $0.deadline <= now }
            state.control.pending.removeAll { $0.deadline <= now }
            return late
        }
        for operation in late { operation.completion(.failure(error)) }
    }

    private func end() {
        let (connections, operations) = state.withLock { state in
            defer { (state.pool, state.control) = (Connections(), Connections()) }
            return (state.connections, state.pool.pending + state.control.pending)
        }
        let error = PostgresError(.connectionLost, "the database was released")
        for operation in operations + connections.compactMap({ $0.close() }) { operation.completion(.failure(error)) }
    }
}
