internal import Foundation
internal import PostgresShim

struct PostgresQuery: Sendable {
    /// The name under which the statement is prepared; `nil` for a text of one or more statements without parameters.
    var name: String?
    var text: String
    /// Without a value, a parameter is null.
    var parameters: [PostgresValue?] = []
}

enum PostgresValue: Sendable {
    case bytes(Data)
    case text(String)
    case integer(Int64)
    case double(Double)

    fileprivate var data: Data {
        switch self {
        case .bytes(let data): data
        case .text(let text): Data(text.utf8)
        case .integer(let number): withUnsafeBytes(of: number.bigEndian) { Data($0) }
        case .double(let number): withUnsafeBytes(of: number.bitPattern.bigEndian) { Data($0) }
        }
    }
}

/// The rows of one statement. Prepared statements return binary fields, others return texts.
typealias PostgresRows = [[Data?]]

extension Data {
    var postgresInteger: Int64 { reduce(0) { $0 << 8 | Int64($1) } }
    var postgresDouble: Double { Double(bitPattern: UInt64(bitPattern: postgresInteger)) }
    var postgresText: String { String(decoding: self, as: UTF8.self) }
}

struct PostgresOperation: Sendable {
    typealias Outcome = Result<[PostgresRows], PostgresError>

    let query: PostgresQuery
    let deadline: ContinuousClock.Instant
    /// Called once, on the thread of the loop or on that of the caller.
    let completion: @Sendable (Outcome) -> Void
}

/// A connection that runs one operation at a time and never waits for the network.
///
/// Any thread starts an operation; only the loop's thread continues and closes it.
final class PostgresConnection: Sendable {
    let descriptor: Int32
    private let timeout: Duration
    private let state: VisibleMutex<State>

    private struct State {
        /// libpq's connection; `nil` once it is closed.
        var connection: OpaquePointer?
        /// The statement that sets up the session.
        let settings: String
        var prepared: Set<String> = []
        var running: Running?
        var wantsWrite = false
    }

    private struct Running {
        let operation: PostgresOperation
        /// The name of the statement that is prepared before the operation; empty for the settings of a new connection.
        var preparing: String?
        var rows: [PostgresRows] = []
        var error: PostgresError?
    }

    /// The events that a call of `proceed` has found on the connection.
    struct Progress {
        var notices: [(channel: String, payload: String)] = []
        var finished: (operation: PostgresOperation, outcome: PostgresOperation.Outcome)?
        var loss: PostgresError?
    }

    private init(_ connection: sending OpaquePointer, timeout: Duration) {
        descriptor = pq_socket(connection)
        self.timeout = timeout
        _ = pq_set_nonblocking(connection)
        // Under a stricter default of the server, a change fails if another one was made while it waited. A change that waits for another
        // transaction fails before its deadline, because a passed deadline ends all connections, and the change would wait on the server.
        let settings = "SET default_transaction_isolation = 'read committed'; SET lock_timeout = \((timeout / 2).milliseconds)"
        state = VisibleMutex(State(connection: connection, settings: settings))
    }

    deinit { _ = close() }

    /// Connects; blocks the calling thread until the connection is established or has failed. The timeout is for all hosts of the URL.
    static func connect(_ url: String, timeout: Duration) throws(PostgresError) -> PostgresConnection {
        guard let connection = pq_connect_start(url) else { throw PostgresError(.unreachable, "connecting: out of memory") }
        let deadline = ContinuousClock.now + timeout
        var status = PQ_POLLING_WRITING
        if Int(pq_status(connection)) == PQ_CONNECTION_BAD { status = PQ_POLLING_FAILED }
        while status == PQ_POLLING_READING || status == PQ_POLLING_WRITING {
            let remaining = ContinuousClock.now.duration(to: deadline)
            guard remaining > .zero else {
                pq_finish(connection)
                throw PostgresError(.timedOut, "connecting: the server did not respond within \(timeout); check host and port")
            }
            var event = pollfd(
                fd: pq_socket(connection), events: Int16(status == PQ_POLLING_READING ? POLLIN : POLLOUT), revents: 0)
            if poll(&event, 1, remaining.milliseconds) > 0 { status = Int(pq_connect_poll(connection)) }
        }
        guard status == PQ_POLLING_OK else {
            let error = PostgresError(connecting: String(cString: pq_error(connection)))
            pq_finish(connection)
            throw error
        }
        return PostgresConnection(connection, timeout: timeout)
    }

    var wantsWrite: Bool { state.withLock { $0.wantsWrite } }

    var deadline: ContinuousClock.Instant? { state.withLock { $0.running?.operation.deadline } }

    /// Starts an operation on an idle connection, and returns whether the loop must wait until the socket is writable. If the start fails,
    /// the loop detects the lost connection.
    func start(_ operation: PostgresOperation) -> Bool {
        // The time in the queue does not show that the server is silent.
        let deadline = max(operation.deadline, .now + timeout)
        let operation = PostgresOperation(query: operation.query, deadline: deadline, completion: operation.completion)
        let wantsWrite = state.withLock { state -> Bool? in
            guard let connection = state.connection else { return nil }
            state.running = Running(operation: operation)
            Self.send(&state, connection)
            return state.wantsWrite
        }
        // The connection was closed after it had been chosen.
        if wantsWrite == nil { operation.completion(.failure(PostgresError(.connectionLost, "the connection was lost; try again"))) }
        return wantsWrite ?? false
    }

