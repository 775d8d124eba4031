/// Named values in declaration order: a query, a form, or the fields of a JSON object.
///
/// ```swift
/// let parameters: Parameters = [
///     "q": text, "page": 2, "tag": ["swift", "http"], "since": nil,
/// ]
/// ```
///
/// A name may occur more than once. `nil` omits the name, an empty text is written as `name=`, and ``ParameterValue/valueless`` as `name`
/// alone. Nested fields are written `["user": ["name": "Ada"] as Parameters]`, because a dictionary would lose their order.
///
/// <doc:DescribingRoutes> explains the styles of lists and dates.
public struct Parameters: Hashable, Sendable, ExpressibleByDictionaryLiteral {
    struct Element: Hashable, Sendable {
        var name: String
        var value: ParameterValue
    }

    var elements: [Element]

    init(_ elements: [Element]) {
        self.elements = elements
    }

    /// Creates empty parameters, to be filled by appending.
    public init() { elements = [] }

    /// Creates parameters from a literal, in its order.
    public init(dictionaryLiteral elements: (String, (any ParameterConvertible)?)...) {
        self.elements = elements.map { Element(name: $0.0, value: $0.1.parameterValue) }
    }

    /// Appends a value; the name may already occur.
    public mutating func append(_ name: String, _ value: (any ParameterConvertible)?) {
        elements.append(Element(name: name, value: value.parameterValue))
    }

    /// The names in their order, each as often as it occurs.
    public var names: [String] { elements.map(\.name) }

    /// The values of a name in their order, without the omitted ones.
    public subscript(name: String) -> [ParameterValue] { elements.filter { $0.name == name && $0.value != .absent }.map(\.value) }

    /// Whether there are no parameters, not even omitted ones.
    public var isEmpty: Bool { elements.isEmpty }

    /// Concatenates two lists of parameters; equal names are kept.
    public static func + (lhs: Parameters, rhs: Parameters) -> Parameters {
        Parameters(lhs.elements + rhs.elements)
    }
}

extension (any ParameterConvertible)? {
    var parameterValue: ParameterValue { self?.parameterValue ?? .absent }
}
