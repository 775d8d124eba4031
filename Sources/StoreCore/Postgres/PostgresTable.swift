internal import Foundation
internal import StoreCore

/// A table: its creation, the order of its changes, and its leases, for any type of content.
final class PostgresTable: PostgresListener {
    let core: PostgresCore
    let statements: PostgresStatements
    /// The random number of this cacher.
    let writer: Int64 = .random(in: 1...Int64.max)
    let leases = PostgresLeases()
    private let schema: Int64
    /// Receives the changes of others; a key is its JSON.
    private let onChange: @Sendable (CacherChange<Data>) -> Void
    /// Receives the reason for which the changes cannot be followed; called once, until following works again.
    private let onLost: @Sendable (PostgresError) -> Void
    private let state = VisibleMutex(State())

    private struct State {
        var position = Revision.none
        var phase = Phase.new
        var channel = ""
        /// Whether changes may have been missed, because following them has failed.
        var hasFailed = false
        /// The highest number that was noticed since, which the position takes when the gap is announced.
        var noticed: UInt64 = 0
        var isLossReported = false
        /// Whether the connection was replaced while the table was being attached over the one before.
        var isConnectionReplaced = false
        /// Whether a task opens the table again after a delay, and the last delay; zero while the table is followed.
        var isRetrying = false
        var retryDelay = Duration.zero
        /// The long keys that this cacher has used, by the digest that a notice contains in their place. No other long key can be live here,
        /// unless there are more than the limit: then no further ones are remembered.
        var longKeys: [String: Data] = [:]
        var isMissingLongKeys: Bool { longKeys.count > 1_000 }
    }

    private enum Phase {
        case new
        case attaching(Task<Void, any Error>)
        case attached
        /// The table cannot be used; the next attempt is made after a while.
        case failed(PostgresError, until: ContinuousClock.Instant)
    }

    init(
        _ core: PostgresCore, _ name: String, schema: Int64, onChange: @escaping @Sendable (CacherChange<Data>) -> Void,
        onLost: @escaping @Sendable (PostgresError) -> Void
    ) {
        (self.core, self.schema, self.onChange, self.onLost) = (core, schema, onChange, onLost)
        statements = PostgresStatements(table: name)
        core.add(self)
    }

    var position: Revision { state.withLock { $0.position } }

    var channel: String { state.withLock { $0.channel } }

    // MARK: Attaching

    /// Ensures that the tables exist and that their changes are followed.
    func attach() async throws(PostgresError) {
        let task = try state.withLock { state throws(PostgresError) -> Task<Void, any Error>? in
            switch state.phase {
            case .attached: return nil
            case .attaching(let task): return task
            case .failed(let error, let until) where until > .now: throw error
            case .new, .failed:
                let task = Task<Void, any Error>.detached { try await self.connect() }
                state.phase = .attaching(task)
                return task
            }
        }
        do { _ = try await task?.value } catch { throw error as? PostgresError ?? PostgresError(.server, "\(error)") }
    }

    private func connect() async throws {
        while true {
            var failure: PostgresError?
            do throws(PostgresError) { try await follow() } catch { failure = error }
            let mustRepeat = state.withLock { state in
                if !state.isConnectionReplaced, let failure { state.phase = .failed(failure, until: .now + .seconds(1)) }
                defer { state.isConnectionReplaced = false }
                return state.isConnectionReplaced
            }
            if mustRepeat { continue }
            guard let failure else { return }
            // An outage is reported by the connection.
            if core.outage == nil {
                lost(failure)
                attachLater()
            }
            throw failure
        }
    }

    /// Opens the table again after a delay, because a store with observers may make no call.
    private func attachLater() {
        let delay = state.withLock { state -> Duration? in
            guard !state.isRetrying else { return nil }
            state.isRetrying = true
            state.retryDelay = min(.seconds(30), max(.seconds(1), state.retryDelay * 2))
            return state.retryDelay
        }
        guard let delay else { return }
        Task.detached { [weak self] in
            try await Task.sleep(for: delay)
            self?.state.withLock { $0.isRetrying = false }
            // A call may have failed since, and then the table is not opened yet.
            do { try await self?.attach() } catch { self?.attachLater() }
        }
    }

