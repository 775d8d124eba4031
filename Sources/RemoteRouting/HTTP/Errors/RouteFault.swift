package import StoreCore

/// The fault of a route that cannot become a request: the part, the reason and the remedy.
///
/// A fault never contains values of the route (parameters, header values, path values), because they may be secrets.
///
/// ```swift
/// do {
///     try await api.send("/users/\(id)")
/// } catch let error as RemoteError {
///     let fault = error.underlyingError as? RouteFault
///     if fault?.code == .dotSegment { print("a name of dots") }
/// }
/// ```
public struct RouteFault: Error, Hashable, Sendable, CustomStringConvertible {
    /// The broken rule. The set of codes is open, so a `switch` needs a `default`.
    public let code: Code

    /// The faulty part of the route, such as "path" or "header Accept".
    public let part: String

    /// The reason and the remedy, without values, because they may be secrets.
    public let message: String

    /// The kind of failure that the fault means for a change: permanent, unless the cause is outside the route.
    package var changeKind: FailureKind

    package init(_ code: Code, in part: String, _ message: String, changeKind: FailureKind = .permanent) {
        self.changeKind = changeKind
        self.code = code
        self.part = part
        self.message = message
    }

    /// The kind of fault, the part, the reason and the remedy.
    public var description: String { "RouteFault.\(code.rawValue) in the \(part): \(message)" }

    /// The kinds of faults; the set is open.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// The name of the code, as in the fault's description: `dotSegment`.
        public let rawValue: String

        /// Creates a code with a name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// A path does not begin with a slash.
        public static let relativePath = Code(rawValue: "relativePath")
        /// A path has an empty segment.
        public static let emptySegment = Code(rawValue: "emptySegment")
        /// A path has a segment that stands for `.` or `..`.
        public static let dotSegment = Code(rawValue: "dotSegment")
        /// A path has a control character, a backslash, or a character that ends a path.
        public static let forbiddenCharacter = Code(rawValue: "forbiddenCharacter")
        /// A host or a port is invalid.
        public static let invalidOrigin = Code(rawValue: "invalidOrigin")
        /// A request would go to another origin than the host's.
        public static let foreignOrigin = Code(rawValue: "foreignOrigin")
        /// A header field has a name or a value that HTTP does not allow.
        public static let invalidField = Code(rawValue: "invalidField")
        /// A header field is one that only the library writes.
        public static let reservedField = Code(rawValue: "reservedField")
        /// A method that cannot be sent.
        public static let unsupportedMethod = Code(rawValue: "unsupportedMethod")
        /// A body that its method does not allow, or that has no method.
        public static let bodyNotAllowed = Code(rawValue: "bodyNotAllowed")
        /// A parameter is NaN or infinite.
        public static let notFinite = Code(rawValue: "notFinite")
        /// A parameter is a date, but the style for dates is not set.
        public static let noDateStrategy = Code(rawValue: "noDateStrategy")
        /// A parameter has a shape that its destination cannot express.
        public static let unsupportedShape = Code(rawValue: "unsupportedShape")
        /// A value could not be encoded.
        public static let notEncodable = Code(rawValue: "notEncodable")
        /// A file to send does not exist, is not a regular file, or cannot be opened.
        public static let unreadableFile = Code(rawValue: "unreadableFile")
        /// A file changed while it was being sent.
        public static let changedFile = Code(rawValue: "changedFile")
        /// An option, a credential or an argument has an invalid value.
        public static let invalidOption = Code(rawValue: "invalidOption")
    }
}
