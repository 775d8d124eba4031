import StoreCore
internal import StorePlatform

/// An append-only file in two copies. An entry is either whole or absent, and damage affects only the entries it hits.
///
/// The cost of adding an entry does not depend on the file's size. Once history dominates, the file is rewritten in one step as a single
/// entry with the whole state. The owner holds the session's lock while it adds an entry.
struct Journal: Sendable {
    /// An entry, which the file frames with a marker, its length, its number, and a checksum.
    struct Entry: Sendable {
        var serial: UInt64
        var content: ArraySlice<UInt8>
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

    private static let marker: [UInt8] = [0xB7, 0x53, 0x4A, 0x01]
    private static let headSize = 24
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
        guard now != before || !hasRead else { return nil }
        hasRead = true
        var contents: [[UInt8]] = []
        for number in copies.indices {
            copies[number] = Copy()
            do throws(TextStoreError) {
                let (bytes, status) = try SealedFile.contents(of: file(number), in: directory)
                copies[number].status = status
                // The copies differ only after damage or an interrupted write.
                if number > 0, Self.areEqual(bytes, contents[0]) {
                    copies[number] = copies[0]
                    copies[number].status = status
                } else {
                    take(bytes, number, &reading)
                }
                contents.append(bytes)
            } catch {
                copies[number].isDamaged = true
                contents.append([])
                reading.faults.append(error)
            }
        }
        merge(&reading)
        limit = Self.slack + 2 * (reading.entries.first?.content.count ?? 0)
        return reading
    }

