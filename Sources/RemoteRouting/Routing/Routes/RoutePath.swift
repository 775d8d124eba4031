public import Foundation
internal import RemoteHTTP

/// The path of a route, written as a literal into which values are interpolated.
///
/// ```swift
/// let path: RoutePath = "/orgs/\(name)/repos/\(id).json"
/// // The path is /files/2024/a%20b.txt.
/// let file: RoutePath = "/files/\(segments: ["2024", "a b.txt"])"
/// ```
///
/// A value never opens a new segment: all characters except letters, digits and `-._~` are percent-encoded. A literal is used unchanged,
/// including its percent escapes. The path is checked as a whole when the request is built. Refused are empty segments, `.` and `..` in any
/// number of encodings, control characters and backslashes. A trailing slash of a literal is kept. An empty path means the host's base
/// path.
public struct RoutePath: Hashable, Sendable {
    private var text = ""
    /// The byte offsets of empty values. An empty value must not leave its segment empty, not even the last segment.
    private var emptyValues: [Int] = []
    private var fault: RouteFault?

    func encoded() throws(RouteFault) -> String {
        if let fault { throw fault }
        if let fault = PathCheck(emptyValues: emptyValues).firstFault(in: text) { throw fault }
        return text
    }

    fileprivate mutating func append(value: some StringProtocol) {
        if value.isEmpty { emptyValues.append(text.utf8.count) }
        if fault == nil { fault = PathCheck.fault(ofValue: value) }
        text += PercentEncoding.component.encode(value)
    }
}

extension RoutePath: ExpressibleByStringInterpolation {
    /// Creates a path from a literal, which is used unchanged.
    public init(stringLiteral value: String) {
        text = value
    }

    /// Creates a path from literals and values.
    public init(stringInterpolation: StringInterpolation) {
        self = stringInterpolation.path
    }

    /// Builds a path from literals and values.
    ///
    /// Only types with an unambiguous text can be interpolated: an optional or a fractional number does not compile.
    public struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var path = RoutePath()

        /// Starts with an empty path, into which literals and values are written.
        public init(literalCapacity: Int, interpolationCount: Int) {
            path.text.reserveCapacity(literalCapacity + 16 * interpolationCount)
        }

        /// Appends a literal unchanged, including its percent escapes.
        public mutating func appendLiteral(_ literal: String) { path.text += literal }

        /// Appends a text as part of one segment.
        public mutating func appendInterpolation(_ value: some StringProtocol) { path.append(value: value) }

        /// Appends an integer in decimal digits as part of one segment.
        public mutating func appendInterpolation(_ value: some BinaryInteger) { path.append(value: String(value)) }

        /// Appends a UUID in uppercase as part of one segment.
        public mutating func appendInterpolation(_ value: UUID) { path.append(value: value.uuidString) }

        /// Appends the raw text of an enum or identifier as part of one segment.
        public mutating func appendInterpolation<Value: RawRepresentable<String>>(_ value: Value) { path.append(value: value.rawValue) }

        /// Appends the raw number of an enum or identifier.
        public mutating func appendInterpolation<Value: RawRepresentable>(_ value: Value) where Value.RawValue: BinaryInteger {
            path.append(value: String(value.rawValue))
        }

        /// Appends several segments, separated by slashes; each is checked like any other.
        public mutating func appendInterpolation(segments: some Sequence<String>) {
            var isFirst = true
            for segment in segments {
                if !isFirst { path.text += "/" }
                path.append(value: segment)
                isFirst = false
            }
            if isFirst { path.append(value: "") }
        }
    }
}

extension RoutePath: CustomStringConvertible {
    /// The path with its values encoded, even if the path is invalid.
    public var description: String { text }
}
