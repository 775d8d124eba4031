internal import Foundation
import StoreCore
internal import StoreFiles
internal import StorePlatform

/// The evidence of a session: a log to which records are appended, and that is never rewritten.
///
/// The wording of a text is saved with its first record only. The caller holds the session's lock while it appends.
struct EvidenceLog {
    private let log: SharedLog<Journal.Entry>
    private let durability: Durability
    /// The number of the last record.
    private var last: UInt64 = 0
    /// The digests of the saved wordings.
    private var wordings: Set<String> = []
    /// The faults that the ledger has not reported yet.
    var faults: [TextStoreError] = []

    init(_ directory: Directory, _ options: FileWriteOptions) {
        durability = options.durability
        var place = SharedLog<Journal.Entry>.Options()
        (place.name, place.lockName, place.durability) = ("evidence", "evidence.lock", options.durability)
        log = SharedLog(directory, .texts, place)
    }

    var isUpToDate: Bool { log.isUpToDate }

    /// Appends a record, and returns its number, which exceeds a position.
    mutating func append(_ record: AcceptanceRecord, after position: UInt64) throws(TextStoreError) -> UInt64 {
        do throws(StoreError) {
            return try log.transact { transaction throws(StoreError) in
                learn(transaction.news)
                var saved = record
                if wordings.contains(record.acceptance.digest) { saved.wording = nil }
                let entry = Journal.Entry(serial: max(last, position) + 1, content: try saved.encoded())
                try transaction.append([entry], durability: durability)
                learn(SharedLog.News(entries: [entry]))
                return entry.serial
            }
        } catch {
            throw .saving(error)
        }
    }

    mutating func read(after position: UInt64) throws(TextStoreError) -> [(UInt64, AcceptanceRecord)] {
        if isUpToDate, last <= position { return [] }
        return try entries(after: position).filter { $0.serial > position }.compactMap { entry in entry.record.map { (entry.serial, $0) } }
    }

    /// Returns all records in their order, each acceptance with its wording.
    mutating func all() throws(TextStoreError) -> [AcceptanceRecord] {
        let records = try entries().compactMap(\.record)
        var wordings: [String: String] = [:]
        for record in records { if let wording = record.wording { wordings[record.acceptance.digest] = wording } }
        return records.map { record in
            var record = record
            record.wording = wordings[record.acceptance.digest]
            return record
        }
    }

    /// Returns at least the entries after a position, or all of them. Reads only the news if they include these.
    private mutating func entries(after position: UInt64? = nil) throws(TextStoreError) -> [Journal.Entry] {
        do throws(StoreError) {
            return try log.transact(creating: false) { transaction throws(StoreError) in
                let hasRead = last
                learn(transaction.news)
                return position.map { hasRead <= $0 } ?? false ? transaction.news.entries : try transaction.all()
            } ?? []
        } catch {
            do throws(StoreError) {
                // Entries are appended whole, so the log is read without its lock if the lock is unavailable, as in a read-only directory.
                guard error.code == .fileSystem, let file = try OpenFile(reading: log.path), try file.status().kind == .regular else {
                    throw error
                }
                var entries: [Journal.Entry] = []
                _ = try LogFile<Journal.Entry>.read(file, .texts) { entries.append($0) }
                return entries
            } catch {
                throw .reading(error)
            }
        }
    }

    private mutating func learn(_ news: SharedLog<Journal.Entry>.News) {
        // A wording may have been in a damaged part, so the next acceptance saves it again.
        if !news.damages.isEmpty || news.wasReplaced { wordings = [] }
        for entry in news.entries {
            last = max(last, entry.serial)
            if let record = entry.record, record.wording != nil { wordings.insert(record.acceptance.digest) }
        }
        for damage in news.damages {
            faults.append(
                TextStoreError(
                    .damagedFile,
                    "cannot read the evidence of acceptances: \(log.path) is damaged at byte \(damage.offset); its other records are used"))
        }
    }
}

extension Journal.Entry {
    fileprivate var record: AcceptanceRecord? { try? JSONDecoder().decode(AcceptanceRecord.self, from: Data(content)) }
}

extension AcceptanceRecord {
    /// Returns the record as JSON, so that later versions can add members.
    fileprivate func encoded() throws(StoreError) -> [UInt8] {
        do { return Array(try JSONEncoder().encode(self)) } catch {
            throw StoreError(.fileSystem, "cannot encode a record of an acceptance: its date is no number; correct the device's clock")
        }
    }
}
