internal import Foundation
import StoreCore
internal import StoreFiles
internal import StorePlatform

/// An append-only file in two copies. An entry is either whole or absent, and damage affects only the entries it hits.
///
/// The cost of adding an entry does not depend on the file's size. Once history dominates, the file is rewritten in one step as a single
/// entry with the whole state. The owner holds the session's lock while it adds an entry.
struct Journal: Sendable {
    /// A numbered entry, of this file or of another log of the session.
    struct Entry: LogEntry {
        var serial: UInt64
        var content: [UInt8]

        init(serial: UInt64, content: [UInt8]) { (self.serial, self.content) = (serial, content) }

        init?(reading bytes: UnsafeRawBufferPointer) {
            var reader = ByteReader(bytes)
            // No entry could follow the one with the maximum number.
            guard let serial = try? reader.number(), serial < .max, let content = try? reader.take(reader.rest) else { return nil }
            self.init(serial: serial, content: Array(content))
        }

        func write(to writer: inout ByteWriter) {
            writer.put(serial)
            writer.append(content)
        }
    }

    /// The result of reading both copies.
    struct Reading: Sendable {
        /// The entries of either copy, each once, in order.
        var entries: [Entry] = []
        var faults: [TextStoreError] = []
    }

    /// The end and the number of the whole entries of one copy.
    private struct Copy: Sendable {
        var status: FileStatus?
        /// The offset of the end of the last whole entry.
        var end = 0
        var count = 0
        /// Whether the copy differs from the sequence of all whole entries.
        var isDamaged = false
        /// The reason why the copy must stay as it is: it has an intact header of another version, or no copy could be opened.
        var refusal: StoreError?
    }

    /// The name of the files, without the number of the copy.
    let name: String
    let directory: Directory
    let options: FileWriteOptions
    private var copies = [Copy](repeating: Copy(), count: 2)
    /// The number of the last entry.
    private(set) var serial: UInt64 = 0
    private var hasRead = false
    /// The size beyond which the files are rewritten.
    private var limit = Self.slack

    private static let headSize = LogFormat.headerSize + LogFormat.entryHeaderSize + 8
    private static let slack = 1 << 14

    init(name: String, directory: Directory, options: FileWriteOptions) {
        self.name = name
        self.directory = directory
        self.options = options
    }

    func file(_ number: Int) -> String { "\(name).\(number)" }

    // MARK: Reading

    /// Reads both copies; `nil` if they are unchanged since the last read.
    mutating func read() -> Reading? {
        var reading = Reading()
        let before = copies.map(\.status)
        let now = copies.indices.map { number in
            // A file without a status cannot be read either, and reading reports the fault.
            (try? directory.status(of: file(number))) ?? nil
        }
        let isUnread = copies.contains { $0.refusal != nil && $0.status == nil }
        guard now != before || !hasRead || isUnread else { return nil }
        hasRead = true
        var unreadable: [(number: Int, error: StoreError)] = []
        for number in copies.indices {
            copies[number] = Copy()
            let path = directory.path(of: file(number))
            do throws(StoreError) {
                guard let file = try OpenFile(reading: path) else { continue }
                let status = try file.status(), before = reading.entries.count
                // A directory or a pipe in the file's place counts as a damaged file.
                guard status.kind == .regular else { throw StoreError(.unreadableRecord, "\(path) is not a regular file; move it away") }
                copies[number].status = status
                let (damages, end) = try LogFile<Entry>.read(file, .texts) { reading.entries.append($0) }
                (copies[number].end, copies[number].count) = (end, reading.entries.count - before)
                guard let damage = damages.first else { continue }
                throw StoreError(.unreadableRecord, "\(path) is damaged at byte \(damage.offset); its other parts are used")
            } catch {
                copies[number].isDamaged = true
                if error.isOfOtherVersion { copies[number].refusal = error }
                let fault = TextStoreError.reading(error)
                if fault.code == .fileSystem { unreadable.append((number, error)) }
                reading.faults.append(fault)
            }
        }
        // A file that cannot be read now may be intact, so it is replaced only if the other copy has the entries.
        if reading.entries.isEmpty { for (number, error) in unreadable { copies[number] = Copy(isDamaged: true, refusal: error) } }
        merge(&reading)
        limit = Self.slack + 2 * (reading.entries.first?.content.count ?? 0)
        return reading
    }

