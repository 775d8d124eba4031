package import Foundation

/// The dates of HTTP fields (RFC 9110 §5.6.7): writes one format, reads three.
package enum HTTPDate {
    /// Formats a date as `Sun, 06 Nov 1994 08:49:37 GMT`, truncated to seconds.
    package static func format(_ date: Date) -> String {
        let moment = CivilMoment(date)
        return "\(days[moment.weekday]), \(padded(moment.day, 2)) \(months[moment.month - 1]) \(padded(moment.year, 4)) "
            + "\(padded(moment.hour, 2)):\(padded(moment.minute, 2)):\(padded(moment.second, 2)) GMT"
    }

    /// Parses IMF-fixdate, the obsolete RFC 850 format and the format of C's `asctime`; `nil` for any other text and for a nonexistent day.
    ///
    /// A two-digit year more than 50 years ahead of the present moment means the last year with these digits.
    package static func parse(_ text: some StringProtocol, now: Date) -> Date? {
        // The grammar has single spaces; only `asctime` fills a day of one digit with another space.
        let words = text.split(omittingEmptySubsequences: false, whereSeparator: { $0 == " " })
        switch words.count {
        case 6 where words[0].hasSuffix(","):
            guard words[5] == "GMT", isDay(words[0].dropLast(), short: true), words[1].utf8.count == 2 else { return nil }
            return moment(year: number(words[3], digits: 4), month: words[2], day: number(words[1], digits: 2), time: words[4])
        case 4 where words[0].hasSuffix(","):
            let parts = words[1].split(separator: "-", omittingEmptySubsequences: false)
            guard words[3] == "GMT", isDay(words[0].dropLast(), short: false), parts.count == 3,
                let year = number(parts[2], digits: 2)
            else { return nil }
            return moment(
                year: fullYear(year, now: now), month: parts[1], day: number(parts[0], digits: 2), time: words[2])
        case 5 where isDay(words[0], short: true):
            return moment(year: number(words[4], digits: 4), month: words[1], day: number(words[2], digits: 2), time: words[3])
        case 6 where isDay(words[0], short: true) && words[2].isEmpty:
            return moment(year: number(words[5], digits: 4), month: words[1], day: number(words[3], digits: 1), time: words[4])
        default:
            return nil
        }
    }

    private static let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    private static let longDays = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    private static func isDay(_ name: some StringProtocol, short: Bool) -> Bool {
        (short ? days : longDays).contains { $0 == name }
    }

    private static func number(_ text: some StringProtocol, digits: Int) -> Int? {
        guard text.utf8.count == digits, text.utf8.allSatisfy(\.isDigit) else { return nil }
        return Int(text)
    }

    private static func fullYear(_ year: Int, now: Date) -> Int {
        let thisYear = CivilMoment(now).year
        let candidate = thisYear - thisYear % 100 + year
        return candidate > thisYear + 50 ? candidate - 100 : candidate
    }

    private static func moment(
        year: Int?, month: some StringProtocol, day: Int?, time: some StringProtocol
    ) -> Date? {
        let parts = time.split(separator: ":", omittingEmptySubsequences: false)
        guard let year, let day, let month = months.firstIndex(where: { $0 == month }), parts.count == 3,
            let hour = number(parts[0], digits: 2), let minute = number(parts[1], digits: 2), let second = number(parts[2], digits: 2)
        else { return nil }
        return CivilMoment(year: year, month: month + 1, day: day, hour: hour, minute: minute, second: second)?.date
    }
}

func padded(_ number: Int, _ width: Int) -> String {
    let digits = String(number.magnitude)
    return (number < 0 ? "-" : "") + String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
}

/// The delay of a `Retry-After` field (RFC 9110 §10.2.3).
package enum RetryAfter {
    /// Returns the requested delay after the response; zero if the moment has passed, `nil` if the field is missing or malformed.
    ///
    /// A date counts from the response's own `Date`, so that the clock of this machine, `now`, matters only without a valid one.
    package static func delay(in fields: HTTPFields, now: Date) -> Duration? {
        let values = fields.values(of: "Retry-After")
        if values.isEmpty { return nil }
        let sent = fields.values(of: "Date").first.flatMap { HTTPDate.parse($0, now: now) } ?? now
        // RFC 9110 does not define a repeated field; the longest delay is the safe choice.
        return values.compactMap { delay(of: $0, now: sent) }.max()
    }

    private static func delay(of value: String, now: Date) -> Duration? {
        if let seconds = DeltaSeconds.read(value) { return .seconds(seconds) }
        guard let date = HTTPDate.parse(value, now: now) else { return nil }
        // Rounds up, because the date has whole seconds and the client must not return early.
        return .seconds(max(0, Int64(date.timeIntervalSince(now).rounded(.up))))
    }
}