    /// Compares two arrays with `memcmp`, because `==` compares byte by byte.
    private static func areEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        left.count == right.count && memcmp(left, right, left.count) == 0
    }

    /// Collects the whole entries of one copy.
    private mutating func take(_ bytes: [UInt8], _ number: Int, _ reading: inout Reading) {
        var position = 0
        var isBroken = false
        while position < bytes.count {
            if let entry = Self.entry(bytes, at: position) {
                reading.entries.append(entry)
                position = entry.content.endIndex
                copies[number].end = position
                copies[number].count += 1
            } else if Self.isTail(bytes, at: position), !(position + 1..<bytes.count).contains(where: { Self.entry(bytes, at: $0) != nil })
            {
                // A process was killed while it wrote this entry, so it was never reported as saved.
                break
            } else {
                isBroken = true
                position += 1
            }
        }
        guard isBroken else { return }
        copies[number].isDamaged = true
        let path = directory.path(of: file(number))
        reading.faults.append(TextStoreError(.damagedFile, "cannot read a part of \(path): it is damaged; the other parts are used"))
    }

    /// Returns the whole entry at an offset; `nil` without one.
    private static func entry(_ bytes: [UInt8], at position: Int) -> Entry? {
        guard bytes.count - position >= headSize, bytes[position..<position + 4].elementsEqual(marker) else { return nil }
        let (length, serial, sum) = bytes.withUnsafeBytes { raw in
            (
                UInt32(littleEndian: raw.loadUnaligned(fromByteOffset: position + 4, as: UInt32.self)),
                UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: position + 8, as: UInt64.self)),
                UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: position + 16, as: UInt64.self))
            )
        }
        let start = position + headSize
        // The length is compared before its conversion, because a 32-bit `Int` cannot represent every value.
        guard UInt64(length) <= UInt64(bytes.count - start), serial < .max else { return nil }
        let content = bytes[start..<start + Int(length)]
        guard content.withUnsafeBytes({ Checksum64.of($0, seed: serial) }) == sum else { return nil }
        return Entry(serial: serial, content: content)
    }

    /// Returns whether the file ends within an entry that begins at an offset.
    private static func isTail(_ bytes: [UInt8], at position: Int) -> Bool {
        let rest = bytes.count - position
        guard bytes[position..<min(bytes.count, position + 4)].elementsEqual(marker.prefix(rest)) else { return false }
        guard rest >= headSize else { return true }
        let length = bytes.withUnsafeBytes { UInt32(littleEndian: $0.loadUnaligned(fromByteOffset: position + 4, as: UInt32.self)) }
        return UInt64(length) > UInt64(rest - headSize)
    }

    /// Merges the entries of both copies into one order.
    private mutating func merge(_ reading: inout Reading) {
        // Copies restored from different backups may number different entries alike. Both count, that of the first copy last.
        let sorted = reading.entries.enumerated().sorted { ($0.element.serial, $1.offset) < ($1.element.serial, $0.offset) }
        reading.entries = []
        for (_, entry) in sorted {
            if let last = reading.entries.last, last.serial == entry.serial, last.content.elementsEqual(entry.content) { continue }
            reading.entries.append(entry)
        }
        serial = max(serial, reading.entries.last?.serial ?? 0)
        for number in copies.indices where copies[number].count != reading.entries.count { copies[number].isDamaged = true }
    }

    // MARK: Writing

    /// Whether history makes up enough of the files to slow each start.
    var isLong: Bool { copies.contains { $0.end > Self.slack && $0.count > 1 } }

    /// Rewrites the files without their history.
    mutating func shorten(_ whole: [UInt8]) throws(TextStoreError) -> [TextStoreError] { try save(whole, isWhole: true) }

    /// Adds an entry, to the first copy first.
    ///
    /// - Parameters:
    ///   - content: The entry.
    ///   - whole: The entry with the whole state, for a rewrite.
    /// - Returns: The fault if only the second copy could not be written; the entry is then saved nevertheless.
    /// - Throws: ``TextStoreError/Code/fileSystem`` if the first copy could not be written; the journal remains unchanged.
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
        let next = serial + 1
        let bytes = Self.framed(content, next)
        var faults: [TextStoreError] = []
        for number in copies.indices {
            do throws(StoreError) {
                if isWhole { try rewrite(bytes, number) } else { try append(bytes, number) }
            } catch {
                let failure = TextStoreError(.fileSystem, "cannot save a file of the session: \(error.message)", underlyingError: error)
                if number == 0 { throw failure }
                copies[number].isDamaged = true
                faults.append(failure)
            }
        }
        if isWhole { limit = Self.slack + 2 * bytes.count }
        serial = next
        return faults
    }

    private mutating func rewrite(_ bytes: [UInt8], _ number: Int) throws(StoreError) {
        try AtomicFile.write(bytes, as: file(number), in: directory, kind: SealedFile.temporaryKind, options: options)
        copies[number] = Copy(status: try directory.status(of: file(number)), end: bytes.count, count: 1)
    }

    private mutating func append(_ bytes: [UInt8], _ number: Int) throws(StoreError) {
        guard let handle = try DirectoryHandle(opening: directory) else {
            throw .fileSystem("opening directory", path: directory.path, errno: ENOENT)
        }
        // Hard links of a backup must keep the old content.
        let file = try WritableFile.unshared(file(number), in: handle, isCopied: true, mode: 0o600)
        let end = copies[number].end
        do throws(StoreError) {
            // A killed process may have left part of an entry here.
            if try file.status().size > end { try file.truncate(to: end) }
            try options.probe?(.created)
            try bytes.withUnsafeBufferPointer { bytes throws(StoreError) in try file.write(UnsafeRawBufferPointer(bytes), at: end) }
            try options.probe?(.written)
            if options.durability == .power { try file.synchronize() }
            copies[number] = Copy(status: try file.status(), end: end + bytes.count, count: copies[number].count + 1)
        } catch {
            // The next entry overwrites a partial one. If even the file's status is unavailable, the next comparison fails, and the file is
            // read again.
            try? file.truncate(to: end)
            copies[number].status = (try? file.status()) ?? copies[number].status
            throw error
        }
    }

    private static func framed(_ content: [UInt8], _ serial: UInt64) -> [UInt8] {
        var bytes = marker
        bytes.reserveCapacity(headSize + content.count)
        withUnsafeBytes(of: UInt32(content.count).littleEndian) { bytes.append(contentsOf: $0) }
        withUnsafeBytes(of: serial.littleEndian) { bytes.append(contentsOf: $0) }
        let sum = content.withUnsafeBytes { Checksum64.of($0, seed: serial) }
        withUnsafeBytes(of: sum.littleEndian) { bytes.append(contentsOf: $0) }
        bytes.append(contentsOf: content)
        return bytes
    }
}
