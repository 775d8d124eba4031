internal import Foundation

/// The statements of one table.
///
/// The table `users` has two companions. `users_state` has one row: the version of this layout, the number of the latest change (the head),
/// and the floor. No key without a row was changed after the floor. A row up to the floor counts as missing, and is deleted some time after.
/// `users_leases` holds the leases of keys that are being fetched.
///
/// Every change locks the row of `users_state` until it commits. Therefore changes become visible, and are announced, in the order of
/// their numbers.
struct PostgresStatements: Sendable {
    static let version = 1
    /// The longest key, in bytes of JSON, that a notice contains. PostgreSQL's limit for a notice is 8 000 bytes, and a key takes twice its
    /// length there, in hexadecimal digits.
    static let longestNoticedKey = 3500

    /// The name of the table, which ends the names of the prepared statements. The server compares 63 bytes of a name.
    let table: String
    private let records: String
    private let state: String
    private let leases: String

    init(table: String) {
        self.table = table
        (records, state, leases) = (Self.quoted(table), Self.quoted(table + "_state"), Self.quoted(table + "_leases"))
    }

    /// Doubles the quotation marks by Unicode scalars, because a combining accent after one would hide it from `Character`.
    private static func quoted(_ name: String, _ mark: Unicode.Scalar = "\"") -> String {
        let inside = name.unicodeScalars.flatMap { $0 == mark ? [$0, $0] : [$0] }
        return String(String.UnicodeScalarView([mark] + inside + [mark]))
    }

    private static func literal(_ text: String) -> String { quoted(text, "'") }

    /// The next number of a change. It is also a time in microseconds, so that a server that has lost its latest changes, or the whole
    /// table, continues above them.
    private static let next = "GREATEST(head + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::int8)"

    // MARK: The tables

    /// The columns of each table, by the end of its name.
    static let columns: KeyValuePairs<String, String> = [
        "": "key bytea, name bytea, revision bigint, writer bigint, schema bigint, fetched_at double precision, details bytea, "
            + "content bytea",
        "_state": "single boolean, version integer, head bigint, floor bigint",
        "_leases": "key bytea, id bigint, session bigint, expires timestamp with time zone",
    ]

    /// The channel of a table, in terms of the catalog.
    private static let channel = "'storehouse_' || md5(n.nspname || '.' || c.relname)"

    /// Describes the existing tables: name, channel and columns of each.
    var describe: PostgresQuery {
        let names = [records, state, leases].map { "to_regclass(\(Self.literal($0)))" }.joined(separator: ", ")
        return PostgresQuery(
            text: """
                SELECT c.relname, \(Self.channel),
                    string_agg(a.attname || ' ' || format_type(a.atttypid, NULL), ', ' ORDER BY a.attnum)
                FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
                WHERE c.oid IN (\(names)) AND a.attnum > 0 AND NOT a.attisdropped GROUP BY 1, 2
                """)
    }

    /// Creates the missing tables, and announces that all records are removed, to those that know the records of a dropped table.
    var create: PostgresQuery {
        PostgresQuery(
            text: """
                SELECT pg_advisory_xact_lock(hashtext('storehouse'), hashtext(\(Self.literal(table))));
                CREATE TABLE IF NOT EXISTS \(records) (key bytea PRIMARY KEY, name bytea NOT NULL, revision bigint NOT NULL,
                    writer bigint NOT NULL, schema bigint NOT NULL, fetched_at double precision NOT NULL, details bytea, content bytea);
                CREATE TABLE IF NOT EXISTS \(state) (single boolean PRIMARY KEY CHECK (single), version integer NOT NULL,
                    head bigint NOT NULL, floor bigint NOT NULL) WITH (fillfactor = 10);
                INSERT INTO \(state) SELECT true, \(Self.version), number, number
                    FROM (SELECT \(Self.next) AS number FROM (SELECT 0 AS head) AS start) AS numbers ON CONFLICT DO NOTHING;
                CREATE UNLOGGED TABLE IF NOT EXISTS \(leases) (key bytea PRIMARY KEY, id bigint NOT NULL, session bigint NOT NULL,
                    expires timestamptz NOT NULL);
                SELECT pg_notify(\(Self.channel), 'a ' || head || ' 0') FROM \(state), pg_class c JOIN pg_namespace n
                    ON n.oid = c.relnamespace WHERE c.oid = to_regclass(\(Self.literal(records)))
                """)
    }

