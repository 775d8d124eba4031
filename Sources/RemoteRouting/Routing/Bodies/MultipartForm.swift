public import Foundation
public import RemoteHTTP

/// A multipart form (RFC 7578), with parts from memory and from disk.
///
/// ```swift
/// let form: MultipartForm = [
///     .text("title", "Holidays"),
///     .data("cover", jpeg, fileName: "cover.jpg", type: "image/jpeg"),
///     .file("film", at: url),
/// ]
/// ```
///
/// Names and file names are escaped as the HTML standard requires: a quote is `%22`, CR and LF are `%0D` and `%0A`, other characters are
/// plain UTF-8. Other control characters are refused. The length is known in advance, and files are read while they are sent.
///
/// <doc:DescribingRoutes> shows how to send forms.
public struct MultipartForm: Sendable, ExpressibleByArrayLiteral {
    /// A named part of a form: a value, bytes, or a file.
    public struct Part: Sendable {
        enum Content: Sendable {
            case value(ParameterValue)
            case data(Data)
            case file(URL)
        }

        let name: String
        let fileName: String?
        let type: MimeType?
        let content: Content

        /// A value as text; an absent value omits the part, a list creates several parts.
        public static func text(_ name: String, _ value: (any ParameterConvertible)?) -> Part {
            Part(name: name, fileName: nil, type: nil, content: .value(value.parameterValue))
        }

        /// Bytes in memory.
        ///
        /// - Parameters:
        ///   - name: The field's name.
        ///   - data: The bytes.
        ///   - fileName: The file name that the server sees; `nil` for none.
        ///   - type: The media type; `nil` for none.
        public static func data(_ name: String, _ data: Data, fileName: String? = nil, type: MimeType? = nil) -> Part {
            Part(name: name, fileName: fileName, type: type, content: .data(data))
        }

        /// A file, streamed from disk.
        ///
        /// - Parameters:
        ///   - name: The field's name.
        ///   - url: The URL of the file.
        ///   - fileName: The file name that the server sees; by default the file's own.
        ///   - type: The media type.
        public static func file(_ name: String, at url: URL, fileName: String? = nil, type: MimeType = .octetStream) -> Part {
            Part(name: name, fileName: fileName ?? url.lastPathComponent, type: type, content: .file(url))
        }
    }

    package var parts: [Part]

    /// Creates a form that sends the parts in this order.
    public init(_ parts: [Part]) {
        self.parts = parts
    }

    /// Creates a form from a literal.
    public init(arrayLiteral elements: Part...) {
        parts = elements
    }
}
