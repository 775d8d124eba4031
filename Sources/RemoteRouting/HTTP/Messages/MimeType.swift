/// A media type with its parameters (RFC 9110 §8.3.1).
///
/// ```swift
/// let picture: MimeType = "image/png"
/// let type = MimeType(rawValue: "Application/JSON; charset=\"utf-8\"")
/// assert(type == .json.with("charset", "utf-8") && type?.isJSON == true)
/// ```
///
/// Type, subtype and parameter names are converted to lower case; parameter values are not.
public struct MimeType: RawRepresentable, Hashable, Sendable, CustomStringConvertible, ExpressibleByStringLiteral {
    struct Parameter: Hashable, Sendable {
        /// The name, in lower case.
        let name: String
        /// The value, without quotes.
        let value: String
    }

    let type: String
    let subtype: String
    private(set) var parameters: [Parameter]

    /// Parses a media type, without its malformed parameters.
    ///
    /// - Parameter rawValue: The value of a `Content-Type` field; for anything else the initializer returns `nil`.
    public init?(rawValue: String) {
        // A control character in quotes would otherwise pass and end a line in a part's header.
        guard rawValue.utf8.allSatisfy({ $0 == 0x09 || !$0.isControl }) else { return nil }
        var scanner = FieldScanner(rawValue)
        guard let type = scanner.token(), scanner.take("/"), let subtype = scanner.token() else { return nil }
        self.type = type.lowercased()
        self.subtype = subtype.lowercased()
        parameters = []
        scanner.skipBlanks()
        guard scanner.isAtEnd || scanner.peek == UInt8(ascii: ";") else { return nil }
        while scanner.take(";") {
            scanner.skipBlanks()
            // An empty parameter is allowed (RFC 9110 §5.6.6), and a malformed one says nothing about the type.
            if let name = scanner.token(), scanner.take("="), let value = scanner.tokenOrQuoted() {
                parameters.append(Parameter(name: name.lowercased(), value: value))
            }
            if !scanner.isAtEnd { scanner.skip(toAnyOf: [";"]) }
        }
    }

    /// Creates a media type from a literal, such as `"image/png"`; a literal that is not a media type stops the program.
    public init(stringLiteral value: String) {
        guard let type = MimeType(rawValue: value) else {
            preconditionFailure("\"\(value)\" is not a media type; write a type and a subtype, such as \"image/png\"")
        }
        self = type
    }

    private init(_ type: String, _ subtype: String) {
        (self.type, self.subtype, parameters) = (type, subtype, [])
    }

    /// The media type as a field value.
    public var rawValue: String {
        parameters.reduce(essence) { $0 + "; \($1.name)=\($1.value.asTokenOrQuoted)" }
    }

    /// The media type as a field value.
    public var description: String { rawValue }

    /// The media type without its parameters.
    public var essence: String { "\(type)/\(subtype)" }

    /// The value of a parameter; the first if there are several.
    public subscript(parameter: String) -> String? {
        parameters.first { $0.name.equalsIgnoringCase(parameter) }?.value
    }

    /// Returns the same media type with one more parameter.
    ///
    /// - Parameters:
    ///   - name: A token; otherwise the parameter is omitted.
    ///   - value: Any text without control characters; otherwise the parameter is omitted.
    public func with(_ name: String, _ value: String) -> MimeType {
        guard name.isToken, !value.utf8.contains(where: \.isControl) else { return self }
        var copy = self
        copy.parameters.append(Parameter(name: name.lowercased(), value: value))
        return copy
    }

    /// Whether the content is JSON: `application/json` or any type with the suffix `+json` (RFC 6839 §3.1).
    public var isJSON: Bool { essence == "application/json" || subtype.hasSuffix("+json") }

