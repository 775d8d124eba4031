/// A media type of RFC 9110 §8.3.1, with its parameters.
///
/// ```swift
/// let type = MimeType(rawValue: "Application/JSON; charset=\"utf-8\"")
/// assert(type == .json.with("charset", "utf-8") && type?.isJSON == true)
/// ```
///
/// Type, subtype and the names of parameters are kept in lower case; values keep theirs.
public struct MimeType: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// A parameter, as in `charset=utf-8`.
    public struct Parameter: Hashable, Sendable {
        /// The name, in lower case.
        public let name: String
        /// The value, without quotes.
        public let value: String
    }

    /// As in `application`.
    public let type: String
    /// As in `json` or `problem+json`.
    public let subtype: String
    /// The parameters, in order.
    public private(set) var parameters: [Parameter]

    /// Reads a media type.
    ///
    /// - Parameter rawValue: As a `Content-Type` field has it; `nil` is returned for anything else.
    public init?(rawValue: String) {
        // In quotes it would go through, and end the line of a part's head.
        guard rawValue.utf8.allSatisfy({ $0 == 0x09 || !$0.isControl }) else { return nil }
        var scanner = FieldScanner(rawValue)
        guard let type = scanner.token(), scanner.take("/"), let subtype = scanner.token() else { return nil }
        self.type = type.lowercased()
        self.subtype = subtype.lowercased()
        parameters = []
        while true {
            scanner.skipBlanks()
            if scanner.isAtEnd { return }
            guard scanner.take(";") else { return nil }
            scanner.skipBlanks()
            // RFC 9110 §5.6.6 lets a parameter be empty.
            if scanner.isAtEnd || scanner.peek == UInt8(ascii: ";") { continue }
            guard let name = scanner.token(), scanner.take("="), let value = scanner.tokenOrQuoted() else { return nil }
            parameters.append(Parameter(name: name.lowercased(), value: value))
        }
    }

    private init(_ type: String, _ subtype: String) {
        (self.type, self.subtype, parameters) = (type, subtype, [])
    }

    /// The media type as a field has it.
    public var rawValue: String {
        parameters.reduce(essence) { $0 + "; \($1.name)=\($1.value.asTokenOrQuoted)" }
    }

    /// The media type as a field has it.
    public var description: String { rawValue }

    /// The media type without its parameters.
    public var essence: String { "\(type)/\(subtype)" }

    /// The value of a parameter; the first where there are several.
    public subscript(parameter: String) -> String? {
        parameters.first { $0.name.equalsIgnoringCase(parameter) }?.value
    }

    /// The same media type with one more parameter.
    ///
    /// - Parameters:
    ///   - name: A token; the parameter is left out where it is none.
    ///   - value: Any text without control characters; the parameter is left out where it has one.
    public func with(_ name: String, _ value: String) -> MimeType {
        guard name.isToken, !value.utf8.contains(where: \.isControl) else { return self }
        var copy = self
        copy.parameters.append(Parameter(name: name.lowercased(), value: value))
        return copy
    }

    /// Whether the content is JSON: `application/json`, or any type with the suffix `+json` (RFC 6839 §3.1).
    public var isJSON: Bool { essence == "application/json" || subtype.hasSuffix("+json") }

    /// Whether a range takes this type (RFC 9110 §12.5.1); a subtype without a suffix takes those with that suffix (RFC 6839).
    func isTaken(by range: MimeType) -> Bool {
        if range.type == "*" || range.type == type && (range.subtype == "*" || range.subtype == subtype) { return true }
        return range.type == "application" && subtype.hasSuffix("+" + range.subtype)
    }

    /// JSON (RFC 8259).
    public static let json = MimeType("application", "json")
    /// A problem description (RFC 9457).
    public static let problemJSON = MimeType("application", "problem+json")
    /// A form as browsers send it.
    public static let formURLEncoded = MimeType("application", "x-www-form-urlencoded")
    /// A form of several parts (RFC 7578).
    public static let multipartFormData = MimeType("multipart", "form-data")
    /// Bytes of which nothing is known.
    public static let octetStream = MimeType("application", "octet-stream")
    /// Text in UTF-8.
    public static let plainText = MimeType("text", "plain").with("charset", "utf-8")
    /// Server-sent events.
    public static let eventStream = MimeType("text", "event-stream")
    /// XML (RFC 7303).
    public static let xml = MimeType("application", "xml")
    /// A property list, as Apple's systems write it.
    public static let propertyList = MimeType("application", "x-plist")
    /// An HTML page.
    public static let html = MimeType("text", "html")
    /// A style sheet (RFC 2318).
    public static let css = MimeType("text", "css")
    /// JavaScript under the name that older servers use; RFC 9239 prefers `text/javascript`.
    public static let javaScript = MimeType("application", "javascript")
    /// ECMAScript under the name that older servers use; RFC 9239 prefers `text/javascript`.
    public static let ecmaScript = MimeType("application", "ecmascript")

    /// A JPEG picture.
    public static let jpeg = MimeType("image", "jpeg")
    /// A PNG picture.
    public static let png = MimeType("image", "png")
    /// A GIF picture.
    public static let gif = MimeType("image", "gif")
    /// An SVG picture.
    public static let svg = MimeType("image", "svg+xml")

    /// MPEG audio, such as MP3 (RFC 3003).
    public static let mpegAudio = MimeType("audio", "mpeg")
    /// Audio in an Ogg container (RFC 5334).
    public static let oggAudio = MimeType("audio", "ogg")
    /// Audio in a WAVE file.
    public static let wavAudio = MimeType("audio", "wav")
    /// Audio in a WebM container.
    public static let webMAudio = MimeType("audio", "webm")
    /// Video in an MP4 file (RFC 4337).
    public static let mp4Video = MimeType("video", "mp4")
    /// Video in an Ogg container (RFC 5334).
    public static let oggVideo = MimeType("video", "ogg")
    /// Video in a WebM container.
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
