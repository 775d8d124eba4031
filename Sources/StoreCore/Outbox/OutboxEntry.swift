#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif
internal import StoreCore
internal import StoreFiles

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
        var references: [String]
        /// The temporary identifier of the entity that the command creates.
        var creates: String?
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

    /// The record of the entry: version, kind, identity, lane, and the details of the kind. The number of a kind never changes.
    var record: Data {
        var writer = ByteWriter(capacity: 256)
        func begin(_ kind: UInt8) {
            writer.put(Self.version)
            writer.put(kind)
            writer.put(id)
            writer.put(lane)
        }
        switch fact {
        case .submitted(let submission):
            begin(1)
            writer.put(submission)
        case .attempted: begin(2)
        case .deferred(let deferral):
            begin(3)
            writer.put(deferral.attempts)
            writer.put(deferral.date)
            writer.put(deferral.delay)
            writer.put(deferral.requested)
            writer.put(deferral.error)
        case .failed(let failure):
            begin(4)
            writer.put(failure.attempts)
            writer.put(failure.date)
            writer.put(failure.error)
            writer.put(failure.cause ?? Self.noCommand)
            writer.put(failure.isGivenUp)
        case .delivered(let replacement, let hasContent):
            begin(5)
            writer.put(replacement)
            writer.put(hasContent)
        // Unknown facts are kept as their bytes and never encoded.
        case .retired, .unknown: begin(6)
        case .canceled: begin(7)
        case .discarded: begin(8)
        case .retried: begin(9)
        case .replaced(let submission):
            begin(10)
            writer.put(submission)
        case .mapped(let temporary, let replacement):
            begin(11)
            writer.put(temporary)
            writer.put(replacement)
        }
        return Data(writer.bytes)
    }

    init?(_ record: Data) {
        guard let entry = record.withUnsafeBytes({ bytes in try? Self.read(bytes) }) else { return nil }
        self = entry
    }

    private static func read(_ bytes: UnsafeRawBufferPointer) throws(ByteReader.Foreign) -> OutboxEntry? {
        var reader = ByteReader(bytes)
        let version = try reader.byte()
        guard version >= Self.version else { return nil }
        let (kind, id, lane) = (try reader.byte(), try reader.id(), try reader.lane())
        // A fact of a newer version still names its command.
        return OutboxEntry(id: id, lane: lane, fact: try version == Self.version ? fact(kind, &reader) : .unknown)
    }

    private static func fact(_ kind: UInt8, _ reader: inout ByteReader) throws(ByteReader.Foreign) -> Fact {
        switch kind {
        case 1: .submitted(try reader.submission())
        case 2: .attempted
        case 3:
            .deferred(
                Deferral(
                    attempts: try reader.attempts(), date: try reader.date(), delay: try reader.duration(),
                    requested: try reader.duration(), error: try reader.text()))
        case 4:
            .failed(
                Failure(
                    attempts: try reader.attempts(), date: try reader.date(), error: try reader.text(), cause: try reader.optionalID(),
                    isGivenUp: try reader.flag()))
        case 5: .delivered(replacement: try reader.optionalText(), hasContent: try reader.flag())
        case 6: .retired
        case 7: .canceled
        case 8: .discarded
        case 9: .retried
        case 10: .replaced(try reader.submission())
        case 11: .mapped(temporary: try reader.text(), replacement: try reader.text())
        default: .unknown
        }
    }
}

extension ByteWriter {
    fileprivate mutating func put(_ duration: Duration) { put(duration.timeInterval.bitPattern) }

    fileprivate mutating func put(_ text: String?) { put(text) { $0.put($1) } }

    fileprivate mutating func put(_ lane: OutboxLane) {
        put(lane.name)
        put(lane.key)
    }

    fileprivate mutating func put(_ submission: OutboxEntry.Submission) {
        put(submission.name)
        put(submission.version)
        put(submission.subject)
        put(all: submission.references) { $0.put($1) }
        put(submission.creates)
        put(submission.supersedes ?? OutboxEntry.noCommand)
        put(submission.delivery)
        put(submission.date)
        put(submission.payload)
    }
}

extension ByteReader {
    /// A number of attempts; bounded, because further attempts are added to it.
    fileprivate mutating func attempts() throws(Foreign) -> Int { min(max(0, try int()), 1_000_000) }

    fileprivate mutating func duration() throws(Foreign) -> Duration { Duration(saturating: Double(bitPattern: try number())) }

    fileprivate mutating func optionalID() throws(Foreign) -> UUID? {
        let id = try id()
        return id == OutboxEntry.noCommand ? nil : id
    }

    fileprivate mutating func optionalText() throws(Foreign) -> String? {
        try optional { reader throws(Foreign) in try reader.text() }
    }

    fileprivate mutating func lane() throws(Foreign) -> OutboxLane { OutboxLane(name: try text(), key: try text()) }

    fileprivate mutating func submission() throws(Foreign) -> OutboxEntry.Submission {
        let (name, version, subject) = (try text(), try int(), try lane())
        var references: [String] = []
        try all { reader throws(Foreign) in references.append(try reader.text()) }
        return OutboxEntry.Submission(
            name: name, version: version, subject: subject, references: references, creates: try optionalText(),
            supersedes: try optionalID(), delivery: try id(), date: try date(), payload: Data(try raw()))
    }
}
