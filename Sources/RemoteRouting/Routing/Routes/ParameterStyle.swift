public import Foundation
internal import RemoteHTTP

/// The style of lists and dates among parameters.
///
/// ```swift
/// var options = RouteOptions()
/// options.parameterStyle = ParameterStyle(lists: .brackets, dates: .iso8601)
/// ```
public struct ParameterStyle: Sendable {
    /// The style of a list in a query or form; JSON has its own lists.
    public enum Lists: Hashable, Sendable {
        /// `tag=a&tag=b`: the name occurs once for each value.
        case repeatedName
        /// `tag[]=a&tag[]=b`: the name occurs once for each value, with brackets.
        case brackets
        /// `tag[0]=a&tag[1]=b`; an absent value still counts.
        case indices
        /// `tag=a,b`, with the comma percent-encoded; a value that contains a comma is refused.
        case commas
    }

    /// The form of a date in a query, in a form, and in JSON fields.
    public enum Dates: Sendable {
        /// `2001-09-09T01:46:40Z` in UTC, with milliseconds unless they are zero (RFC 3339).
        case iso8601
        /// Whole seconds since 1970, rounded down.
        case secondsSince1970
        /// Whole milliseconds since 1970, rounded down.
        case millisecondsSince1970
        /// The date format of HTTP fields: `Sun, 09 Sep 2001 01:46:40 GMT` (RFC 9110 §5.6.7).
        case http
        /// The text that the closure returns.
        case custom(@Sendable (Date) -> String)
    }

    /// The style of lists in a query or form.
    public var lists: Lists

    /// The style of dates; `nil` refuses dates, because servers differ and a wrong guess goes unnoticed.
    public var dates: Dates?

    /// Creates a style.
    ///
    /// - Parameters:
    ///   - lists: The style of lists in a query or form.
    ///   - dates: The style of dates; `nil` refuses dates.
    public init(lists: Lists = .repeatedName, dates: Dates? = nil) {
        self.lists = lists
        self.dates = dates
    }
}

extension ParameterStyle {
    /// Returns the text of a single value, and whether JSON writes it without quotes.
    func scalar(of value: ParameterValue, named name: String) throws(RouteFault) -> (text: String, isLiteral: Bool) {
        switch value.kind {
        case .text(let text): return (text, false)
        case .flag(let flag): return (flag ? "true" : "false", true)
        case .integer(let digits), .fraction(let digits): return (digits, true)
        case .date(let date): return try scalar(of: date, name: name)
        case .notFinite:
            throw RouteFault(.notFinite, in: "parameter \(name)", "it is NaN or infinite, which no server can parse; leave it out")
        case .absent, .valueless, .list, .fields:
            throw RouteFault(.unsupportedShape, in: "parameter \(name)", "one value is needed here; pass a text, number, date or flag")
        }
    }

    private func scalar(of date: Date, name: String) throws(RouteFault) -> (text: String, isLiteral: Bool) {
        guard let dates else {
            throw RouteFault(
                .noDateStrategy, in: "parameter \(name)",
                "it is a date without a style; set ParameterStyle(dates:) to the form that the server expects")
        }
        let seconds = date.timeIntervalSince1970
        // The years of other dates do not fit into four digits, and their arithmetic could overflow.
        guard (-62_167_219_200..<2.5e11).contains(seconds) else {
            throw RouteFault(.notFinite, in: "parameter \(name)", "the date is out of range; check it")
        }
        switch dates {
        case .iso8601: return (RFC3339.format(date), false)
        case .secondsSince1970: return (String(Int64(seconds.rounded(.down))), true)
        case .millisecondsSince1970: return (String(Int64((CivilMoment(date).date.timeIntervalSince1970 * 1000).rounded())), true)
        case .http: return (HTTPDate.format(date), false)
        case .custom(let write): return (write(date), false)
        }
    }
}
