public import Foundation

/// The path of a route, written as a literal into which values are interpolated.
///
/// ```swift
/// let path: RoutePath = "/orgs/\(name)/repos/\(id).json"
/// let file: RoutePath = "/files/\(segments: ["2024", "a b.txt"])"      // /files/2024/a%20b.txt
/// ```
///
/// A value never opens a new segment: everything in it but letters, digits and `-._~` is percent-encoded. A literal is taken as it
/// stands; its percent escapes are yours. The rules hold for whole segments, after literals and values are joined: a segment that is
/// empty, or that is `.` or `..` however often it is escaped, a control character and a backslash are refused when the request is built.
/// A slash at the end of a literal is kept, and the empty path is the host's base path itself.
public struct RoutePath: Hashable, Sendable {
    private var text = ""
    /// Where values stand that are empty, as byte offsets: such a value must not leave a segment empty, not even the last one.
    private var emptyValues: [Int] = []
    private var fault: RouteFault?

    /// The host's base path itself.
    init() {}

    /// The path as it goes on the wire.
    ///
    /// - Throws: ``RouteFault`` where the path breaks one of the rules.
    func encoded() throws(RouteFault) -> String {
        if let fault { throw fault }
        if let fault = PathCheck(emptyValues: emptyValues).firstFault(in: text) { throw fault }
        return text
    }

    fileprivate mutating func append(literal: String) {
        text += literal
    }

    fileprivate mutating func append(value: some StringProtocol) {
        if value.isEmpty { emptyValues.append(text.utf8.count) }
        if fault == nil { fault = PathCheck.fault(ofValue: value) }
        text += PercentEncoding.component.encode(value)
    }
}

extension RoutePath: ExpressibleByStringInterpolation {
    /// A path without values.
    public init(stringLiteral value: String) {
        append(literal: value)
    }

    /// A path with values.
    public init(stringInterpolation: StringInterpolation) {
        self = stringInterpolation.path
    }

    /// Puts a path together from literals and values.
    ///
    /// Only types whose text is plain to see can be interpolated: an optional or a number with a fraction does not compile.
    public struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var path = RoutePath()

        /// Begins an empty path.
        public init(literalCapacity: Int, interpolationCount: Int) {
            path.text.reserveCapacity(literalCapacity + 16 * interpolationCount)
        }

        /// Appends what stands in the source.
        public mutating func appendLiteral(_ literal: String) { path.append(literal: literal) }

        /// Appends a text as part of one segment.
        public mutating func appendInterpolation(_ value: some StringProtocol) { path.append(value: value) }

        /// Appends an integer.
        public mutating func appendInterpolation(_ value: some BinaryInteger) { path.append(value: String(value)) }

        /// Appends a UUID in capitals, as Foundation writes it.
        public mutating func appendInterpolation(_ value: UUID) { path.append(value: value.uuidString) }

        /// Appends the raw text of an enum or identifier as part of one segment.
        public mutating func appendInterpolation<Value: RawRepresentable<String>>(_ value: Value) { path.append(value: value.rawValue) }

        /// Appends the raw number of an enum or identifier.
        public mutating func appendInterpolation<Value: RawRepresentable>(_ value: Value) where Value.RawValue: BinaryInteger {
            path.append(value: String(value.rawValue))
        }

        /// Appends several segments, with slashes between them; each is checked like any other.
        public mutating func appendInterpolation(segments: some Sequence<String>) {
            var isFirst = true
            for segment in segments {
                if !isFirst { path.append(literal: "/") }
                path.append(value: segment)
                isFirst = false
            }
            if isFirst { path.append(value: "") }
        }
    }
}

extension RoutePath: CustomStringConvertible {
    /// The path as it goes on the wire where it may, and as it was written where it may not.
    public var description: String { text }
}
