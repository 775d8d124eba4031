import Foundation
import Testing
import Trials
import StoreCore
import StorePlatform

@testable import StoreFiles

/// Tests O14, D4 and S9 on the bytes of a log of each format.
struct LogFormatTests {
    private static let formats = LogFormat.all

    private struct Entry: LogEntry, Hashable {
        let bytes: [UInt8]

        init(bytes: [UInt8]) { self.bytes = bytes }

        init(reading bytes: UnsafeRawBufferPointer) { self.bytes = Array(bytes) }

        func write(to writer: inout ByteWriter) { writer.append(bytes) }
    }

    /// A log of several appends, and where its entries are.
    private struct Sample {
        /// The records by append; the last append has one record.
        static let appends: [[String]] = [
            ["one"], ["two", "", "a longer record with some text"], ["four"], [String(repeating: "5", count: 300)],
        ]

        let format: LogFormat
        var bytes: [UInt8]
        /// The range of each entry, and its record.
        var entries: [(range: Range<Int>, record: String)] = []
        /// The end of each append.
        var ends = [LogFormat.headerSize]

        init(_ format: LogFormat) throws {
            self.format = format
            bytes = format.header
            for append in Self.appends {
                for record in append {
                    let start = entries.last?.range.upperBound ?? bytes.count
                    entries.append((start..<start + LogFormat.entryHeaderSize + record.utf8.count, record))
                }
                bytes += try format.encode(append.map { Entry(bytes: Array($0.utf8)) }, at: bytes.count, asOneAppendOf: append.count)
                ends.append(bytes.count)
            }
        }
    }

    private func read(_ bytes: [UInt8], as format: LogFormat, from base: Int = 0) throws -> LogFormat.Reading {
        try bytes.withUnsafeBytes { bytes in Result { () throws(LogFormat.Foreign) in try format.read(bytes, from: base) } }.get()
    }

    private struct NotFound: Error {}

    private func records(_ reading: LogFormat.Reading, _ bytes: [UInt8]) -> [String] {
        reading.contents.map { String(decoding: bytes[$0], as: UTF8.self) }
    }

    @Test(arguments: Self.formats) func `O14: a log cut at any byte keeps exactly its complete appends`(format: LogFormat) throws {
        let sample = try Sample(format)
        #expect(sample.bytes.count == sample.ends.last)
        for length in 0...sample.bytes.count {
            let bytes = Array(sample.bytes[..<length])
            let reading = try read(bytes, as: format)
            let whole = zip(sample.ends.dropFirst(), Sample.appends).filter { $0.0 <= length }.flatMap(\.1)
            #expect(records(reading, bytes) == whole, "cut at \(length)")
            #expect(reading.damages.isEmpty, "cut at \(length)")
            #expect(reading.end == sample.ends.last { $0 <= length } ?? 0, "cut at \(length)")
        }
    }

    @Test(arguments: Self.formats) func `O14: one flipped bit costs at most the record of its entry, and is reported`(format: LogFormat)
        throws
    {
        let sample = try Sample(format)
        for offset in sample.bytes.indices {
            for bit in 0..<8 {
                var bytes = sample.bytes
                bytes[offset] ^= 1 << bit
                let reading = try read(bytes, as: format)
                let kept = sample.entries.filter { !$0.range.contains(offset) }
                #expect(records(reading, bytes) == kept.map(\.record), "bit \(bit) of byte \(offset)")
                let damage = try #require(reading.damages.first, "bit \(bit) of byte \(offset)")
                #expect(reading.damages.count == 1)
                let damaged = sample.entries.first { $0.range.contains(offset) }?.range ?? 0..<LogFormat.headerSize
                #expect(damage.offset == damaged.lowerBound && damage.length == damaged.count, "bit \(bit) of byte \(offset)")
                #expect(reading.end == bytes.count)
            }
        }
    }

    @Test(arguments: Self.formats) func `O14: a read that begins after an append finds the later appends`(format: LogFormat) throws {
        let sample = try Sample(format)
        for (count, end) in sample.ends.enumerated() where end > LogFormat.headerSize {
            let reading = try read(Array(sample.bytes[end...]), as: format, from: end)
            #expect(records(reading, sample.bytes) == Sample.appends[count...].flatMap(\.self))
        }
    }

    @Test(arguments: Self.formats) func `O14: a copy of a log inside a damaged record is not mistaken for entries`(format: LogFormat) throws
    {
        let inner = try Sample(format)
        var bytes = format.header
        bytes += try format.encode([Entry(bytes: Array("first".utf8))], at: bytes.count, asOneAppendOf: 1)
        let damaged = bytes.count
        bytes += try format.encode([Entry(bytes: inner.bytes)], at: bytes.count, asOneAppendOf: 1)
        bytes += try format.encode([Entry(bytes: Array("last".utf8))], at: bytes.count, asOneAppendOf: 1)
        bytes[damaged + 4] ^= 1
        let reading = try read(bytes, as: format)
        #expect(records(reading, bytes) == ["first", "last"])
        #expect(reading.damages.map(\.length) == [LogFormat.entryHeaderSize + inner.bytes.count])
    }

    @Test(arguments: Self.formats) func `O14: after damage, entries are kept or cut off as whole appends`(format: LogFormat) throws {
        let sample = try Sample(format)
        var bytes = sample.bytes
        // The first entry is damaged, and the second append ends within its last record.
        bytes[sample.entries[0].range.lowerBound] ^= 1
        bytes = Array(bytes[..<(sample.ends[2] - 1)])
        let reading = try read(bytes, as: format)
        #expect(reading.contents.isEmpty)
        #expect(reading.damages.map(\.offset) == [LogFormat.headerSize])
        #expect(reading.end == sample.ends[1])
    }

    @Test(arguments: Self.formats) func `O14: a newer version and a foreign file are refused`(format: LogFormat) throws {
        var newer = try Sample(format).bytes
        newer[8] = 9
        let sum = newer.withUnsafeBytes { Checksum64.of(UnsafeRawBufferPointer(rebasing: $0[..<12])) }
        newer.replaceSubrange(12..<16, with: withUnsafeBytes(of: UInt32(truncatingIfNeeded: sum).littleEndian) { Array($0) })
        #expect(throws: LogFormat.Foreign.version(9)) { try read(newer, as: format) }
        // A damaged header of a newer version must not make its entries readable.
        for bytes in [Array("a text that some other program has written".utf8), [1], [UInt8](repeating: 255, count: 16)] {
            #expect(throws: LogFormat.Foreign.format) { try read(bytes, as: format) }
        }
    }

    @Test(arguments: Self.formats, [1, 30, 100, 4096])
    func `S17: a log is read in pieces of any size, also a damaged or torn one`(format: LogFormat, size: Int) throws {
        let sample = try Sample(format)
        let place = try TemporaryDirectory()
        let url = place.file("log"), path = url.path(percentEncoded: false)
        for offset in [nil, 2, 20, sample.bytes.count / 2, sample.bytes.count - 30] {
            for cut in [0, 1, 320] {
                var bytes = Array(sample.bytes.dropLast(cut))
                if let offset, offset < bytes.count { bytes[offset] ^= 1 }
                try Data(bytes).write(to: url)
                let expected = try read(bytes, as: format)
                guard let file = try OpenFile(reading: path) else { throw NotFound() }
                var found: [Entry] = []
                let (damages, end) = try LogFile<Entry>.read(file, format, pieceSize: size) { found.append($0) }
                #expect(found == expected.contents.map { Entry(bytes: Array(bytes[$0])) })
                #expect(damages == expected.damages && end == expected.end)
            }
        }
    }
}
