#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif
internal import StoreCore
internal import StoreFiles
internal import StorePlatform

/// One fact about one command: a record of the log.
///
/// Identity and lane come first and have a fixed place in all versions. Therefore even a fact of a newer version blocks its lane.
struct OutboxEntry: Hashable, Sendable {
    var id: UUID
    var lane: OutboxLane
    var fact: Fact

    enum Fact: Hashable, Sendable {
        case submitted(Submission)
        /// A delivery begins. From now on the origin may have performed the command.
        case attempted
        /// An attempt failed, and another one follows.
        case deferred(Deferral)
        /// The origin has refused the command, or the outbox has given it up.
        case failed(Failure)
        /// The origin has performed the command: the text of the identifier that replaces the temporary one, if any, and whether the origin
        /// has responded with the content, which only the process that has delivered the command knows.
        case delivered(replacement: String?, hasContent: Bool = false)
        /// The content that contains the change is saved.
        case retired
        /// The command was taken back before its first delivery.
        case canceled
        /// A command was discarded that was not being delivered.
        case discarded
        /// A failed command is pending again.
        case retried
        /// The command was replaced and has a new payload.
        case replaced(Submission)
        /// An identifier was replaced by a command that is no longer in the log.
        case mapped(temporary: String, replacement: String)
        /// A fact of a newer version.
        case unknown
    }

    /// The stored command: its payload, and the facts about it that need no decoding.
    struct Submission: Hashable, Sendable {
        var name: String
        var version: Int
        /// The content that the command changes; `none` if there is none.
        var subject: OutboxLane
        /// The identifiers that the command refers to.
        var references: [String]
        /// The temporary identifier of the entity that the command creates.
        var creates: String?
        /// The pending command that this one replaces.
        var supersedes: UUID?
        /// The identity that the origin sees in all deliveries; a replaced command gets a new one.
        var delivery: UUID
        var date: Date
        var payload: Data
    }

    struct Deferral: Hashable, Sendable {
        var attempts: Int
        var date: Date
        var delay: Duration
        /// The part of the delay that the origin has asked for, which no trigger ends.
        var requested: Duration
        var error: String
    }

    struct Failure: Hashable, Sendable {
        var attempts: Int
        var date: Date
        var error: String
        /// The failed command that creates the entity which this command refers to.
        var cause: UUID?
        /// Whether the outbox has given the command up, so that the origin may have performed it.
        var isGivenUp = false
    }
}

// MARK: - Encoding

