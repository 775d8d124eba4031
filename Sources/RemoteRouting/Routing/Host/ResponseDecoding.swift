internal import Foundation
internal import RemoteHTTP

/// Decodes the values of successful responses; an object, because the frame of a waiting caller has room for it.
final class ResponseDecoding: Sendable {
    let response: RemoteResponse<Data>
    private let operation: String
    /// Whether the response has no body by definition (RFC 9110 §9.3.2, §15.3.5).
    private let isWithoutBody: Bool
    private let parser: any ResponseParser
    private let accept: MimeType?

    init(_ response: RemoteResponse<Data>, _ method: HTTPMethod, _ options: RouteOptions, at host: RemoteHost) {
        self.response = response
        operation = "\(method.rawValue) \(response.url.withoutSecrets)"
        isWithoutBody = response.status == 204 || response.status == 205 || method == .head
        parser = host.parser(for: options)
        accept = options.accept
    }

    /// Decodes the value off the caller's actor, because a large response takes time.
    @concurrent
    func decode<Value: Decodable & SendableMetatype>(as type: Value.Type) async throws -> sending Value {
        // Both types accept a fixed document, which avoids a second way to construct them.
        if Value.self is Empty.Type { return try JSONDecoder().decode(Value.self, from: Data("{}".utf8)) }
        if isWithoutBody, Value.self is any OptionalValue.Type { return try JSONDecoder().decode(Value.self, from: Data("null".utf8)) }
        let isDefault = parser is JSONParser
        if isDefault, Value.self is Data.Type || Value.self is Optional<Data>.Type {
            try checkType(among: [])
            if let bytes = response.value as? Value { return bytes }
        }
        // A custom parser may accept an empty body; the JSON parser never does.
        guard !isWithoutBody, !isDefault || !response.value.isEmpty else {
            throw error(
                .emptyBody,
                "the response \(response.status) has no body, and \(Value.self) needs one; "
                    + "decode Empty, or an optional for 204, 205 and HEAD")
        }
        try checkType(among: parser.mediaTypes)
        do {
            return try parser.parse(response, as: Value.self)
        } catch {
            throw undecodable(error, as: "\(Value.self)")
        }
    }

    @concurrent
    func parse<Value: Sendable>(by parse: @Sendable (RemoteResponse<Data>) throws -> Value) async throws -> Value {
        try checkType(among: [])
        do {
            return try parse(response)
        } catch {
            throw undecodable(error, as: "\(Value.self)")
        }
    }

    /// Throws if the response has neither one of these media types nor that of the route. If there are none, any type is accepted.
    private func checkType(among types: [MimeType]) throws(RemoteError) {
        let accepted = types + (accept.map { [$0] } ?? [])
        guard !accepted.isEmpty, let field = response.fields["Content-Type"] else { return }
        let type = MimeType(rawValue: field)
        if let type, accepted.contains(where: { type.isTaken(by: $0) }) { return }
        let wanted = accepted == [.json] ? "JSON" : accepted.map(\.essence).joined(separator: " or ")
        throw error(
            .unexpectedType,
            "the response is \(type?.essence ?? "of an unreadable type") instead of \(wanted), perhaps the page of a login or a proxy; "
                + "use data(for:) for other types")
    }

    /// The error for a response that a parser or a page function rejected.
    func undecodable(_ error: any Error, as type: String) -> RemoteError {
        // A parser may check for cancellation, which is not a fault of the response.
        if error is CancellationError, Task.isCancelled {
            return RemoteError(.cancelled, .cancelled, operation: operation, "the task was canceled")
        }
        let message = "the response is not a valid \(type): \(ResponseDecoding.place(of: error)); compare the type with the error's body"
        return self.error(.undecodable, message, underlyingError: error)
    }

    private func error(_ code: RemoteError.Code, _ message: String, underlyingError: (any Error)? = nil) -> RemoteError {
        var error = RemoteError(.decode, code, operation: operation, message, underlyingError: underlyingError)
        error.status = response.status
        error.fields = response.fields
        error.body = response.value.prefix(RemoteError.keptBodyBytes)
        error.attempts = response.attempts
        error.reader = ParsingErrorReader(parser: parser, response: response.map(()))
        return error
    }

    /// Describes where decoding failed, without any of the content.
    private static func place(of error: any Error) -> String {
        guard let error = error as? DecodingError else { return "the decoder failed with \(type(of: error))" }
        return switch error {
        case .keyNotFound(let key, let context): "\(key.stringValue) is missing at \(context.codingPath.place)"
        case .typeMismatch(let type, let context): "no \(type) at \(context.codingPath.place)"
        case .valueNotFound(let type, let context): "null instead of \(type) at \(context.codingPath.place)"
        case .dataCorrupted(let context): "not readable at \(context.codingPath.place)"
        @unknown default: "not readable"
        }
    }
}

extension [any CodingKey] {
    /// The path as text. A key of a dictionary, which Foundation may convert, is content and could be a secret.
    var place: String {
        if isEmpty { return "the top" }
        return map { key in
            switch ("\(type(of: key))", key.intValue) {
            case ("_DictionaryCodingKey", _), ("_CodingKey", nil): "…"
            case (_, let index): index.map { "[\($0)]" } ?? key.stringValue
            }
        }.joined(separator: ".")
    }
}

final class ParsingErrorReader: ErrorReader {
    private let parser: any ResponseParser
    private let response: RemoteResponse<Void>

    init(parser: any ResponseParser, response: RemoteResponse<Void>) {
        self.parser = parser
        self.response = response
    }

    func read<Details: Decodable>(_ body: Data, as type: Details.Type) throws -> Details {
        try parser.parse(response.map(body), as: type)
    }
}

private protocol OptionalValue {}
extension Optional: OptionalValue {}