    /// Merges the entries of both copies into one order.
    private mutating func merge(_ reading: inout Reading) {
        // Copies restored from different backups may number different entries alike. Both count, that of the first copy last.
        let sorted = reading.entries.enumerated().sorted { ($0.element.serial, $1.offset) < ($1.element.serial, $0.offset) }
        reading.entries = []
        for (_, entry) in sorted {
            if let last = reading.entries.last, last.serial == entry.serial, Self.areEqual(last.content, entry.content) { continue }
            reading.entries.append(entry)
        }
        serial = max(serial, reading.entries.last?.serial ?? 0)
        for number in copies.indices where copies[number].count != reading.entries.count { copies[number].isDamaged = true }
    }

    /// Compares two arrays with `memcmp`, because `==` compares byte by byte.
    private static func areEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        left.count == right.count && memcmp(left, right, left.count) == 0
    }

    // MARK: Writing

    /// Whether a copy must stay as it is, so that the journal cannot be written.
    var isRefused: Bool { copies.contains { $0.refusal != nil } }

    /// Whether history makes up enough of the files to slow each start.
    var isLong: Bool { !isRefused && copies.contains { $0.end > Self.slack && $0.count > 1 } }

    /// Rewrites the files without their history.
    mutating func shorten(_ whole: [UInt8]) throws(TextStoreError) -> [TextStoreError] { try save(whole, isWhole: true) }

    /// Adds an entry, to the first copy first, or rewrites the files as one entry with the whole state.
    ///
    /// - Returns: The fault if only the second copy could not be written; the entry is then saved nevertheless.
    /// - Throws: ``TextStoreError/Code/fileSystem`` if the first copy could not be written, or no copy could be read;
    ///   ``TextStoreError/Code/damagedFile`` if a copy is of another version. The journal remains unchanged.
    mutating func add(_ content: [UInt8], whole: () -> [UInt8]) throws(TextStoreError) -> [TextStoreError] {
        let mustRewrite = copies.contains { $0.isDamaged || $0.status == nil || $0.end > limit }
        if !mustRewrite {
            do throws(TextStoreError) { return try save(content, isWhole: false) } catch {
                // A file that cannot grow, or an almost full disk, may still accept the state without its history.
                guard copies[0].end > Self.headSize + whole().count else { throw error }
            }
        }
        return try save(whole(), isWhole: true)
    }

    private mutating func save(_ content: [UInt8], isWhole: Bool) throws(TextStoreError) -> [TextStoreError] {
        // Another version of the framework, or a later start, can read the copy, so it is never overwritten.
        if let refusal = copies.lazy.compactMap(\.refusal).first { throw .saving(refusal) }
        let entry = Entry(serial: serial + 1, content: content)
        var faults: [TextStoreError] = []
        for number in copies.indices {
            do throws(StoreError) {
                if isWhole { try rewrite(entry, number) } else { try append(entry, number) }
            } catch {
                if number == 0 { throw .saving(error) }
                copies[number].isDamaged = true
                faults.append(.saving(error))
            }
        }
        if isWhole { limit = Self.slack + 2 * (content.count + Self.headSize) }
        serial = entry.serial
        return faults
    }

    private mutating func rewrite(_ entry: Entry, _ number: Int) throws(StoreError) {
        let bytes = try LogFormat.texts.encode([entry], at: 0)
        try AtomicFile.write(bytes, as: file(number), in: directory, kind: SealedFile.session.temporaryKind, options: options)
        copies[number] = Copy(status: try directory.status(of: file(number)), end: bytes.count, count: 1)
    }

    private mutating func append(_ entry: Entry, _ number: Int) throws(StoreError) {
        guard let handle = try DirectoryHandle(opening: directory) else {
            throw .fileSystem("opening directory", path: directory.path, errno: ENOENT)
        }
        let end = copies[number].end
        var log = LogFile<Entry>(file(number), .texts)
        try log.resume(at: end, in: handle)
        do throws(StoreError) {
            try options.probe?(.created)
            try log.append([entry], durability: options.durability, in: handle)
            try options.probe?(.written)
            copies[number] = Copy(status: try log.file?.status(), end: log.position, count: copies[number].count + 1)
        } catch {
            // The next entry overwrites a partial one. If even the file's status is unavailable, the next comparison fails, and the file is
            // read again.
            try? log.file?.truncate(to: end)
            copies[number].status = (try? log.file?.status()) ?? copies[number].status
            throw error
        }
    }
}
