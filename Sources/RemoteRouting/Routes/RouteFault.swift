/// A route that cannot become a request: what is wrong, where, and what to do about it.
///
/// Values that a route carries (parameters, field values, path values) are never part of it, since they may be secrets.
///
/// ```swift
/// do {
///     try await api.send("/users/\(id)")
/// } catch let error as RemoteError {
///     if let fault = error.underlyingError as? RouteFault, fault.code == .dotSegment { print("a name of dots") }
/// }
/// ```
public struct RouteFault: Error, Hashable, Sendable, CustomStringConvertible {
    /// What kind of fault this is.
    public let code: Code

    /// The part of the route that is at fault, as in "path" or "header Accept".
    public let part: String

    /// What is wrong with it and what to do.
    public let message: String

    /// Makes a fault.
    ///
    /// - Parameters:
    ///   - code: What kind of fault this is.
    ///   - part: The part of the route that is at fault.
    ///   - message: What is wrong with it and what to do; no values, since they may be secrets.
    init(_ code: Code, in part: String, _ message: String) {
        self.code = code
        self.part = part
        self.message = message
    }

    /// The kind of fault, the part, what is wrong with it and what to do.
    public var description: String { "RouteFault.\(code.rawValue) in the \(part): \(message)" }

    /// What a request says that was not made because of the fault.
    var refusal: String { "nothing was sent because of the \(part): \(message)" }

    /// The kinds of faults; the set is open.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// The code's name.
        public let rawValue: String

        /// Makes a code of that name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// A path does not begin with a slash.
        public static let relativePath = Code(rawValue: "relativePath")
        /// A path has an empty segment.
        public static let emptySegment = Code(rawValue: "emptySegment")
        /// A path has a segment that stands for `.` or `..`.
        public static let dotSegment = Code(rawValue: "dotSegment")
        /// A path has a control character, a backslash, or a character that ends a path.
        public static let forbiddenCharacter = Code(rawValue: "forbiddenCharacter")
        /// A host is no host, or a port no port.
        public static let invalidOrigin = Code(rawValue: "invalidOrigin")
        /// A request would go to another origin than the host's.
        public static let foreignOrigin = Code(rawValue: "foreignOrigin")
        /// A header field has a name or a value that cannot go on the wire.
        public static let invalidField = Code(rawValue: "invalidField")
        /// A header field is one that only the library writes.
        public static let reservedField = Code(rawValue: "reservedField")
        /// A method cannot be sent.
        public static let unsupportedMethod = Code(rawValue: "unsupportedMethod")
        /// A method cannot have a body.
        public static let bodyNotAllowed = Code(rawValue: "bodyNotAllowed")
        /// A parameter is NaN or infinite.
        public static let notFinite = Code(rawValue: "notFinite")
        /// A parameter is a date, and nobody said how dates are written.
        public static let noDateStrategy = Code(rawValue: "noDateStrategy")
        /// A parameter has a shape that its destination does not have.
        public static let unsupportedShape = Code(rawValue: "unsupportedShape")
        /// A value could not be encoded.
        public static let notEncodable = Code(rawValue: "notEncodable")
        /// A file cannot be read.
        public static let unreadableFile = Code(rawValue: "unreadableFile")
        /// A file changed while it was being sent.
        public static let changedFile = Code(rawValue: "changedFile")
        /// The time that a request may take is none.
        public static let invalidOption = Code(rawValue: "invalidOption")
    }
}
