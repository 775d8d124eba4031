public import Foundation

/// How lists and dates are written among parameters.
///
/// ```swift
/// var options = RouteOptions()
/// options.parameterStyle = ParameterStyle(lists: .brackets, dates: .iso8601)
/// ```
public struct ParameterStyle: Sendable {
    /// How a list is written in a query or form; JSON has lists of its own.
    public enum Lists: Hashable, Sendable {
        /// `tag=a&tag=b`
        case repeatedName
        /// `tag[]=a&tag[]=b`
        case brackets
        /// `tag[0]=a&tag[1]=b`; an absent value keeps its number.
        case indices
        /// `tag=a,b`, with the comma escaped like any other; a value that has a comma itself is refused.
        case commas
    }

    /// How a date is written.
    public enum Dates: Sendable {
        /// `2001-09-09T01:46:40Z` in UTC, with milliseconds where there are any (RFC 3339).
        case iso8601
        /// Whole seconds since 1970, rounded down.
        case secondsSince1970
        /// Whole milliseconds since 1970, rounded down.
        case millisecondsSince1970
        /// As an HTTP field has it: `Sun, 09 Sep 2001 01:46:40 GMT` (RFC 9110 §5.6.7).
        case http
        /// As the closure writes it.
        case custom(@Sendable (Date) -> String)
    }

    /// How a list is written in a query or form.
    public var lists: Lists

    /// How a date is written; `nil` refuses dates, because servers differ and a wrong guess is silent.
    public var dates: Dates?

    /// Makes a style.
    ///
    /// - Parameters:
    ///   - lists: How a list is written in a query or form.
    ///   - dates: How a date is written; `nil` refuses dates.
    public init(lists: Lists = .repeatedName, dates: Dates? = nil) {
        self.lists = lists
        self.dates = dates
    }
}

/// A date, or a number, as a parameter shows it.
enum ParameterScalar: Equatable {
    case text(String)
    /// Digits and what belongs to them: no quotes in JSON.
    case literal(String)
}

extension ParameterStyle {
    /// How a date is written; `name` tells where in case of a fault.
    func scalar(of date: Date, name: String) throws(RouteFault) -> ParameterScalar {
        guard let dates else {
            throw RouteFault(
                .noDateStrategy, in: "parameter \(name)", "it is a date; say in ParameterStyle(dates:) how the server reads dates")
        }
        let seconds = date.timeIntervalSince1970
        // Beyond this a year has more than four digits, and sooner or later the arithmetic overflows.
        guard abs(seconds) < 2.5e11 else { throw RouteFault(.notFinite, in: "parameter \(name)", "the date is too far away; check it") }
        switch dates {
        case .iso8601: return .text(RFC3339.format(date))
        case .secondsSince1970: return .literal(String(Int64(seconds.rounded(.down))))
        case .millisecondsSince1970: return .literal(String(Int64((seconds * 1000).rounded(.down))))
        case .http: return .text(HTTPDate.format(date))
        case .custom(let write): return .text(write(date))
        }
    }
}
