package import Foundation

/// The dates of JSON in the format of RFC 3339 §5.6, such as `2030-01-01T00:00:00Z`.
package enum RFC3339 {
    /// Formats a date as `1994-11-06T08:49:37Z`, with milliseconds unless they are zero.
    package static func format(_ date: Date) -> String {
        let moment = CivilMoment(date)
        let fraction = moment.millisecond == 0 ? "" : "." + padded(moment.millisecond, 3)
        return "\(padded(moment.year, 4))-\(padded(moment.month, 2))-\(padded(moment.day, 2))T"
            + "\(padded(moment.hour, 2)):\(padded(moment.minute, 2)):\(padded(moment.second, 2))\(fraction)Z"
    }

    /// Reads a date with `t` and `z` in either case, a fraction of any length, or an offset; `nil` for any other text.
    ///
    /// A leap second counts as the second after it, and is valid only at the end of a month in UTC (§5.7).
    package static func date(_ text: String) -> Date? {
        var scanner = Scanner(rest: Array(text.utf8)[...])
        guard let year = scanner.number(4), scanner.skip("-"), let month = scanner.number(2), scanner.skip("-"),
            let day = scanner.number(2), scanner.skip("Tt"), let hour = scanner.number(2), scanner.skip(":"),
            let minute = scanner.number(2), scanner.skip(":"), let second = scanner.number(2)
        else { return nil }
        guard let fraction = scanner.fraction(), let offset = scanner.offset(), scanner.rest.isEmpty,
            let moment = CivilMoment(year: year, month: month, day: day, hour: hour, minute: minute, second: second)
        else { return nil }
        let whole = moment.date.addingTimeInterval(Double((second == 60 ? 1 : 0) - offset * 60))
        if second == 60, !CivilMoment(whole).beginsMonth { return nil }
        return whole.addingTimeInterval(fraction)
    }

    private struct Scanner {
        var rest: ArraySlice<UInt8>

        mutating func number(_ count: Int) -> Int? {
            guard rest.count >= count, rest.prefix(count).allSatisfy(\.isDigit) else { return nil }
            defer { rest = rest.dropFirst(count) }
            return rest.prefix(count).reduce(0) { $0 * 10 + Int($1 - 0x30) }
        }

        mutating func skip(_ characters: String) -> Bool {
            guard let first = rest.first, characters.utf8.contains(first) else { return false }
            rest = rest.dropFirst()
            return true
        }

        /// Reads a fraction of a second, 0 without one; `nil` for a point without digits.
        mutating func fraction() -> Double? {
            guard skip(".") else { return 0 }
            let digits = rest.prefix(while: \.isDigit)
            guard !digits.isEmpty else { return nil }
            rest = rest.dropFirst(digits.count)
            return digits.reversed().reduce(0) { ($0 + Double($1 - 0x30)) / 10 }
        }

        /// Reads the offset from UTC in minutes.
        mutating func offset() -> Int? {
            if skip("Zz") { return 0 }
            let isNegative = rest.first == UInt8(ascii: "-")
            guard skip("+-"), let hours = number(2), skip(":"), let minutes = number(2), hours < 24, minutes < 60 else { return nil }
            return (isNegative ? -1 : 1) * (hours * 60 + minutes)
        }
    }
}
