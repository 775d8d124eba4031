internal import Foundation
internal import Synchronization

/// A typical handwritten text cache: a dictionary behind a lock, filled from disk on first access.
final class HandwrittenTexts: Sendable {
    struct Text: Sendable {
        var text: String
        var version: HandwrittenVersion
    }

    private let texts = Mutex<[String: Text]>([:])
    private let directory: URL

    init(directory: URL) { self.directory = directory }

    func text(for name: String) async throws -> Text {
        if let text = texts.withLock({ $0[name] }) { return text }
        let data = try Data(contentsOf: directory.appending(path: name))
        guard let version = HandwrittenVersion("1.0.0") else { throw CocoaError(.coderInvalidValue) }
        let text = Text(text: String(decoding: data, as: UTF8.self), version: version)
        texts.withLock { $0[name] = text }
        return text
    }

    func keep(_ text: Text, as name: String) { texts.withLock { $0[name] = text } }
}

/// Semantic Versioning 2.0.0 in one pass over UTF-8, with 64-bit numbers, keeping the original text.
///
/// Deliberately shares no code with `SemanticVersion`, which is compared with it.
struct HandwrittenVersion: Comparable, Sendable {
    var text: String
    var major: UInt64
    var minor: UInt64
    var patch: UInt64
    /// The range of the pre-release in the text; empty without one.
    var preRelease: Range<Int>

    init?(_ text: String) {
        self.text = text
        let parts = text.utf8.withContiguousStorageIfAvailable { Self.parse($0) }
        guard case let (major, minor, patch, preRelease)?? = parts else { return nil }
        (self.major, self.minor, self.patch, self.preRelease) = (major, minor, patch, preRelease)
    }

    private static func parse(_ bytes: UnsafeBufferPointer<UInt8>) -> (UInt64, UInt64, UInt64, Range<Int>)? {
        var position = 0
        guard let major = number(bytes, &position), dot(bytes, &position), let minor = number(bytes, &position), dot(bytes, &position),
            let patch = number(bytes, &position)
        else { return nil }
        var preRelease = position..<position
        if position < bytes.count, bytes[position] == UInt8(ascii: "-") {
            position += 1
            let start = position
            guard identifiers(bytes, &position, refusesZeros: true) else { return nil }
            preRelease = start..<position
        }
        if position < bytes.count, bytes[position] == UInt8(ascii: "+") {
            position += 1
            guard identifiers(bytes, &position, refusesZeros: false) else { return nil }
        }
        return position == bytes.count ? (major, minor, patch, preRelease) : nil
    }

    private static func number(_ bytes: UnsafeBufferPointer<UInt8>, _ position: inout Int) -> UInt64? {
        let start = position
        var value: UInt64 = 0
        while position < bytes.count, bytes[position] &- 0x30 <= 9 {
            let (product, overflow) = value.multipliedReportingOverflow(by: 10)
            let (sum, carry) = product.addingReportingOverflow(UInt64(bytes[position] &- 0x30))
            guard !overflow, !carry else { return nil }
            value = sum
            position += 1
        }
        guard position > start, bytes[start] != 0x30 || position == start + 1 else { return nil }
        return value
    }

    private static func dot(_ bytes: UnsafeBufferPointer<UInt8>, _ position: inout Int) -> Bool {
        guard position < bytes.count, bytes[position] == UInt8(ascii: ".") else { return false }
        position += 1
        return true
    }

    private static func identifiers(_ bytes: UnsafeBufferPointer<UInt8>, _ position: inout Int, refusesZeros: Bool) -> Bool {
        while true {
            let start = position
            var isNumber = true
            while position < bytes.count {
                let byte = bytes[position]
                if byte &- 0x30 > 9 {
                    guard (byte | 0x20) &- 0x61 < 26 || byte == UInt8(ascii: "-") else { break }
                    isNumber = false
                }
                position += 1
            }
            guard position > start else { return false }
            if refusesZeros, isNumber, bytes[start] == 0x30, position > start + 1 { return false }
            guard position < bytes.count, bytes[position] == UInt8(ascii: ".") else { return true }
            position += 1
        }
    }

    static func == (lhs: Self, rhs: Self) -> Bool { order(lhs, rhs) == 0 }

    static func < (lhs: Self, rhs: Self) -> Bool { order(lhs, rhs) < 0 }

    private static func order(_ lhs: Self, _ rhs: Self) -> Int {
        if lhs.major != rhs.major { return lhs.major < rhs.major ? -1 : 1 }
        if lhs.minor != rhs.minor { return lhs.minor < rhs.minor ? -1 : 1 }
        if lhs.patch != rhs.patch { return lhs.patch < rhs.patch ? -1 : 1 }
        if lhs.preRelease.isEmpty || rhs.preRelease.isEmpty {
            return lhs.preRelease.isEmpty == rhs.preRelease.isEmpty ? 0 : lhs.preRelease.isEmpty ? 1 : -1
        }
        let order = lhs.text.utf8.withContiguousStorageIfAvailable { left in
            rhs.text.utf8.withContiguousStorageIfAvailable { right in orderOfPreReleases(left[lhs.preRelease], right[rhs.preRelease]) }
        }
        return (order ?? nil) ?? 0
    }

    private static func orderOfPreReleases(_ left: Slice<UnsafeBufferPointer<UInt8>>, _ right: Slice<UnsafeBufferPointer<UInt8>>) -> Int {
        var (one, other) = (left, right)
        while !one.isEmpty, !other.isEmpty {
            let (a, b) = (one.prefix { $0 != UInt8(ascii: ".") }, other.prefix { $0 != UInt8(ascii: ".") })
            let (aIsNumber, bIsNumber) = (a.allSatisfy { $0 &- 0x30 <= 9 }, b.allSatisfy { $0 &- 0x30 <= 9 })
            if aIsNumber != bIsNumber { return aIsNumber ? -1 : 1 }
            if aIsNumber, a.count != b.count { return a.count < b.count ? -1 : 1 }
            if a.lexicographicallyPrecedes(b) { return -1 }
            if b.lexicographicallyPrecedes(a) { return 1 }
            (one, other) = (one.dropFirst(a.count + 1), other.dropFirst(b.count + 1))
        }
        return one.isEmpty ? (other.isEmpty ? 0 : -1) : 1
    }
}
