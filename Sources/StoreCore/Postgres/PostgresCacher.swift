public import Foundation
public import StoreCore

/// Keeps each record in a row of a PostgreSQL table that any number of machines share.
///
/// ```swift
/// let rows = try PostgresCacher<User.ID, User>(
///     url: "postgresql://cache@db.example.com/cache", table: "users")
/// let users = Store(
///     cacher: TieredCacher(over: rows), fetcher: UserFetcher(api: api))
/// ```
///
/// **Shared.** A store shows the changes of all other machines, fetches a missing key once for all of them, and never saves content over
/// newer content. PostgreSQL's `NOTIFY` announces the changes. Leases use advisory locks. Therefore the lease of a process that ends is
/// free at once.
///
/// **The table** is created by the first call of any machine, with the companions `…_state` and `…_leases`. Only the database user of that
/// call needs the right to create tables.
///
/// **Keys** are identified by their JSON. Equal keys must encode to equal JSON, so a key must not contain a set. A key with a set, the order
/// of which changes with each launch, is refused.
///
/// **While the server is unavailable**, a store continues with its memory and with fetches, which then need no lease. Its loads and saves
/// fail at once, and the saves are retried. The store reports the outage once, as a fault of ``StoreEventKind/CacherOperation/follow``.
/// When the server is available again, the store reads its live keys again.
///
/// The server must be the primary one. A proxy that gives each transaction another connection, such as PgBouncer in transaction mode, is
/// not supported.
public final class PostgresCacher<Param: Hashable & Sendable & Codable, Content: Sendable & Codable>: Cacher {
    /// The database, which several cachers may share.
    public let database: PostgresDatabase
    /// The lifetime of content whose origin states none.
    public let expiry: Expiry

    let table: PostgresTable
    let schema: Int64
    let limit: Int
    let observers: Observers
    private let encoder = JSONEncoder()
    private let decoder = JSONDecoder()

    final class Observers: Sendable {
        struct State: Sendable {
            var changes: [UInt64: @Sendable (CacherChange<Param>) -> Void] = [:]
            var faults: [@Sendable (PostgresError) -> Void] = []
            var lastID: UInt64 = 0
        }

        let state = VisibleMutex(State())
    }

