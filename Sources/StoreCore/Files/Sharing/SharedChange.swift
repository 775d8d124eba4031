internal import StoreCore
internal import StorePlatform

/// An entry in the log of a shared directory.
///
/// A change is appended before the record's file is renamed, both under one lock. A process that is killed in between leaves at worst a
/// superfluous change, which costs one load.
enum SharedChange: LogEntry, Hashable {
    /// The beginning of a log, and of its numbers after the loss of the latest changes.
    case began(ChangeNumbers)
    /// A record was saved or removed. The key is its canonical JSON; `nil` if it is long, because the log holds many keys. The schema is
    /// that of the new record.
    case changed(Revision, SHA256.Digest, key: [UInt8]?, schema: Int64)
    case removedAll(Revision)
    /// No key without a file was changed after this number.
    case floor(UInt64)

    static let keyLimit = 184

    var revision: Revision? {
        switch self {
        case .changed(let revision, _, _, _), .removedAll(let revision): revision
        case .began, .floor: nil
        }
    }

    func write(to writer: inout ByteWriter) {
        switch self {
        case .began(let numbers):
            writer.put(0 as UInt8)
            writer.put(numbers.start)
            writer.put(numbers.head)
            writer.put(numbers.floor)
        case .changed(let revision, let digest, let key, let schema):
            writer.put(1 as UInt8)
            writer.put(revision.number)
            writer.put(revision.writer)
            writer.put(digest)
            writer.put(key) { writer, key in key.withUnsafeBytes { writer.put($0) } }
            writer.put(UInt64(bitPattern: schema))
        case .removedAll(let revision):
            writer.put(2 as UInt8)
            writer.put(revision.number)
            writer.put(revision.writer)
        case .floor(let number):
            writer.put(3 as UInt8)
            writer.put(number)
        }
    }

    init?(reading bytes: UnsafeRawBufferPointer) {
        var reader = ByteReader(bytes)
        do throws(ByteReader.Foreign) {
            switch try reader.byte() {
            case 0:
                self = .began(ChangeNumbers(start: try reader.number(), head: try reader.number(), floor: try reader.number()))
            case 1:
                self = .changed(
                    try reader.revision(), try reader.digest(),
                    key: try reader.optional { reader throws(ByteReader.Foreign) in Array(try reader.raw()) },
                    schema: Int64(bitPattern: try reader.number()))
            case 2: self = .removedAll(try reader.revision())
            case 3: self = .floor(try reader.number())
            default: return nil
            }
        } catch {
            return nil
        }
    }
}

extension ByteReader {
    fileprivate mutating func revision() throws(Foreign) -> Revision { Revision(number: try number(), writer: try number()) }
}

struct ChangeNumbers: Hashable, Sendable {
    /// The number before the first change of the first log. A log that takes the place of a removed one has another start.
    var start: UInt64
    /// The number of the latest change.
    var head: UInt64
    /// No key without a file was changed after this number.
    var floor: UInt64 = 0

    /// The numbers of a new log, at a time in nanoseconds since 1970. A log that replaces a removed one starts above the numbers of the
    /// removed log, because no log receives a change in each microsecond.
    static func beginning(_ now: Int64) -> ChangeNumbers {
        let start = UInt64(max(1000, now) / 1000)
        return ChangeNumbers(start: start, head: start)
    }

    mutating func take(_ entry: SharedChange) {
        switch entry {
        case .began(let numbers): self = numbers
        case .changed(let revision, _, _, _): head = revision.number
        // A compacted log begins with the latest floor, which may be higher than those of the changes behind it.
        case .removedAll(let revision): (head, floor) = (revision.number, max(floor, revision.number))
        case .floor(let number): floor = max(floor, number)
        }
    }
}

/// The revision in a record's file. It begins the details in JSON, where programs of older versions ignore it.
enum RecordRevision {
    private static let opening = Array(#"{"revision":""#.utf8)

    /// The length of the part that holds the revision.
    static let size = opening.count + 33

    /// Returns details that begin with a revision. The other details are a JSON object with at least one member.
    static func adding(_ revision: Revision, to details: some Collection<UInt8>) -> [UInt8] {
        var bytes = opening
        bytes.reserveCapacity(size + details.count)
        for number in [revision.number, revision.writer] {
            let digits = String(number, radix: 16)
            bytes.append(contentsOf: repeatElement(0x30, count: 16 - digits.utf8.count))
            bytes.append(contentsOf: digits.utf8)
        }
        bytes.append(0x22)
        bytes.append(0x2C)
        bytes.append(contentsOf: details.dropFirst())
        return bytes
    }

    /// Reads the revision at the beginning of details; `nil` if there is none.
    static func read(_ details: some RandomAccessCollection<UInt8>) -> Revision? {
        guard details.count >= size, details.starts(with: opening) else { return nil }
        let digits = Array(details.dropFirst(opening.count).prefix(32))
        return digits.withUnsafeBufferPointer { digits in
            guard let number = UInt64(hexadecimal: digits[..<16]), let writer = UInt64(hexadecimal: digits[16...]) else { return nil }
            return Revision(number: number, writer: writer)
        }
    }

    /// Returns the details without the revision, as they were given to `adding(_:to:)`.
    static func removing(from details: some RandomAccessCollection<UInt8>) -> [UInt8] {
        guard read(details) != nil else { return Array(details) }
        return [0x7B] + details.dropFirst(size + 1)
    }
}
