public import Foundation

/// A form of several parts (RFC 7578), from memory and from disk.
///
/// ```swift
/// let form: MultipartForm = [
///     .text("title", "Holidays"),
///     .data("cover", jpeg, fileName: "cover.jpg", type: MimeType(rawValue: "image/jpeg")),
///     .file("film", at: url),
/// ]
/// ```
///
/// Names and file names are escaped as the HTML standard has it: a quote is `%22`, CR and LF are `%0D` and `%0A`, other letters are
/// UTF-8 as they stand; other control characters are refused. The length is known in advance, and files are read while they are sent.
public struct MultipartForm: Sendable, ExpressibleByArrayLiteral {
    /// One part.
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

        /// A value as text; an absent one leaves the part out, a list makes several parts.
        public static func text(_ name: String, _ value: (any ParameterConvertible)?) -> Part {
            Part(name: name, fileName: nil, type: nil, content: .value(value.parameterValue))
        }

        /// Bytes in memory.
        ///
        /// - Parameters:
        ///   - name: The field's name.
        ///   - data: The bytes.
        ///   - fileName: The name of the file it shall be taken for; `nil` for none.
        ///   - type: What they are; `nil` says nothing of it.
        public static func data(_ name: String, _ data: Data, fileName: String? = nil, type: MimeType? = nil) -> Part {
            Part(name: name, fileName: fileName, type: type, content: .data(data))
        }

        /// A file, streamed from disk.
        ///
        /// - Parameters:
        ///   - name: The field's name.
        ///   - url: Where the file is.
        ///   - fileName: The name that the server is told; by default the file's own.
        ///   - type: What it is.
        public static func file(_ name: String, at url: URL, fileName: String? = nil, type: MimeType = .octetStream) -> Part {
            Part(name: name, fileName: fileName ?? url.lastPathComponent, type: type, content: .file(url))
        }
    }

    /// The parts, in order.
    package var parts: [Part]

    /// Makes a form.
    public init(_ parts: [Part]) {
        self.parts = parts
    }

    /// Makes a form of parameters, each as text.
    public init(_ parameters: Parameters) {
        parts = parameters.elements.map { .text($0.name, $0.value) }
    }

    /// Makes a form as it is written.
    public init(arrayLiteral elements: Part...) {
        parts = elements
    }
}
