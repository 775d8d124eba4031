internal import Foundation
internal import RemoteHTTP

/// A lenient date parser for `Expires` (RFC 6265bis, Dates), which accepts tokens in any order.
struct CookieDate {
    private var time: (hour: Int, minute: Int, second: Int)?
    private var day: Int?
    private var month: Int?
    private var year: Int?

    static func parse(_ text: some Sequence<UInt8>) -> Date? {
        var date = CookieDate()
        var token: [UInt8] = []
        for byte in text {
            guard isDelimiter(byte) else {
                token.append(byte)
                continue
            }
            date.read(token[...])
            token.removeAll(keepingCapacity: true)
        }
        date.read(token[...])
        return date.date
    }

    private static func isDelimiter(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x09, 0x20...0x2F, 0x3B...0x40, 0x5B...0x60, 0x7B...0x7E: true
        default: false
        }
    }

    /// Assigns a token to the first missing part that it matches.
    private mutating func read(_ token: ArraySlice<UInt8>) {
        if token.isEmpty { return }
        if time == nil, let found = Self.time(token) {
            time = found
        } else if day == nil, let found = Self.number(token, digits: 1...2) {
            day = found
        } else if month == nil, let found = Self.month(token) {
            month = found
        } else if year == nil, let found = Self.number(token, digits: 2...4) {
            // Two digits: 70–99 means 1970–1999, 00–69 means 2000–2069.
            year = found < 70 ? found + 2000 : found < 100 ? found + 1900 : found
        }
    }

    private var date: Date? {
        // CivilMoment accepts a leap second, but RFC 6265bis does not.
        guard let time, let day, let month, let year, year >= 1601, time.second <= 59 else { return nil }
        return CivilMoment(year: year, month: month, day: day, hour: time.hour, minute: time.minute, second: time.second)?.date
    }

    /// Parses the leading digits; returns `nil` if their count is outside the range.
    private static func number(_ token: ArraySlice<UInt8>, digits: ClosedRange<Int>) -> Int? {
        let found = token.prefix { $0.isDigit }
        guard digits.contains(found.count) else { return nil }
        return found.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
    }

    private static func time(_ token: ArraySlice<UInt8>) -> (Int, Int, Int)? {
        let fields = token.split(separator: UInt8(ascii: ":"), maxSplits: 2, omittingEmptySubsequences: false)
        guard fields.count == 3, fields[0].allSatisfy(\.isDigit), fields[1].allSatisfy(\.isDigit),
            let hour = number(fields[0], digits: 1...2), let minute = number(fields[1], digits: 1...2),
            let second = number(fields[2], digits: 1...2)
        else { return nil }
        return (hour, minute, second)
    }

    private static func month(_ token: ArraySlice<UInt8>) -> Int? {
        let name = token.prefix(3).map { $0 | 0x20 }
        return months.firstIndex { name.elementsEqual($0.utf8) }.map { $0 + 1 }
    }

    private static let months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
}