    private func follow() async throws(PostgresError) {
        let channel = try await prepare()
        _ = try await core.run(PostgresStatements.listen(channel), on: .control)
        // A read-only server refuses it, and loads go on. A lost connection fails the next statement too.
        _ = try? await core.run(statements.sweepLeases, on: .control)
        let known = Int64(clamping: state.withLock { $0.position.number })
        // The head is raised only if the server has lost changes: a server that is read-only refuses a change, and loads go on.
        for query in [statements.head, statements.raiseHead(to: known, writer: writer, channel: channel)] {
            // Runs on the control connection: every notice before its response has been delivered, and every notice after it will be.
            let rows = try await core.run(query, on: .control) { [self] outcome in
                guard case .success(let rows) = outcome, let head = rows.first?.first?.first ?? nil else { return }
                if head.postgresInteger >= known { attached(head.postgresInteger) }
            }
            guard let head = rows.first?.first?.first ?? nil else {
                throw PostgresError(.server, "the table \(statements.table) was emptied; call again")
            }
            if head.postgresInteger >= known { return }
        }
    }

    /// Creates the tables if they are missing, and checks them.
    private func prepare() async throws(PostgresError) -> String {
        for attempt in 0... {
            let tables = try await core.run(statements.describe, on: .control).first ?? []
            var found: [String: (channel: String, columns: String)] = [:]
            for table in tables {
                guard table.count == 3, let name = table[0], let channel = table[1], let columns = table[2] else { continue }
                found[name.postgresText] = (channel.postgresText, columns.postgresText)
            }
            let name = statements.table
            if let state = found[name + "_state"], state.columns.hasPrefix("single boolean, version integer,") {
                let version = try await core.run(statements.readVersion, on: .control).first?.first?.first ?? nil
                if let version, let number = Int(version.postgresText), number > PostgresStatements.version {
                    throw PostgresError(
                        .newerTable,
                        "opening the table \(name): its version \(number) is newer than \(PostgresStatements.version); update the library")
                }
                if version == nil { found[name + "_state"] = nil }
            }
            for (end, columns) in PostgresStatements.columns {
                guard let table = found[name + end], table.columns != columns else { continue }
                throw PostgresError(
                    .foreignTable, "opening the table \(name + end): it has the columns (\(table.columns)); use another name for the cache")
            }
            if found.count == 3, let channel = found[name]?.channel {
                core.setChannel(channel, of: self)
                state.withLock { $0.channel = channel }
                return channel
            }
            guard attempt == 0 else { break }
            _ = try await core.run(statements.create, on: .control)
        }
        throw PostgresError(.server, "creating the table \(statements.table): it does not exist afterward; check search_path")
    }

    /// Following works from now on; called on the loop's thread.
    private func attached(_ head: Int64) {
        let found = state.withLock { state -> (isGap: Bool, number: UInt64)? in
            // The new connection does not listen yet.
            if state.isConnectionReplaced { return nil }
            state.phase = .attached
            state.isLossReported = false
            state.retryDelay = .zero
            defer { (state.hasFailed, state.noticed) = (false, 0) }
            return (state.hasFailed, max(UInt64(clamping: head), state.noticed))
        }
        guard let found else { return }
        if found.isGap { onChange(.gap) }
        move(to: found.number)
        // Leases may have ended unnoticed.
        leases.wakeAll()
    }

    func restored() {
        state.withLock { state in
            (state.hasFailed, state.noticed) = (true, 0)
            // The running attempt begins again.
            if case .attaching = state.phase { state.isConnectionReplaced = true } else { state.phase = .new }
        }
        Task.detached { try await self.attach() }
    }

    func lost(_ error: PostgresError) {
        let isFirst = state.withLock { state in
            state.hasFailed = true
            defer { state.isLossReported = true }
            return !state.isLossReported
        }
        if isFirst { onLost(error) }
        leases.wakeAll()
    }

