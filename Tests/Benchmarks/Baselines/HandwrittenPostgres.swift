internal import Dispatch
internal import Foundation
internal import PostgresShim
internal import StoreCore
internal import Synchronization

/// A failed call of libpq; it invalidates the measurement.
struct PostgresFailed: Error { var message: String }

/// Handwritten calls of libpq: a connection with prepared statements that blocks its thread until the response is there.
final class HandwrittenConnection {
    private let connection: OpaquePointer
    /// The channel of the cacher, so that the connection that listens has the same work.
    private var channel = Data()
    private let encoder = JSONEncoder()
    private let decoder = JSONDecoder()

    init(_ url: String, table: String) throws {
        guard pq_open(nil) == 1, let connection = pq_connect_start(url) else { throw PostgresFailed(message: "libpq") }
        self.connection = connection
        var status = PQ_POLLING_WRITING
        while status == PQ_POLLING_READING || status == PQ_POLLING_WRITING {
            let event = Int16(status == PQ_POLLING_READING ? POLLIN : POLLOUT)
            var socket = pollfd(fd: pq_socket(connection), events: event, revents: 0)
            poll(&socket, 1, -1)
            status = Int(pq_connect_poll(connection))
        }
        guard status == PQ_POLLING_OK else { throw PostgresFailed(message: String(cString: pq_error(connection))) }
        let texts = Self.texts(table)
        let name = "SELECT 'storehouse_' || md5('public.' || $1::text)"
        for (name, text) in [("load", texts.load), ("save", texts.save), ("channel", name)] {
            _ = pq_send_prepare(connection, name, text)
            try finish { _ in }
        }
        send("channel", [Data(table.utf8)])
        try finish { result in
            var length: Int32 = 0
            if let bytes = pq_value(result, 0, 0, &length) { channel = Data(bytes: bytes, count: Int(length)) }
        }
    }

    deinit { pq_finish(connection) }

    /// The statements of the cacher, so that the server has the same work; a change of `PostgresStatements` must be repeated here.
    private static func texts(_ table: String) -> (load: String, save: String) {
        let (records, state) = ("\"\(table)\"", "\"\(table)_state\"")
        let load = """
            SELECT fetched_at, details, content FROM \(records)
            WHERE key = sha256($1::bytea) AND schema = $2::int8 AND content IS NOT NULL
            """
        let save = """
            WITH head AS (
                UPDATE \(state) SET head = GREATEST(head + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::int8)
                RETURNING head, floor
            ),
            saved AS (
                INSERT INTO \(records) AS r (key, name, revision, writer, schema, fetched_at, details, content)
                SELECT sha256($1::bytea), $1, head.head, $2::int8, $3::int8, $4::float8, $5::bytea, $6::bytea FROM head
                WHERE $7::int8 IS NULL OR head.floor <= $7
                ON CONFLICT (key) DO UPDATE SET revision = EXCLUDED.revision, writer = EXCLUDED.writer, schema = EXCLUDED.schema,
                    fetched_at = EXCLUDED.fetched_at, details = EXCLUDED.details, content = EXCLUDED.content
                WHERE $7 IS NULL OR r.revision <= $7 OR r.writer = EXCLUDED.writer
                RETURNING r.revision
            )
            SELECT head.head, (saved.revision IS NOT NULL)::int4, head.floor, pg_notify($8::text, CASE
                WHEN saved.revision IS NULL THEN 'n ' || head.head || ' ' || $2
                WHEN octet_length($1) <= 3500 THEN 'c ' || head.head || ' ' || $2 || ' ' || encode($1, 'hex')
                ELSE 'd ' || head.head || ' ' || $2 || ' ' || encode(sha256($1), 'hex') END)::text
            FROM head LEFT JOIN saved ON true
            """
        return (load, save)
    }

    func load(_ key: Int) throws -> CacheRecord<[Article]>? {
        send("load", [try encoder.encode(key), integer(1)])
        var fields: [Data] = []
        try finish { result in
            guard pq_row_count(result) == 1 else { return }
            for column in [0, 2] as [Int32] {
                var length: Int32 = 0
                guard let bytes = pq_value(result, 0, column, &length) else { return }
                fields.append(Data(bytes: bytes, count: Int(length)))
            }
        }
        guard fields.count == 2 else { return nil }
        let date = Double(bitPattern: fields[0].reduce(0) { $0 << 8 | UInt64($1) })
        return CacheRecord(
            content: try decoder.decode([Article].self, from: fields[1]), fetchedAt: Date(timeIntervalSinceReferenceDate: date))
    }

    func save(_ record: CacheRecord<[Article]>, _ key: Int) throws {
        let date = Int64(bitPattern: record.fetchedAt.timeIntervalSinceReferenceDate.bitPattern)
        send(
            "save",
            [
                try encoder.encode(key), integer(7), integer(1), integer(date), nil, try encoder.encode(record.content), nil,
                channel,
            ])
        try finish { _ in }
    }

    private func integer(_ number: Int64) -> Data { withUnsafeBytes(of: number.bigEndian) { Data($0) } }

    private func send(_ name: String, _ fields: [Data?]) {
        let values = fields.map { $0.map { Array($0) + [0] } }
        var pointers: [UnsafePointer<CChar>?] = []
        // The buffers live until the end of the call.
        let buffers = values.map { value in
            value.map { bytes in
                let buffer = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: bytes.count)
                _ = buffer.initialize(from: bytes)
                return buffer
            }
        }
        defer { for buffer in buffers { buffer?.deallocate() } }
        for buffer in buffers { pointers.append(buffer?.baseAddress.map { UnsafeRawPointer($0).assumingMemoryBound(to: CChar.self) }) }
        _ = pq_send_prepared(connection, name, Int32(fields.count), pointers, fields.map { Int32($0?.count ?? 0) })
    }

    /// Blocks until all results are there.
    private func finish(_ take: (OpaquePointer) -> Void) throws {
        while let result = pq_get_result(connection) {
            defer { pq_clear(result) }
            let status = Int(pq_result_status(result))
            guard status == PQ_TUPLES_OK || status == PQ_COMMAND_OK else {
                throw PostgresFailed(message: String(cString: pq_result_error(result)))
            }
            if status == PQ_TUPLES_OK { take(result) }
        }
        while let notice = pq_notifies(connection) { pq_free(notice) }
    }
}

/// Handwritten asynchronous calls: each connection has a serial queue of its own, because a task must not block its thread.
final class HandwrittenPool: Sendable {
    private final class Lane: Sendable {
        let queue = DispatchQueue(label: "connection")
        let connection: Mutex<HandwrittenConnection>

        init(_ url: String, table: String) throws { connection = Mutex(try HandwrittenConnection(url, table: table)) }
    }

    private let lanes: [Lane]

    init(_ url: String, table: String, connections: Int) throws { lanes = try (0..<connections).map { _ in try Lane(url, table: table) } }

    func run<Result: Sendable>(
        _ number: Int, _ body: @escaping @Sendable (HandwrittenConnection) throws -> Result
    ) async throws -> Result {
        let lane = lanes[number % lanes.count]
        return try await withCheckedThrowingContinuation { continuation in
            lane.queue.async { continuation.resume(with: Swift.Result { try lane.connection.withLock { try body($0) } }) }
        }
    }
}