    var drop: PostgresQuery { PostgresQuery(text: "DROP TABLE IF EXISTS \(records), \(state), \(leases)") }

    var readVersion: PostgresQuery { PostgresQuery(text: "SELECT version FROM \(state)") }

    /// Deletes the expired leases of holders that have ended, of keys that no other holder has requested since.
    var sweepLeases: PostgresQuery { PostgresQuery(text: "DELETE FROM \(leases) WHERE expires < clock_timestamp()") }

    // MARK: Following

    static func listen(_ channel: String) -> PostgresQuery { PostgresQuery(text: "LISTEN \(quoted(channel))") }

    var head: PostgresQuery { PostgresQuery(name: "head \(table)", text: "SELECT head FROM \(state)") }

    /// The head, after all notices of changes that were made before.
    ///
    /// A change is visible a moment before its notice is sent. The server sends all earlier notices with a notice of this session to itself,
    /// and those before the response.
    func headAfterNotices(channel: String) -> PostgresQuery {
        PostgresQuery(
            name: "notice \(table)", text: "SELECT head, pg_notify($1::text, 'b')::text FROM \(state)", parameters: [.text(channel)])
    }

    /// Raises the number of the latest change after the server has lost changes, and announces it, so that all positions reach it.
    func raiseHead(to number: Int64, writer: Int64, channel: String) -> PostgresQuery {
        PostgresQuery(
            name: "raise \(table)",
            text: """
                UPDATE \(state) SET head = GREATEST(head, $1::int8)
                RETURNING head, pg_notify($3::text, 'n ' || head || ' ' || $2::int8)::text
                """, parameters: [.integer(number), .integer(writer), .text(channel)])
    }

    /// The digest under which a notice announces a long key.
    static func digest(of key: Data) -> PostgresQuery {
        PostgresQuery(name: "digest", text: "SELECT encode(sha256($1::bytea), 'hex')::bytea", parameters: [.bytes(key)])
    }

    // MARK: Records

    private var floor: String { "COALESCE((SELECT floor FROM \(state)), 0)" }

    func load(_ key: Data, schema: Int64) -> PostgresQuery {
        PostgresQuery(
            name: "load \(table)",
            text: """
                SELECT fetched_at, details, content FROM \(records)
                WHERE key = sha256($1::bytea) AND schema = $2::int8 AND content IS NOT NULL AND revision > \(floor)
                """, parameters: [.bytes(key), .integer(schema)])
    }

    /// The revision of a key's row, and its record if it has one.
    func loadNewest(_ key: Data, schema: Int64) -> PostgresQuery {
        PostgresQuery(
            name: "newest \(table)",
            text: """
                SELECT revision, writer, fetched_at, details, CASE WHEN schema = $2::int8 THEN content END FROM \(records)
                WHERE key = sha256($1::bytea) AND revision > \(floor)
                """, parameters: [.bytes(key), .integer(schema)])
    }

    func keys(schema: Int64) -> PostgresQuery {
        PostgresQuery(
            name: "keys \(table)",
            text: "SELECT name FROM \(records) WHERE schema = $1::int8 AND content IS NOT NULL AND revision > \(floor)",
            parameters: [.integer(schema)])
    }