    /// Closes the connection, and returns the operation that was running.
    func close() -> PostgresOperation? {
        state.withLock { state in
            if let connection = state.connection { pq_finish(connection) }
            state.connection = nil
            return state.running.take()?.operation
        }
    }

    private static func send(_ state: inout State, _ connection: OpaquePointer) {
        guard let query = state.running?.operation.query else { return }
        let isSent: Bool
        if state.prepared.isEmpty {
            state.running?.preparing = ""
            isSent = pq_send_query(connection, state.settings) == 1
        } else if let name = query.name {
            if state.prepared.contains(name) {
                isSent = sendPrepared(connection, name, query.parameters)
            } else {
                state.running?.preparing = name
                isSent = pq_send_prepare(connection, name, query.text) == 1
            }
        } else {
            isSent = pq_send_query(connection, query.text) == 1
        }
        // Without a response, the operation would seem to have found nothing.
        if !isSent { state.running?.error = PostgresError(.connectionLost, "the connection was lost; try again") }
        state.wantsWrite = pq_flush(connection) == 1
    }

    private static func sendPrepared(_ connection: OpaquePointer, _ name: String, _ parameters: [PostgresValue?]) -> Bool {
        // One buffer for all parameters, so that their addresses stay valid until libpq has copied them.
        let fields = parameters.map { $0?.data }
        let lengths = fields.map { Int32($0?.count ?? 0) }
        var bytes: [CChar] = []
        bytes.reserveCapacity(fields.reduce(1) { $0 + ($1?.count ?? 0) + 1 })
        var offsets: [Int?] = []
        for field in fields {
            offsets.append(field == nil ? nil : bytes.count)
            field?.withUnsafeBytes { bytes.append(contentsOf: $0.bindMemory(to: CChar.self)) }
            bytes.append(0)
        }
        return bytes.withUnsafeBufferPointer { buffer in
            let values = offsets.map { offset in offset.flatMap { buffer.baseAddress?.advanced(by: $0) } }
            return pq_send_prepared(connection, name, Int32(values.count), values, lengths) == 1
        }
    }

    /// Reads and writes as much as possible without waiting.
    func proceed() -> Progress {
        state.withLock { state in
            var progress = Progress()
            guard let connection = state.connection else { return progress }
            let isAlive = pq_consume_input(connection) == 1
            state.wantsWrite = pq_flush(connection) == 1
            receive(&state, connection, &progress)
            while let notice = pq_notifies(connection) {
                progress.notices.append((String(cString: notice.pointee.relname), String(cString: notice.pointee.extra)))
                pq_free(notice)
            }
            if !isAlive || Int(pq_status(connection)) == PQ_CONNECTION_BAD {
                let text = String(cString: pq_error(connection)).trimmingCharacters(in: .whitespacesAndNewlines)
                progress.loss = PostgresError(.connectionLost, "the connection was lost; the cacher connects again (\(text))")
            }
            return progress
        }
    }

    private func receive(_ state: inout State, _ connection: OpaquePointer, _ progress: inout Progress) {
        while state.running != nil, pq_is_busy(connection) == 0 {
            if let result = pq_get_result(connection) {
                Self.collect(result, &state)
                pq_clear(result)
                if Int(pq_status(connection)) == PQ_CONNECTION_BAD { return }
                continue
            }
            guard var running = state.running else { return }
            if let name = running.preparing, running.error == nil {
                state.prepared.insert(name)
                running = Running(operation: running.operation)
                state.running = running
                Self.send(&state, connection)
                continue
            }
            state.running = nil
            progress.finished = (running.operation, running.error.map { .failure($0) } ?? .success(running.rows))
        }
    }

    private static func collect(_ result: OpaquePointer, _ state: inout State) {
        switch Int(pq_result_status(result)) {
        case PQ_TUPLES_OK:
            let columns = pq_column_count(result)
            let rows = (0..<pq_row_count(result)).map { row in
                (0..<columns).map { column -> Data? in
                    var length: Int32 = 0
                    guard let bytes = pq_value(result, row, column, &length) else { return nil }
                    return Data(bytes: bytes, count: Int(length))
                }
            }
            state.running?.rows.append(rows)
        case PQ_COMMAND_OK, PQ_EMPTY_QUERY: break
        default:
            guard state.running?.error == nil else { return }
            let code = pq_result_error_field(result, Int32(PQ_DIAG_SQLSTATE)).map { String(cString: $0) }
            let text = pq_result_error_field(result, Int32(PQ_DIAG_MESSAGE)) ?? pq_result_error(result)
            state.running?.error = PostgresError(
                state: code, String(cString: text).trimmingCharacters(in: .whitespacesAndNewlines))
        }
    }
}

extension Duration {
    /// Milliseconds for `poll`, at most a day, rounded up so that the wait does not end early.
    var milliseconds: Int32 { Int32(max(.zero, min(self, .seconds(86_400))) / .milliseconds(1)) + 1 }
}