    /// Creates a cacher; the first call connects.
    ///
    /// - Parameters:
    ///   - database: The connections.
    ///   - table: The name of the table, 1 to 56 bytes; all users of the table must use the same types of key and content.
    ///   - expiry: The lifetime of content whose origin states none.
    ///   - version: The version of the content's schema. Raise it when `Content` can no longer decode older records, which are then misses.
    ///   - limit: The size of the largest record, in bytes; at most 1 GB, because a server closes the connection of a larger message.
    ///   - onFault: Called once for each outage; runs on any thread and must be quick.
    public init(
        _ database: PostgresDatabase, table: String, expiry: Expiry = .never, version: Int = 1, limit: Int = 64_000_000,
        onFault: (@Sendable (PostgresError) -> Void)? = nil
    ) {
        precondition((1...56).contains(table.utf8.count) && !table.utf8.contains(0), "the name of a table has 1 to 56 bytes: \(table)")
        let observers = Observers()
        if let onFault { observers.state.withLock { $0.faults.append(onFault) } }
        self.database = database
        self.expiry = expiry
        self.observers = observers
        self.limit = min(limit, 1_000_000_000)
        schema = Int64(version)
        let decoder = decoder
        self.table = PostgresTable(database.core, table, schema: schema) {
            observers.handle($0, decoder)
        } onLost: { error in
            for observer in observers.state.withLock({ $0.faults }) { observer(error) }
        }
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.nonConformingFloatEncodingStrategy = .convertToString(positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
        decoder.nonConformingFloatDecodingStrategy = .convertFromString(positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
    }

    /// Creates a cacher with connections of its own.
    ///
    /// - Parameters:
    ///   - url: A URL or a list of parameters as libpq defines them.
    ///   - table: The name of the table.
    ///   - connections: The largest number of connections, without the one that listens.
    ///   - expiry: The lifetime of content whose origin states none.
    ///   - version: The version of the content's schema.
    /// - Throws: ``PostgresError/Code/libraryMissing`` if libpq is not installed; ``PostgresError/Code/invalidURL``.
    public convenience init(
        url: String, table: String, connections: Int = 4, expiry: Expiry = .never, version: Int = 1
    ) throws(PostgresError) {
        self.init(try PostgresDatabase(url: url, connections: connections), table: table, expiry: expiry, version: version)
    }

    /// Loads the record of a key.
    ///
    /// - Parameter param: The key.
    /// - Returns: The record that was saved last; `nil` if there is none, or if it is of another schema version.
    /// - Throws: ``PostgresError``, including while the server is unavailable; a store then keeps the content that it has.
    @concurrent
    public func load(param: Param) async throws -> CacheRecord<Content>? {
        let key = try key(of: param)
        try await table.attach()
        try await table.note(key)
        guard let row = try await run({ table.statements.load(key, schema: schema) }).first?.first else { return nil }
        return try record(row)
    }

    /// Saves the record of a key over every change of others.
    ///
    /// - Parameters:
    ///   - record: The record.
    ///   - param: The key.
    /// - Throws: ``PostgresError``. After a lost connection, it is unknown whether the record was saved.
    @concurrent
    public func save(_ record: CacheRecord<Content>, param: Param) async throws {
        _ = try await commit(row(record, param), over: nil)
    }

    /// Removes the record of a key; a mark stays, so that an older fetch of another machine does not bring it back.
    ///
    /// - Parameter param: The key.
    /// - Throws: ``PostgresError``.
    @concurrent
    public func remove(param: Param) async throws {
        _ = try await commit(mark(param), over: nil)
    }

    /// Removes all records, for all machines.
    ///
    /// - Throws: ``PostgresError``. If only the deletion of the rows fails, the records are removed, and the next removal deletes the rows.
    @concurrent
    public func removeAll() async throws {
        try await table.attach()
        _ = try await removeRows { table.statements.removeAll(writer: table.writer, channel: table.channel) }
    }

    /// Returns the keys of all records of this schema version.
    ///
    /// - Throws: ``PostgresError``.
    @concurrent
    public func keys() async throws -> [Param]? {
        try await table.attach()
        let rows = try await run(timeout: .seconds(600)) { table.statements.keys(schema: schema) }.first ?? []
        return rows.compactMap { row in row[0].flatMap { try? decoder.decode(Param.self, from: $0) } }
    }

    /// Deletes the rows that were saved before a time, including the marks of removed records.
    ///
    /// Call this method from time to time, on one machine.
    ///
    /// - Parameter date: The time, on the server's clock.
    /// - Returns: The number of deleted records.
    /// - Throws: ``PostgresError``.
    @concurrent
    @discardableResult
    public func prune(before date: Date) async throws -> Int {
        try await table.attach()
        return try await removeRows {
            table.statements.prune(before: date.timeIntervalSince1970, writer: table.writer, channel: table.channel)
        }
    }

    /// Drops the table and its companions. Another call creates them again.
    ///
    /// - Throws: ``PostgresError``.
    @concurrent
    public func dropTable() async throws {
        try await table.attach()
        _ = try await table.core.run(table.statements.drop, timeout: .seconds(600))
    }
}

extension PostgresCacher {
    /// Runs a query; opens the table again if it has been dropped meanwhile.
    func run(timeout: Duration? = nil, _ query: () -> PostgresQuery) async throws(PostgresError) -> [PostgresRows] {
        do throws(PostgresError) {
            return try await table.core.run(query(), timeout: timeout)
        } catch {
            // undefined_table
            guard error.state == "42P01" else { throw error }
            try await table.reopen()
            return try await table.core.run(query(), timeout: timeout)
        }
    }

    /// Runs a removal, and deletes the rows that it has removed.
    ///
    /// - Parameter query: The removal; its row has its number.
    /// - Returns: The number of deleted records.
    private func removeRows(_ query: () -> PostgresQuery) async throws(PostgresError) -> Int {
        func numbers(_ query: () -> PostgresQuery) async throws(PostgresError) -> [UInt64] {
            let row = try await run(timeout: .seconds(600), query).last?.first ?? []
            return row.map { field in field.flatMap { UInt64($0.postgresText) } ?? 0 }
        }
        if try await numbers(query).isEmpty {
            // The row of the table's state was deleted.
            try await table.reopen()
            _ = try await numbers(query)
        }
        // A fetch that begins afterward has a base behind the removal, so its result is not refused. The removal is made, even if this fails.
        _ = try? await table.catchUp()
        var count = 0
        while true {
            let deleted = try await numbers { table.statements.sweepRecords }
            count += Int(deleted.last ?? 0)
            if deleted.first ?? 0 < PostgresStatements.batch { return count }
        }
    }

    enum Commit: Sendable {
        case made(Revision)
        case superseded(floor: Int64)
    }

    func commit(_ row: PostgresRow, over base: Revision?) async throws(PostgresError) -> Commit {
        try await table.attach()
        try await table.note(row.key)
        let base = base.map { Int64(clamping: $0.number) }
        for _ in 0..<2 {
            let rows = try await run { table.statements.save(row, base: base, writer: table.writer, channel: table.channel) }
            guard let result = rows.first?.first, let number = result[0], let isSaved = result[1], let floor = result[2] else {
                // The row of the table's state was deleted.
                try await table.reopen()
                continue
            }
            guard isSaved.postgresInteger == 1 else { return .superseded(floor: floor.postgresInteger) }
            return .made(Revision(number: UInt64(clamping: number.postgresInteger), writer: UInt64(table.writer)))
        }
        throw PostgresError(.server, "saving into the table \(table.statements.table): its state is missing; call again")
    }

    // MARK: Rows

    /// Returns the JSON of a key, with Unicode's different spellings of one text made equal.
    func key(of param: Param) throws -> Data {
        var json = try encode(param, param)
        if !(param is Int || param is String || param is UUID) {
            try checkOrder(of: param, json)
            json = Self.withoutSignOfZero(json)
        }
        guard json.contains(where: { $0 >= 0x80 }) else { return json }
        // Decomposed first: composing alone leaves a Hangul syllable beside its final consonant on Linux.
        let decomposed = String(decoding: Self.withSeparatedEscapes(json), as: UTF8.self).decomposedStringWithCanonicalMapping
        return Data(decomposed.precomposedStringWithCanonicalMapping.utf8.filter { $0 != 0 })
    }

    /// Returns JSON with a zero behind each escape: the letter of an escape must not combine with an accent of the text behind it.
    private static func withSeparatedEscapes(_ json: Data) -> Data {
        var (separated, rest) = (Data(capacity: json.count + 8), 0)
        for byte in json {
            // An escape has one byte behind the backslash, or a `u` and four digits.
            let isLong = rest == 1 && byte == UInt8(ascii: "u") && separated.last == UInt8(ascii: "\\")
            separated.append(byte)
            if rest == 1, !isLong { separated.append(0) }
            rest = isLong ? 4 : rest > 0 ? rest - 1 : byte == UInt8(ascii: "\\") ? 1 : 0
        }
        return separated
    }

    /// Returns JSON in which zero has no sign, because equal numbers must have equal JSON.
    private static func withoutSignOfZero(_ json: Data) -> Data {
        let (minus, zero, quote, backslash) = (UInt8(ascii: "-"), UInt8(ascii: "0"), UInt8(ascii: "\""), UInt8(ascii: "\\"))
        guard json.contains(minus) else { return json }
        let bytes = Array(json)
        var (plain, isText, isEscaped) = (Data(capacity: bytes.count), false, false)
        for (position, byte) in bytes.enumerated() {
            if isText {
                (isText, isEscaped) = (isEscaped || byte != quote, !isEscaped && byte == backslash)
            } else if byte == quote {
                isText = true
            } else if byte == minus, bytes.dropFirst(position + 1).first == zero {
                // Numbers such as -0.5 and 1e-05 keep their signs.
                let neighbors = bytes[..<position].suffix(1) + bytes.dropFirst(position + 2).prefix(1)
                if !neighbors.contains(where: { ".eE0123456789".utf8.contains($0) }) { continue }
            }
            plain.append(byte)
        }
        return plain
    }

    /// Compares a key with copies: a set has another order in another place of the memory, as it has in the next launch.
    private func checkOrder(of param: Param, _ json: Data) throws {
        var copies: [Param] = []
        for _ in 0..<2 {
            guard let copy = try? decoder.decode(Param.self, from: json), copy == param else { return }
            copies.append(copy)
            guard try encode(copy, param) != json else { continue }
            throw PostgresError(
                .unwritableRecord,
                "encoding the key \(param): an equal key has other JSON, so the next launch would not find its record; \(Param.self) encodes "
                    + "a set or a dictionary in an order that changes, so let it encode sorted elements")
        }
    }

    private func encode(_ value: some Encodable, _ param: Param) throws(PostgresError) -> Data {
        do {
            return try encoder.encode(value)
        } catch {
            throw PostgresError(.unwritableRecord, "encoding the record of key \(param): \(error); let its type encode every value")
        }
    }

    func row(_ record: CacheRecord<Content>, _ param: Param) throws -> PostgresRow {
        var bare = record.holding(Nothing())
        bare.fetchedAt = Nothing.record.fetchedAt
        let row = PostgresRow(
            key: try key(of: param), schema: schema, fetchedAt: record.fetchedAt.timeIntervalSinceReferenceDate,
            details: bare == Nothing.record ? nil : try encode(bare, param), content: try encode(record.content, param))
        let size = row.key.count + (row.details?.count ?? 0) + (row.content?.count ?? 0)
        guard size <= limit else {
            throw PostgresError(
                .unwritableRecord,
                "saving the record of key \(param): its \(size) bytes are more than the limit of \(limit); raise the limit")
        }
        return row
    }

    func mark(_ param: Param) throws -> PostgresRow {
        PostgresRow(key: try key(of: param), schema: schema, fetchedAt: Date().timeIntervalSinceReferenceDate)
    }

    /// Decodes the fields date, details and content, in this order; `nil` if the record was removed.
    func record(_ fields: [Data?]) throws(PostgresError) -> CacheRecord<Content>? {
        guard let date = fields[0], let json = fields[2] else { return nil }
        do {
            var record = try fields[1].map { try decoder.decode(CacheRecord<Nothing>.self, from: $0) } ?? Nothing.record
            record.fetchedAt = Date(timeIntervalSinceReferenceDate: date.postgresDouble)
            return record.holding(try decoder.decode(Content.self, from: json))
        } catch {
            throw PostgresError(
                .unreadableRecord,
                "decoding a record of schema version \(schema): raise the cacher's version when \(Content.self) changes (\(error))")
        }
    }
}

/// The content of a record that consists of its details alone.
struct Nothing: Codable, Hashable, Sendable {
    /// A record without details, like the one that is saved beside content; the date has a column of its own.
    static let record = CacheRecord(content: Nothing(), fetchedAt: Date(timeIntervalSinceReferenceDate: 0))
}