    /// Saves a record or, without content, the mark of a removed one.
    ///
    /// A save over a base is refused if another writer has changed the key after the base. The number of a refused save is announced too,
    /// so that all positions reach it. The notice of a record ends with its schema; that of a mark concerns every schema.
    ///
    /// Until the server has collected statistics, it expects more than a thousand rows of each table. `EXISTS` keeps it from expecting
    /// their product, for which it would compile the query to machine code first, in 90 ms.
    ///
    /// - Returns: A query for one row: the number, whether the record was saved, and the floor.
    func save(_ row: PostgresRow, base: Int64?, writer: Int64, channel: String) -> PostgresQuery {
        PostgresQuery(
            name: "save \(table)",
            text: """
                WITH head AS (UPDATE \(state) SET head = \(Self.next) RETURNING head, floor),
                saved AS (
                    INSERT INTO \(records) AS r (key, name, revision, writer, schema, fetched_at, details, content)
                    SELECT sha256($1::bytea), $1, head.head, $2::int8, $3::int8, $4::float8, $5::bytea, $6::bytea FROM head
                    WHERE $7::int8 IS NULL OR head.floor <= $7
                    ON CONFLICT (key) DO UPDATE SET revision = EXCLUDED.revision, writer = EXCLUDED.writer, schema = EXCLUDED.schema,
                        fetched_at = EXCLUDED.fetched_at, details = EXCLUDED.details, content = EXCLUDED.content
                    WHERE $7 IS NULL OR r.revision <= $7 OR r.writer = EXCLUDED.writer
                    RETURNING r.revision
                )
                SELECT head.head, saved.succeeded::int4, head.floor, pg_notify($8::text, CASE
                    WHEN NOT saved.succeeded THEN 'n ' || head.head || ' ' || $2
                    WHEN octet_length($1) <= \(Self.longestNoticedKey) THEN 'c ' || head.head || ' ' || $2 || ' ' || encode($1, 'hex')
                    ELSE 'd ' || head.head || ' ' || $2 || ' ' || encode(sha256($1), 'hex') END
                    || CASE WHEN NOT saved.succeeded OR $6 IS NULL THEN '' ELSE ' ' || $3 END)::text
                FROM head CROSS JOIN (SELECT EXISTS (SELECT FROM saved) AS succeeded) AS saved
                """,
            parameters: [
                .bytes(row.key), .integer(writer), .integer(row.schema), .double(row.fetchedAt), row.details.map { .bytes($0) },
                row.content.map { .bytes($0) }, base.map { .integer($0) }, .text(channel),
            ])
    }

    /// Removes all records, without deleting their rows.
    func removeAll(writer: Int64, channel: String) -> PostgresQuery {
        PostgresQuery(
            text: """
                UPDATE \(state) SET head = \(Self.next);
                UPDATE \(state) SET floor = head;
                SELECT head, pg_notify(\(Self.literal(channel)), 'a ' || head || ' \(writer)') FROM \(state)
                """)
    }

    /// Removes the records and marks that were saved before a time in seconds since 1970, without deleting their rows.
    func prune(before date: Double, writer: Int64, channel: String) -> PostgresQuery {
        // A date may be any number.
        let limit = Int64(exactly: (date * 1_000_000).rounded(.down)) ?? (date > 0 ? .max : .min)
        return PostgresQuery(
            text: """
                UPDATE \(state) SET head = \(Self.next);
                UPDATE \(state) SET floor = GREATEST(floor, (SELECT max(revision) FROM \(records) WHERE revision < \(limit)));
                SELECT head, pg_notify(\(Self.literal(channel)), 'n ' || head || ' \(writer)') FROM \(state)
                """)
    }

    /// The largest number of rows that one statement deletes.
    static let batch: UInt64 = 10_000

    /// Deletes rows that count as missing. Other machines save meanwhile, because the lock is not held.
    ///
    /// - Returns: A query for one row: the number of deleted rows, and that of the records among them.
    var sweepRecords: PostgresQuery {
        PostgresQuery(
            text: """
                WITH chosen AS (SELECT key FROM \(records) WHERE revision <= \(floor) LIMIT \(Self.batch) FOR UPDATE SKIP LOCKED),
                gone AS (DELETE FROM \(records) AS r USING chosen WHERE r.key = chosen.key RETURNING r.content)
                SELECT count(*), count(content) FROM gone
                """)
    }

