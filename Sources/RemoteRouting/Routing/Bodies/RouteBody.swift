public import Foundation
public import RemoteHTTP

/// The body of a route.
///
/// ```swift
/// var body: RouteBody { .json(fields: ["name": name, "tags": tags]) }
/// ```
///
/// Every body except ``stream(_:type:)`` can be sent again for a redirect or another attempt. A route's own `Content-Type` field replaces
/// that of the body.
///
/// <doc:DescribingRoutes> shows routes with bodies.
public struct RouteBody: Sendable {
    enum Content: Sendable {
        case none
        case encodable(@Sendable (JSONEncoder) throws -> Data)
        case fields(Parameters)
        case form(Parameters)
        case multipart(MultipartForm)
        case data(Data)
        case file(URL)
        case stream(HTTPBodyStream)
        /// Parameters of a media type that cannot express them.
        case unsupported(MimeType)
    }

    let content: Content
    /// The media type; `nil` without a body, and for a form whose boundary is not known yet.
    let type: MimeType?

    private init(_ content: Content, _ type: MimeType?) {
        self.content = content
        self.type = type
    }

    /// No body and no `Content-Type`; the default of a route.
    public static let none = RouteBody(.none, nil)

    /// A value as JSON, encoded by the host's encoder.
    ///
    /// - Parameter value: The value; it is encoded when the request is built.
    public static func json(_ value: some Encodable & Sendable) -> RouteBody { RouteBody(.encodable { try $0.encode(value) }, .json) }

    /// A JSON object with its fields in declaration order.
    ///
    /// - Parameter fields: The fields; absent fields are omitted, valueless fields are `null`.
    public static func json(fields: Parameters) -> RouteBody { RouteBody(.fields(fields), .json) }

    /// A URL-encoded form (`application/x-www-form-urlencoded` of the URL standard).
    ///
    /// - Parameter fields: The fields; the route's ``ParameterStyle`` determines the form of lists and dates.
    public static func formURLEncoded(_ fields: Parameters) -> RouteBody { RouteBody(.form(fields), .formURLEncoded) }

    /// A multipart form (RFC 7578); files are streamed from disk.
    ///
    /// - Parameter form: The parts.
    public static func multipart(_ form: MultipartForm) -> RouteBody { RouteBody(.multipart(form), nil) }

    /// Bytes in memory.
    ///
    /// - Parameters:
    ///   - data: The bytes.
    ///   - type: The media type.
    public static func data(_ data: Data, type: MimeType = .octetStream) -> RouteBody { RouteBody(.data(data), type) }

    /// A file, streamed from disk; it must not change while it is being sent.
    ///
    /// - Parameters:
    ///   - url: The URL of the file.
    ///   - type: The media type.
    public static func file(_ url: URL, type: MimeType = .octetStream) -> RouteBody { RouteBody(.file(url), type) }

    /// Bytes that are produced while they are sent, for example by a sequence; sent again only if the stream is replayable.
    ///
    /// - Parameters:
    ///   - stream: The source of the bytes.
    ///   - type: The media type.
    public static func stream(_ stream: HTTPBodyStream, type: MimeType = .octetStream) -> RouteBody { RouteBody(.stream(stream), type) }

    /// Parameters as JSON, a URL-encoded form or a multipart form; any other media type is refused when the request is built.
    static func parameters(_ parameters: Parameters, as type: MimeType) -> RouteBody {
        if type.isJSON { return RouteBody(.fields(parameters), type) }
        switch type.essence {
        case MimeType.formURLEncoded.essence: return RouteBody(.form(parameters), type)
        case MimeType.multipartFormData.essence: return .multipart(MultipartForm(parameters.elements.map { .text($0.name, $0.value) }))
        default: return RouteBody(.unsupported(type), type)
        }
    }
}

struct EncodedBody {
    var body: HTTPBody
    var type: MimeType?
}

struct BodyEncoder {
    var style: ParameterStyle
    var makeJSONEncoder: @Sendable () -> JSONEncoder

    func encode(_ body: RouteBody) throws(RouteFault) -> EncodedBody {
        switch body.content {
        case .none: return EncodedBody(body: .none, type: nil)
        case .encodable(let encode): return EncodedBody(body: .data(try json(encode)), type: body.type)
        case .fields(let fields): return EncodedBody(body: .data(try JSONFields(style: style).encode(fields)), type: body.type)
        case .form(let fields):
            return EncodedBody(body: .data(Data(try PairEncoder(style: style).form(of: fields).utf8)), type: body.type)
        case .multipart(let form): return try form.encoded(style: style)
        case .data(let data): return EncodedBody(body: .data(data), type: body.type)
        case .file(let url): return EncodedBody(body: try Piece.body(of: [.file(try FileSource(of: url))]), type: body.type)
        case .stream(let stream):
            guard stream.length ?? 0 >= 0 else {
                throw RouteFault(.invalidOption, in: "body", "its length is negative; pass nil for an unknown length")
            }
            return EncodedBody(body: .stream(stream), type: body.type)
        case .unsupported(let type):
            throw RouteFault(
                .unsupportedShape, in: "body",
                "parameters cannot be written as \(type.essence); use JSON or a form, or RouteBody.data for bytes of your own")
        }
    }

    private func json(_ encode: (JSONEncoder) throws -> Data) throws(RouteFault) -> Data {
        do {
            return try encode(makeJSONEncoder())
        } catch EncodingError.invalidValue(let value, let context) {
            // Shows the path, not the value, which may be a secret.
            throw RouteFault(
                .notEncodable, in: "body",
                "the \(Swift.type(of: value)) at \(context.codingPath.place) cannot be written as JSON; NaN and infinity need a strategy of the "
                    + "encoder")
        } catch {
            throw RouteFault(.notEncodable, in: "body", "its encode(to:) throws an error of type \(Swift.type(of: error)); correct it")
        }
    }
}