extension OutboxEntry {
    private static let version: UInt8 = 1
    /// The identity of facts that concern no single command.
    static let noCommand = UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))

    /// The record of the entry: version, kind, identity, lane, and the details of the kind.
    var record: Data {
        var writer = Writer()
        writer.bytes.reserveCapacity(256)
        writer.put(Self.version)
        writer.put(fact.kind.rawValue)
        writer.put(id)
        writer.put(lane)
        switch fact {
        case .submitted(let submission), .replaced(let submission):
            writer.put(submission)
        case .deferred(let deferral):
            writer.put(deferral.attempts)
            writer.put(deferral.date)
            writer.put(deferral.delay)
            writer.put(deferral.requested)
            writer.put(deferral.error)
        case .failed(let failure):
            writer.put(failure.attempts)
            writer.put(failure.date)
            writer.put(failure.error)
            writer.put(failure.cause ?? Self.noCommand)
            writer.put(failure.isGivenUp)
        case .delivered(let replacement, let hasContent):
            writer.put(replacement)
            writer.put(hasContent)
        case .mapped(let temporary, let replacement):
            writer.put(temporary)
            writer.put(replacement)
        case .attempted, .retired, .canceled, .discarded, .retried, .unknown:
            break
        }
        return Data(writer.bytes)
    }

    /// Decodes a record; `nil` if it is not an entry.
    init?(_ record: Data) {
        let decoded: OutboxEntry?? = record.withUnsafeBytes { bytes in try? Self.read(bytes) }
        guard let decoded, let entry = decoded else { return nil }
        self = entry
    }

    private static func read(_ bytes: UnsafeRawBufferPointer) throws(NoEntry) -> OutboxEntry? {
        var reader = Reader(bytes: bytes)
        let version = try reader.byte()
        guard version >= Self.version else { return nil }
        let kind = Kind(rawValue: try reader.byte())
        let (id, lane) = (try reader.id(), try reader.lane())
        // A fact of a newer version still names its command.
        guard version == Self.version, let kind else { return OutboxEntry(id: id, lane: lane, fact: .unknown) }
        return OutboxEntry(id: id, lane: lane, fact: try fact(kind, &reader))
    }

    private static func fact(_ kind: Kind, _ reader: inout Reader) throws(NoEntry) -> Fact {
        switch kind {
        case .submitted: .submitted(try reader.submission())
        case .attempted: .attempted
        case .deferred:
            .deferred(
                Deferral(
                    attempts: try reader.attempts(), date: try reader.date(), delay: try reader.duration(),
                    requested: try reader.duration(), error: try reader.text()))
        case .failed:
            .failed(
                Failure(
                    attempts: try reader.attempts(), date: try reader.date(), error: try reader.text(), cause: try reader.optionalID(),
                    isGivenUp: try reader.bool()))
        case .delivered: .delivered(replacement: try reader.optionalText(), hasContent: try reader.bool())
        case .retired: .retired
        case .canceled: .canceled
        case .discarded: .discarded
        case .retried: .retried
        case .replaced: .replaced(try reader.submission())
        case .mapped: .mapped(temporary: try reader.text(), replacement: try reader.text())
        }
    }

    private struct NoEntry: Error {}

    /// The numbers of the kinds, which never change.
    fileprivate enum Kind: UInt8 {
        case submitted = 1
        case attempted = 2
        case deferred = 3
        case failed = 4
        case delivered = 5
        case retired = 6
        case canceled = 7
        case discarded = 8
        case retried = 9
        case replaced = 10
        case mapped = 11
    }

    private struct Writer {
        var bytes: [UInt8] = []

        mutating func put(_ byte: UInt8) { bytes.append(byte) }

        mutating func put(_ word: UInt64) { withUnsafeBytes(of: word.littleEndian) { bytes.append(contentsOf: $0) } }

        mutating func put(_ number: Int) { put(UInt64(bitPattern: Int64(number))) }

        mutating func put(_ flag: Bool) { put(flag ? 1 as UInt8 : 0) }

        mutating func put(_ duration: Duration) { put(duration.timeInterval.bitPattern) }

        mutating func put(_ date: Date) { put(date.timeIntervalSinceReferenceDate.bitPattern) }

        mutating func put(_ id: UUID) { withUnsafeBytes(of: id.uuid) { bytes.append(contentsOf: $0) } }

        mutating func put(_ text: String) {
            var text = text
            text.withUTF8 { put(UnsafeRawBufferPointer($0)) }
        }

        mutating func put(_ text: String?) {
            put(text != nil)
            if let text { put(text) }
        }

        mutating func put(_ lane: OutboxLane) {
            put(lane.name)
            put(lane.key)
        }

        mutating func put(_ data: Data) { data.withUnsafeBytes { put($0) } }

        private mutating func put(_ raw: UnsafeRawBufferPointer) {
            withUnsafeBytes(of: UInt32(raw.count).littleEndian) { bytes.append(contentsOf: $0) }
            bytes.append(contentsOf: raw)
        }

        mutating func put(_ submission: Submission) {
            put(submission.name)
            put(submission.version)
            put(submission.subject)
            put(submission.references.count)
            for reference in submission.references { put(reference) }
            put(submission.creates)
            put(submission.supersedes ?? noCommand)
            put(submission.delivery)
            put(submission.date)
            put(submission.payload)
        }
    }

    private struct Reader {
        let bytes: UnsafeRawBufferPointer
        var position = 0

        mutating func take(_ count: Int) throws(NoEntry) -> UnsafeRawBufferPointer {
            guard count >= 0, count <= bytes.count - position else { throw NoEntry() }
            defer { position += count }
            return UnsafeRawBufferPointer(rebasing: bytes[position..<position + count])
        }

        mutating func byte() throws(NoEntry) -> UInt8 { try take(1)[0] }

        mutating func word() throws(NoEntry) -> UInt64 { UInt64(littleEndian: try take(8).loadUnaligned(as: UInt64.self)) }

        mutating func number() throws(NoEntry) -> Int { Int(truncatingIfNeeded: Int64(bitPattern: try word())) }

        /// A number of attempts; bounded, because further attempts are added to it.
        mutating func attempts() throws(NoEntry) -> Int { min(max(0, try number()), 1_000_000) }

        mutating func bool() throws(NoEntry) -> Bool { try byte() != 0 }

        mutating func duration() throws(NoEntry) -> Duration { Duration(saturating: Double(bitPattern: try word())) }

        mutating func date() throws(NoEntry) -> Date { Date(timeIntervalSinceReferenceDate: Double(bitPattern: try word())) }

        mutating func id() throws(NoEntry) -> UUID { UUID(uuid: try take(16).loadUnaligned(as: uuid_t.self)) }

        mutating func optionalID() throws(NoEntry) -> UUID? {
            let id = try id()
            return id == noCommand ? nil : id
        }

        mutating func raw() throws(NoEntry) -> UnsafeRawBufferPointer {
            try take(Int(UInt32(littleEndian: try take(4).loadUnaligned(as: UInt32.self))))
        }

        mutating func text() throws(NoEntry) -> String { String(decoding: try raw(), as: UTF8.self) }

        mutating func optionalText() throws(NoEntry) -> String? { try bool() ? try text() : nil }

        mutating func lane() throws(NoEntry) -> OutboxLane { OutboxLane(name: try text(), key: try text()) }

        mutating func submission() throws(NoEntry) -> Submission {
            let (name, version, subject) = (try text(), try number(), try lane())
            let count = try number()
            guard count >= 0, count <= bytes.count else { throw NoEntry() }
            var references: [String] = []
            for _ in 0..<count { references.append(try text()) }
            return Submission(
                name: name, version: version, subject: subject, references: references, creates: try optionalText(),
                supersedes: try optionalID(), delivery: try id(), date: try date(), payload: Data(try raw()))
        }
    }
}

extension OutboxEntry.Fact {
    /// The number of the kind on disk. Unknown facts are kept as their bytes and never encoded.
    fileprivate var kind: OutboxEntry.Kind {
        switch self {
        case .submitted: .submitted
        case .attempted: .attempted
        case .deferred: .deferred
        case .failed: .failed
        case .delivered: .delivered
        case .retired, .unknown: .retired
        case .canceled: .canceled
        case .discarded: .discarded
        case .retried: .retried
        case .replaced: .replaced
        case .mapped: .mapped
        }
    }
}
