internal import Foundation

/// Makes values of answers.
struct AnswerDecoding: Sendable {
    private let makeDecoder: @Sendable () -> JSONDecoder

    init(_ host: RemoteHost) { makeDecoder = host.makeDecoder }

    /// The value of an answer that is one of success.
    ///
    /// - Throws: ``RemoteError`` of the stage ``RemoteError/Stage/decode``.
    func decode<Value: Decodable & SendableMetatype>(
        _ answer: RemoteResponse<Data>, of route: some Routable, as type: Value.Type
    ) async throws -> sending Value {
        let isWithoutBody = answer.status == 204 || answer.status == 205 || route.method == .head
        let accepted = route.options.accept?.essence
        let context = Context(answer: answer, operation: "\(route.method.rawValue) \(answer.url.withoutSecrets)", accepted: accepted)
        return try await AnswerDecoding.decode(context, isWithoutBody: isWithoutBody, makeDecoder: makeDecoder)
    }

    private struct Context: Sendable {
        var answer: RemoteResponse<Data>
        var operation: String
        var accepted: String?

        func error(_ code: RemoteError.Code, _ message: String, underlyingError: (any Error)? = nil) -> RemoteError {
            var error = RemoteError(.decode, code, operation: operation, message, underlyingError: underlyingError)
            error.status = answer.status
            error.fields = answer.fields
            error.body = answer.value.prefix(RemoteError.keptBodyBytes)
            error.attempts = answer.attempts
            return error
        }
    }

    /// Off the caller's actor, since large answers take their time.
    @concurrent
    private static func decode<Value: Decodable & SendableMetatype>(
        _ context: Context, isWithoutBody: Bool, makeDecoder: @Sendable () -> JSONDecoder
    ) async throws -> sending Value {
        let decoder = makeDecoder()
        // These two accept what stands for nothing, so that no other way of making one is needed.
        if Value.self is Empty.Type { return try decoder.decode(Value.self, from: Data("{}".utf8)) }
        if isWithoutBody, Value.self is any OptionalValue.Type { return try decoder.decode(Value.self, from: Data("null".utf8)) }
        let body = context.answer.value
        guard !body.isEmpty, !isWithoutBody else {
            throw context.error(
                .emptyBody,
                "the answer \(context.answer.status) has no body, and \(Value.self) needs one; decode Empty, or an optional for 204")
        }
        if let field = context.answer.fields["Content-Type"] {
            let type = MimeType(rawValue: field)
            guard let type, type.isJSON || type.essence == context.accepted else {
                let name = type?.essence ?? "of an unreadable type"
                throw context.error(
                    .unexpectedType,
                    "the answer is \(name) and not JSON, as that of a login page or a proxy may be; use data(for:) for other types")
            }
        }
        do {
            return try decoder.decode(Value.self, from: body)
        } catch {
            throw context.error(.undecodable, "the answer is no \(Value.self): \(place(of: error))", underlyingError: error)
        }
    }

    /// Where decoding failed, without any of the content.
    private static func place(of error: any Error) -> String {
        guard let error = error as? DecodingError else { return "the decoder failed with \(type(of: error))" }
        func path(_ context: DecodingError.Context) -> String {
            let path = context.codingPath.map { $0.intValue.map { "[\($0)]" } ?? $0.stringValue }.joined(separator: ".")
            return path.isEmpty ? "at its top" : "at \(path)"
        }
        return switch error {
        case .keyNotFound(let key, let context): "\(key.stringValue) is missing \(path(context))"
        case .typeMismatch(let type, let context): "no \(type) \(path(context))"
        case .valueNotFound(let type, let context): "null instead of \(type) \(path(context))"
        case .dataCorrupted(let context): "not readable \(path(context))"
        @unknown default: "not readable"
        }
    }
}

/// What may be absent.
private protocol OptionalValue {}
extension Optional: OptionalValue {}

extension URL {
    /// The address without query, fragment and user.
    var withoutSecrets: String {
        let text = absoluteString.prefix { $0 != "?" && $0 != "#" }
        return user(percentEncoded: true) == nil ? String(text) : "\(scheme ?? "")://…\(path(percentEncoded: true))"
    }
}