    /// Opens the table again after it was found missing.
    func reopen() async throws(PostgresError) {
        state.withLock { state in
            state.hasFailed = true
            if case .attached = state.phase { state.phase = .new }
        }
        try await attach()
    }

    // MARK: Notices

    func noticed(_ payload: String) {
        let parts = payload.split(separator: " ", maxSplits: 4)
        if parts.count == 3, parts[0] == "l", let id = Int64(parts[1]) { return leases.ended(id, String(parts[2])) }
        // Any user of the database may notify on the channel. A number of the table fits into 63 bits.
        guard parts.count >= 3, let number = UInt64(parts[1]), let writer = UInt64(parts[2]), max(number, writer) <= Int64.max else {
            return
        }
        guard number > position.number else { return }
        let revision = Revision(number: number, writer: writer)
        // A record of another version is a miss. If the observers fetched it, and so did those of the other version, neither would end.
        if writer != self.writer, parts.count < 5 || Int64(parts[4]) == schema {
            switch parts[0] {
            case "c" where parts.count >= 4:
                if let key = Data(hexadecimal: parts[3]) { onChange(.changed(key, revision)) }
            case "d" where parts.count >= 4:
                let (key, isIncomplete) = state.withLock { ($0.longKeys[String(parts[3])], $0.isMissingLongKeys) }
                if let key { onChange(.changed(key, revision)) } else if isIncomplete { onChange(.gap) }
            case "a": onChange(.removedAll(revision))
            default: break
            }
        }
        // Until a gap is announced, changes before this one may be missing.
        let isComplete = state.withLock { state in
            if state.hasFailed { state.noticed = max(state.noticed, number) }
            return !state.hasFailed
        }
        if isComplete { move(to: number) }
    }

    private func move(to number: UInt64) {
        // After every change of this number by any writer. A notice of a later change may have been handled before the head's response.
        state.withLock { $0.position = max($0.position, Revision(number: number, writer: .max)) }
    }

    /// Returns whether there are changes that are not delivered yet.
    func isBehind() async throws(PostgresError) -> Bool {
        let head = try await core.run(statements.head, on: .control).first?.first?.first ?? nil
        return head.map { UInt64(clamping: $0.postgresInteger) > position.number } ?? false
    }

    /// Delivers the changes made before; announces a gap if the server has sent no notices of them.
    func catchUp() async throws(PostgresError) {
        _ = try await core.run(statements.headAfterNotices(channel: channel), on: .control) { [self] outcome in
            guard case .success(let rows) = outcome, let head = (rows.first?.first?.first ?? nil)?.postgresInteger else { return }
            let isBehind = state.withLock { state in
                guard case .attached = state.phase, state.position.number < UInt64(clamping: head) else { return false }
                state.hasFailed = true
                return true
            }
            if isBehind { attached(head) }
        }
    }

    /// Remembers a key that is too long for a notice, before it is used.
    func note(_ key: Data) async throws(PostgresError) {
        guard key.count > PostgresStatements.longestNoticedKey else { return }
        let isKnown = state.withLock { $0.isMissingLongKeys || $0.longKeys.values.contains(key) }
        guard !isKnown, let digest = try await core.run(PostgresStatements.digest(of: key)).first?.first?.first ?? nil else { return }
        state.withLock { $0.longKeys[digest.postgresText] = key }
    }
}

extension Data {
    /// Decodes hexadecimal digits; `nil` if there are others.
    init?(hexadecimal text: Substring) {
        let digits = text.utf8.compactMap { Self.digits.firstIndex(of: $0) }
        guard digits.count == text.utf8.count, digits.count.isMultiple(of: 2) else { return nil }
        self.init(stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) })
    }

    var hexadecimal: String {
        String(decoding: flatMap { [Self.digits[Int($0 >> 4)], Self.digits[Int($0 & 15)]] }, as: UTF8.self)
    }

    private static let digits = Array("0123456789abcdef".utf8)
}
