/// Named values in the order in which they were written: a query, a form, or the fields of a JSON object.
///
/// ```swift
/// let parameters: Parameters = ["q": text, "page": 2, "tag": ["swift", "http"], "since": nil]
/// ```
///
/// A name may stand there more than once. `nil` drops its name; an empty text stays as `name=`, and ``ParameterValue/valueless`` as
/// `name` alone. Nested fields are written `["user": ["name": "Ada"] as Parameters]`, since a dictionary would lose their order.
public struct Parameters: Hashable, Sendable, ExpressibleByDictionaryLiteral {
    /// A name with its value.
    struct Element: Hashable, Sendable {
        /// The name.
        var name: String
        /// The value.
        var value: ParameterValue
    }

    /// The names and values, in order.
    var elements: [Element]

    /// Makes parameters.
    ///
    /// - Parameter elements: The names and values, in order.
    init(_ elements: [Element]) {
        self.elements = elements
    }

    /// Makes parameters as they are written.
    public init(dictionaryLiteral elements: (String, (any ParameterConvertible)?)...) {
        self.elements = elements.map { Element(name: $0.0, value: $0.1.parameterValue) }
    }

    /// Adds a value under a name that may be there already.
    public mutating func append(_ name: String, _ value: (any ParameterConvertible)?) {
        elements.append(Element(name: name, value: value.parameterValue))
    }

    /// Whether there are none.
    package var isEmpty: Bool { elements.isEmpty }

    /// Both lists, one after the other; a name of the second does not replace that of the first.
    public static func + (lhs: Parameters, rhs: Parameters) -> Parameters {
        Parameters(lhs.elements + rhs.elements)
    }
}

extension (any ParameterConvertible)? {
    var parameterValue: ParameterValue { self?.parameterValue ?? .absent }
}