    // MARK: Leases

    /// Takes the lease of a key if it is free, its holder has ended, or its time has passed. Takes the lock of the session in any case.
    ///
    /// - Returns: A query for one row: whether the lease was granted; the identifier, the remaining seconds and the session of the other
    ///   lease, if it still exists.
    func takeLease(_ key: Data, id: Int64, session: Int64, duration: Double) -> PostgresQuery {
        PostgresQuery(
            name: "lease \(table)",
            text: """
                WITH granted AS (
                    INSERT INTO \(leases) AS l (key, id, session, expires)
                    SELECT sha256($1::bytea), $2::int8, $3::int8, clock_timestamp() + LEAST($4::float8, 1e9) * interval '1 second'
                    FROM (SELECT pg_advisory_lock($3)) AS lock
                    ON CONFLICT (key) DO UPDATE SET id = EXCLUDED.id, session = EXCLUDED.session, expires = EXCLUDED.expires
                    WHERE CASE WHEN l.expires <= clock_timestamp() THEN true WHEN l.session = EXCLUDED.session THEN false
                        ELSE pg_try_advisory_xact_lock(l.session) END
                    RETURNING l.id
                )
                SELECT (granted.id IS NOT NULL)::int4, held.id, extract(epoch FROM held.expires - clock_timestamp())::float8, held.session
                FROM (SELECT 1) AS one LEFT JOIN granted ON true LEFT JOIN \(leases) AS held ON held.key = sha256($1)
                """, parameters: [.bytes(key), .integer(id), .integer(session), .double(duration)])
    }

    /// Ends the lease of another holder after a waiter's own duration has passed.
    func expireLease(_ key: Data, id: Int64) -> PostgresQuery {
        PostgresQuery(
            name: "expire \(table)", text: "DELETE FROM \(leases) WHERE key = sha256($1::bytea) AND id = $2::int8",
            parameters: [.bytes(key), .integer(id)])
    }

    /// Ends a lease, announces how it has ended, and then releases the lock of the session: with the lock free and the lease still there,
    /// a waiter would take the holder for dead.
    func endLease(_ key: Data, id: Int64, session: Int64, channel: String, payload: String) -> PostgresQuery {
        PostgresQuery(
            name: "end \(table)",
            text: """
                WITH gone AS (DELETE FROM \(leases) WHERE key = sha256($1::bytea) AND id = $2::int8 RETURNING id)
                SELECT pg_advisory_unlock($3::int8)::text FROM (SELECT count(pg_notify($4::text, $5::text)::text) FROM gone) AS told
                """, parameters: [.bytes(key), .integer(id), .integer(session), .text(channel), .text(payload)])
    }

    /// Releases the lock of a session that did not get a lease.
    static func unlock(_ session: Int64) -> PostgresQuery {
        PostgresQuery(name: "unlock", text: "SELECT pg_advisory_unlock($1::int8)::text", parameters: [.integer(session)])
    }

    /// Waits until the holder of a session's lock ends, for at most a second.
    static func awaitEnd(of session: Int64) -> PostgresQuery {
        PostgresQuery(text: "SET LOCAL lock_timeout = '1s'; SELECT pg_advisory_xact_lock_shared(\(session))")
    }
}

/// A row of the table, apart from its revision.
struct PostgresRow: Sendable {
    /// The key in JSON with sorted object keys, as the index compares it.
    var key: Data
    var schema: Int64
    /// Seconds since 2001, as `Date` counts them.
    var fetchedAt: Double
    var details: Data?
    /// The content's JSON; `nil` for the mark of a removed record.
    var content: Data?
}