    /// Whether a range includes this type (RFC 9110 §12.5.1); a subtype without a suffix includes types with that suffix (RFC 6839).
    package func isTaken(by range: MimeType) -> Bool {
        if range.type == "*" || range.type == type && (range.subtype == "*" || range.subtype == subtype) { return true }
        return range.type == "application" && subtype.hasSuffix("+" + range.subtype)
    }

    /// `application/json` (RFC 8259), which has no parameters.
    public static let json = MimeType("application", "json")
    /// `application/problem+json`, the format of a `Problem` (RFC 9457).
    public static let problemJSON = MimeType("application", "problem+json")
    /// `application/x-www-form-urlencoded`, the format of a query as a body.
    public static let formURLEncoded = MimeType("application", "x-www-form-urlencoded")
    /// `multipart/form-data`, the format of a `MultipartForm` (RFC 7578).
    public static let multipartFormData = MimeType("multipart", "form-data")
    /// `application/octet-stream`: bytes of unknown type (RFC 2046 §4.5.1).
    public static let octetStream = MimeType("application", "octet-stream")
    /// `text/plain; charset=utf-8`: text of no particular format (RFC 2046 §4.1.3).
    public static let plainText = MimeType("text", "plain").with("charset", "utf-8")
    /// `text/event-stream`: server-sent events, as the HTML standard defines them.
    public static let eventStream = MimeType("text", "event-stream")
    /// `application/xml`: XML of any vocabulary (RFC 7303).
    public static let xml = MimeType("application", "xml")
    /// `application/x-plist`: a property list of Apple's systems; the type is not registered.
    public static let propertyList = MimeType("application", "x-plist")
    /// `text/html`: an HTML page (RFC 2854).
    public static let html = MimeType("text", "html")
    /// `text/css`: a style sheet (RFC 2318).
    public static let css = MimeType("text", "css")
    /// JavaScript under its older name; RFC 9239 prefers `text/javascript`.
    public static let javaScript = MimeType("application", "javascript")
    /// ECMAScript under its older name; RFC 9239 prefers `text/javascript`.
    public static let ecmaScript = MimeType("application", "ecmascript")

    /// `image/jpeg`: a JPEG picture (RFC 2046).
    public static let jpeg = MimeType("image", "jpeg")
    /// `image/png`: a PNG picture, as the W3C defines it.
    public static let png = MimeType("image", "png")
    /// `image/gif`: a GIF picture (RFC 2046).
    public static let gif = MimeType("image", "gif")
    /// `image/svg+xml`: an SVG picture, as the W3C defines it.
    public static let svg = MimeType("image", "svg+xml")

    /// MPEG audio, such as MP3 (RFC 3003).
    public static let mpegAudio = MimeType("audio", "mpeg")
    /// Audio in an Ogg container (RFC 5334).
    public static let oggAudio = MimeType("audio", "ogg")
    /// `audio/wav`: audio in a WAVE file; the type is not registered.
    public static let wavAudio = MimeType("audio", "wav")
    /// `audio/webm`: audio in a WebM container.
    public static let webMAudio = MimeType("audio", "webm")
    /// Video in an MP4 file (RFC 4337).
    public static let mp4Video = MimeType("video", "mp4")
    /// Video in an Ogg container (RFC 5334).
    public static let oggVideo = MimeType("video", "ogg")
    /// `video/webm`: video in a WebM container.
    public static let webMVideo = MimeType("video", "webm")
    /// Any content in an Ogg container (RFC 5334).
    public static let ogg = MimeType("application", "ogg")

    /// The range of all types, for an `Accept` field (RFC 9110 §12.5.1).
    public static let any = MimeType("*", "*")
    /// The range of all audio types, for an `Accept` field (RFC 9110 §12.5.1).
    public static let anyAudio = MimeType("audio", "*")
    /// The range of all application types, for an `Accept` field (RFC 9110 §12.5.1).
    public static let anyApplication = MimeType("application", "*")
    /// Several ranges of one representation (RFC 9110 §14.6).
    public static let multipartByteRanges = MimeType("multipart", "byteranges")
}
