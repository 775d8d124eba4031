package import Foundation

/// A moment of the proleptic Gregorian calendar in UTC.
///
/// Foundation's formatters allocate and take microseconds, and every response has dates. The arithmetic of days follows Howard Hinnant's
/// "chrono-Compatible Low-Level Date Algorithms".
package struct CivilMoment: Equatable {
    var year: Int
    /// From 1.
    var month: Int
    /// From 1.
    var day: Int
    var hour = 0
    var minute = 0
    /// At most 59; a leap second is read as the second before it.
    var second = 0
    var millisecond = 0

    /// The moment of a date, truncated to milliseconds.
    package init(_ date: Date) {
        // Rounds to a sixteenth first: a binary fraction stores most milliseconds slightly early or late. Clamped to prevent an overflow.
        let milliseconds = Int64(max(-1e15, min(1e15, ((date.timeIntervalSince1970 * 16_000).rounded() / 16).rounded(.down))))
        let (days, inDay) = milliseconds.flooredDivision(by: 86_400_000)
        let (era, dayOfEra) = (days + 719_468).flooredDivision(by: 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        day = Int(dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
        month = Int(shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9)
        year = Int(yearOfEra + era * 400) + (month <= 2 ? 1 : 0)
        millisecond = Int(inDay % 1000)
        second = Int(inDay / 1000 % 60)
        minute = Int(inDay / 60_000 % 60)
        hour = Int(inDay / 3_600_000)
    }

    package init?(year: Int, month: Int, day: Int, hour: Int, minute: Int, second: Int) {
        guard (1...12).contains(month), (0...23).contains(hour), (0...59).contains(minute), (0...60).contains(second) else { return nil }
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        let length = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1]
        guard (1...length).contains(day) else { return nil }
        (self.year, self.month, self.day) = (year, month, day)
        (self.hour, self.minute, self.second) = (hour, minute, min(59, second))
    }

    /// The day of the week; Sunday is 0.
    var weekday: Int { Int((daysSince1970 + 4).flooredDivision(by: 7).remainder) }

    var beginsMonth: Bool { day == 1 && hour == 0 && minute == 0 && second == 0 && millisecond == 0 }

    package var date: Date {
        Date(timeIntervalSince1970: Double(daysSince1970 * 86_400 + Int64(hour * 3600 + minute * 60 + second)) + Double(millisecond) / 1000)
    }

    private var daysSince1970: Int64 {
        let shiftedYear = Int64(month <= 2 ? year - 1 : year)
        let (era, yearOfEra) = shiftedYear.flooredDivision(by: 400)
        let dayOfYear = Int64((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1)
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }
}

extension Int64 {
    /// The quotient and a remainder that is never negative.
    fileprivate func flooredDivision(by divisor: Int64) -> (quotient: Int64, remainder: Int64) {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }
}
