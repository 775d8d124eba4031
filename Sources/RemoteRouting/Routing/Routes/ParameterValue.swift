public import Foundation

/// The value of a parameter.
///
/// You rarely name this type: any ``ParameterConvertible`` value is accepted directly.
public struct ParameterValue: Hashable, Sendable {
    indirect enum Kind: Hashable, Sendable {
        case absent
        case valueless
        case text(String)
        case flag(Bool)
        case integer(String)
        /// A number with a fraction, in its shortest form.
        case fraction(String)
        case notFinite
        case date(Date)
        case list([ParameterValue])
        case fields(Parameters)
    }

    let kind: Kind

    init(_ kind: Kind) { self.kind = kind }

    /// No value and no name: the parameter is omitted.
    public static let absent = ParameterValue(.absent)
    /// The name without a value: `name` in a query, `name=` in a form, `null` in JSON.
    public static let valueless = ParameterValue(.valueless)
    /// A text, which each destination escapes in its own way.
    public static func text(_ text: String) -> ParameterValue { ParameterValue(.text(text)) }
}

/// A type whose values can be parameters.
///
/// ```swift
/// extension Money: ParameterConvertible {
///     var parameterValue: ParameterValue { .text("\(cents) \(currency)") }
/// }
/// // An enumeration with raw values needs nothing more.
/// enum Sorting: String, ParameterConvertible { case newest, oldest }
/// ```
public protocol ParameterConvertible {
    /// The parameter that the value stands for in a query, a form, or JSON fields.
    var parameterValue: ParameterValue { get }
}

extension ParameterValue: ParameterConvertible {
    /// The value itself, which needs no conversion.
    public var parameterValue: ParameterValue { self }
}

extension Parameters: ParameterConvertible {
    /// The parameters as fields below the name of the parameter.
    public var parameterValue: ParameterValue { ParameterValue(.fields(self)) }
}

extension StringProtocol where Self: ParameterConvertible {
    /// The text, which each destination escapes in its own way.
    public var parameterValue: ParameterValue { .text(String(self)) }
}

extension String: ParameterConvertible {}
extension Substring: ParameterConvertible {}

extension Bool: ParameterConvertible {
    /// `true` or `false`; a Boolean in JSON.
    public var parameterValue: ParameterValue { ParameterValue(.flag(self)) }
}

extension BinaryInteger where Self: ParameterConvertible {
    /// The number in decimal digits, of any size.
    public var parameterValue: ParameterValue { ParameterValue(.integer(String(self))) }
}

extension Int: ParameterConvertible {}
extension Int8: ParameterConvertible {}
extension Int16: ParameterConvertible {}
extension Int32: ParameterConvertible {}
extension Int64: ParameterConvertible {}
extension UInt: ParameterConvertible {}
extension UInt8: ParameterConvertible {}
extension UInt16: ParameterConvertible {}
extension UInt32: ParameterConvertible {}
extension UInt64: ParameterConvertible {}

extension BinaryFloatingPoint where Self: LosslessStringConvertible & ParameterConvertible {
    /// The number in its shortest form; NaN and infinity are refused when the request is built.
    public var parameterValue: ParameterValue {
        guard isFinite else { return ParameterValue(.notFinite) }
        let text = description
        return ParameterValue(text.hasSuffix(".0") ? .integer(String(text.dropLast(2))) : .fraction(text))
    }
}

extension Double: ParameterConvertible {}
extension Float: ParameterConvertible {}

extension Decimal: ParameterConvertible {
    /// The number in decimal digits; NaN is refused when the request is built.
    public var parameterValue: ParameterValue { ParameterValue(isNaN ? .notFinite : .fraction(description)) }
}

extension Date: ParameterConvertible {
    /// The date; the parameter style determines its form.
    public var parameterValue: ParameterValue { ParameterValue(.date(self)) }
}

extension UUID: ParameterConvertible {
    /// The UUID in uppercase, with hyphens.
    public var parameterValue: ParameterValue { .text(uuidString) }
}

extension URL: ParameterConvertible {
    /// The absolute address, percent-encoded as in the URL.
    public var parameterValue: ParameterValue { .text(absoluteString) }
}

extension Optional: ParameterConvertible where Wrapped: ParameterConvertible {
    /// The value; `nil` omits the parameter.
    public var parameterValue: ParameterValue { self?.parameterValue ?? .absent }
}

extension Array: ParameterConvertible where Element: ParameterConvertible {
    /// The values in order; the parameter style determines the form of the list.
    public var parameterValue: ParameterValue { ParameterValue(.list(map(\.parameterValue))) }
}

extension RawRepresentable where Self: ParameterConvertible, RawValue: ParameterConvertible {
    /// The raw value as a parameter, such as the text of an enum's case.
    public var parameterValue: ParameterValue { rawValue.parameterValue }
}
