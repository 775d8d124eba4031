package import StoreCore
package import StorePlatform

/// One reader and writer of a log's file: the position up to which it has read, and the open file.
///
/// The caller holds the lock of the log during each call that writes. A value that is copied before a call and restored after it has never
/// made the call, as far as reading is concerned.
package struct LogFile<Entry: LogEntry>: Sendable {
    let name: String
    private let format: LogFormat
    /// Whether a file that is not a log counts as a damaged one.
    private let acceptsForeign: Bool
    private let mode: UInt16
    private let protection: FileProtection
    /// The file that was read; `nil` before the first reading.
    package private(set) var file: WritableFile?
    /// The offset up to which the log was read. Everything before it is complete.
    package private(set) var position = 0
    /// The size of the file, which is larger than the position if the log has a torn tail.
    private var size = 0
    /// The file if its name in the directory survives a loss of power.
    private var synchronizedFile: WritableFile?

    /// Makes a reader that has read nothing. Mode and protection are those of a new file.
    package init(
        _ name: String, _ format: LogFormat, acceptsForeign: Bool = false, mode: UInt16 = 0o600, protection: FileProtection = .inherited
    ) {
        (self.name, self.format, self.acceptsForeign, self.mode, self.protection) = (name, format, acceptsForeign, mode, protection)
    }

    /// A reader of the same log that has read nothing.
    init(copyOf other: LogFile) {
        self.init(other.name, other.format, acceptsForeign: other.acceptsForeign, mode: other.mode, protection: other.protection)
    }

    private func open(in folder: DirectoryHandle) throws(StoreError) -> WritableFile {
        // The file must have no second name, such as in a backup with hard links, because a change would be visible there too.
        try WritableFile.unshared(name, in: folder, isCopied: true, mode: mode, protection: protection)
    }

    /// The facts about a reading, apart from its entries.
    package struct Reading: Sendable {
        package var damages: [LogDamage] = []
        /// Whether the file has taken the place of the one that was read before, so that its first entry was the first one read.
        package var wasReplaced = false
    }

    /// Whether the log has no unread entries; needs no lock.
    var isUpToDate: Bool { file?.sizeIfNamed == position }

    // MARK: Reading

    /// Reads the entries behind the position, or all entries of a file that has replaced the one that was read.
    ///
    /// Reads piece by piece, so that a log is never in memory as a whole. Throws ``StoreError/Code/unreadableRecord`` for a file that is
    /// not a log of this version. Such a file is not changed.
    package mutating func read(in folder: DirectoryHandle, _ body: (Entry) -> Void) throws(StoreError) -> Reading {
        var reading = Reading()
        // A log that has become shorter is no longer the log that was read. A file of a disk that was removed has no status on some
        // systems, even if the disk is back.
        if let file, let size = file.size(ifNamed: name, in: folder), size >= position, (try? file.status()) != nil {
            self.size = size
        } else {
            reading.wasReplaced = file != nil
            let opened = try open(in: folder)
            (file, position, size) = (opened, 0, try opened.status().size)
        }
        guard size > position, let file else { return reading }
        (reading.damages, position) = try Self.scan(file, format, acceptsForeign, from: position, to: size, 1 << 18, body)
        return reading
    }

    /// Opens the file for appends behind a position up to which it was read otherwise. The name of the file survives a loss of power.
    package mutating func resume(at position: Int, in folder: DirectoryHandle) throws(StoreError) {
        let file = try open(in: folder)
        (self.file, self.position, size, synchronizedFile) = (file, position, try file.status().size, file)
    }

    /// Checks the format of the file, and creates a missing one; reads nothing.
    func check(in folder: DirectoryHandle) throws(StoreError) {
        let file = try open(in: folder)
        if try file.read(LogFormat.headerSize, at: 0) == format.header { return }
        var copy = LogFile(copyOf: self)
        _ = try copy.read(in: folder) { _ in }
    }

    /// Reads all entries of a file that need not be writable, such as that of a disk mounted read-only.
    package static func read(
        _ file: borrowing OpenFile, _ format: LogFormat, pieceSize: Int = 1 << 18, _ body: (Entry) -> Void
    ) throws(StoreError) -> (damages: [LogDamage], end: Int) {
        let size = try file.status().size
        return try scan(file, format, false, from: 0, to: size, pieceSize, body)
    }

    private static func scan(
        _ file: borrowing some OpenDescriptor & ~Copyable, _ format: LogFormat, _ acceptsForeign: Bool, from start: Int, to size: Int,
        _ pieceSize: Int, _ body: (Entry) -> Void
    ) throws(StoreError) -> (damages: [LogDamage], end: Int) {
        var damages: [LogDamage] = [], end = start
        var buffer = [UInt8](repeating: 0, count: min(size - start, pieceSize))
        while end < size {
            let piece = min(buffer.count, size - end), isLast = end + piece == size
            let found = try buffer.withUnsafeMutableBufferPointer { buffer throws(StoreError) in
                let buffer = UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[..<piece])
                // A file that was cut meanwhile ends earlier.
                let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<(try file.read(into: buffer, at: end))])
                do throws(LogFormat.Foreign) {
                    let found = try format.read(bytes, from: end, isAtEnd: isLast || bytes.count < piece)
                    for content in found.contents {
                        if let entry = Entry(reading: UnsafeRawBufferPointer(rebasing: bytes[content.shifted(by: -end)])) {
                            body(entry)
                        } else {
                            damages.append(LogDamage(content.lowerBound, content.count, "an entry is of another version of this program"))
                        }
                    }
                    return found
                } catch {
                    guard acceptsForeign, error == .format else { throw StoreError(unreadable: file.path, format, error) }
                    return LogFormat.Reading(damages: [LogDamage(0, size, "the file is not \(format.noun)")], end: size)
                }
            }
            damages += found.damages
            let isStuck = found.end == end
            end = found.end
            // Everything behind the end of the last piece is a torn tail.
            if isLast { break }
            // The append is longer than the buffer.
            if isStuck { buffer = [UInt8](repeating: 0, count: min(size - end, 2 * buffer.count)) }
        }
        return (damages, end)
    }

    // MARK: Writing

    /// Removes the files of interrupted replacements. The caller holds the lock of the log, so no other replacement runs.
    package static func removeOrphans(in folder: DirectoryHandle) throws(StoreError) {
        var orphans: [String] = []
        var entries = try folder.list()
        while let entry = try entries.next() {
            if TemporaryFile.isName(entry.name, kind: WritableFile.replacementKind) { orphans.append(entry.name) }
        }
        for name in orphans { try folder.remove(name) }
    }

    /// Cuts a torn tail, and appends entries in one write; an error leaves the log unchanged. The log was read, or written, under the same
    /// lock.
    ///
    /// - Parameter asOne: Whether a reader finds all entries or none. Otherwise an interrupted write leaves the first of them.
    package mutating func append(
        _ entries: [Entry], asOne: Bool = true, durability: Durability, in folder: DirectoryHandle
    ) throws(StoreError) {
        guard !entries.isEmpty, let file else { return }
        // A header without entries is the rest of a torn append, and is written again.
        let start = position <= LogFormat.headerSize ? 0 : position
        let bytes = try format.encode(entries, at: start, asOneAppendOf: asOne ? entries.count : nil)
        if size > start { try file.truncate(to: start) }
        do throws(StoreError) {
            try file.write(bytes, at: start)
            if durability == .power {
                try file.synchronize()
                if synchronizedFile !== file { try folder.synchronize() }
                synchronizedFile = file
            }
        } catch {
            // A file without new bytes is not shortened: that would wake its followers, and their attempts would fail in the same way.
            // Shortening needs no space. If it fails, the next append cuts the incomplete entry.
            if (try? file.status().size) != start, (try? file.truncate(to: start)) == nil { size = max(size, start + bytes.count) }
            throw error
        }
        position = start + bytes.count
        size = position
    }

    package func synchronize() throws(StoreError) { try file?.synchronize() }

    /// Replaces the log in one step with one that has other entries. An error leaves the old log, unless only the synchronization of the
    /// directory failed.
    package mutating func replace(
        by entries: some Sequence<Entry>, durability: Durability, in folder: DirectoryHandle
    ) throws(StoreError) {
        let options = FileWriteOptions(durability: durability, protection: protection, mode: mode)
        var new = try TemporaryFile.create(in: folder, kind: WritableFile.replacementKind, options: options)
        var end = 0
        // In portions, so that a log is never in memory as a whole. A log without entries stays empty, without a header: if the header were
        // damaged, the file could not be told from a foreign one.
        var entries = entries.makeIterator()
        while true {
            var portion: [Entry] = []
            while portion.count < 1_024, let entry = entries.next() { portion.append(entry) }
            if portion.isEmpty { break }
            let bytes = try format.encode(portion, at: end)
            try new.write(bytes)
            end += bytes.count
        }
        try new.commit(as: name)
        let file = try WritableFile(name, in: folder, mode: mode)
        (self.file, position, size) = (file, end, end)
        if durability == .power { synchronizedFile = file }
    }
}

extension Range<Int> {
    fileprivate func shifted(by distance: Int) -> Range { lowerBound + distance..<upperBound + distance }
}

extension StoreError {
    /// Creates the error for a file that is not a log of this version.
    fileprivate init(unreadable path: String, _ format: LogFormat, _ reason: LogFormat.Foreign) {
        switch reason {
        case .format:
            self.init(
                .unreadableRecord, "\(path.escapedForDisplay()) is not \(format.noun); move it away or choose another directory")
        case .version(let version):
            self.init(OtherVersion(found: version, known: format.version), of: path, format.noun)
        }
    }
}
