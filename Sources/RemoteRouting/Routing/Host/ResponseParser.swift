public import Foundation
public import RemoteHTTP

/// A parser of response bodies that replaces the default of a host or a route.
///
/// ```swift
/// struct PropertyListParser: ResponseParser {
///     var mediaTypes: [MimeType] { [.propertyList] }
///
///     func parse<Value: Decodable>(
///         _ response: RemoteResponse<Data>, as type: Value.Type
///     ) throws -> Value {
///         try PropertyListDecoder().decode(type, from: response.value)
///     }
/// }
/// ```
/// ```swift
/// let api = RemoteHost("api.example.com").with {
///     $0.parser = PropertyListParser()
/// }
/// let settings: Settings = try await api.send("/settings")
/// ```
///
/// A route's own parser (``RouteOptions/parser``) replaces its host's (``RemoteHost/parser``). Without either, `Data` is the unchanged
/// body, and any other type is decoded from JSON with ``RemoteHost/makeDecoder``.
///
/// A parser decodes every requested type, including `Data`, except ``Empty``. It never receives a status outside 2xx, except for
/// ``RemoteError/details(as:decoder:)``, and never 204, 205 or the response to HEAD. For other statuses, the parser decides whether an
/// empty body is valid.
///
/// <doc:ParsingResponses> explains the checks before a parser runs.
public protocol ResponseParser: Sendable {
    /// The media types that the parser accepts.
    ///
    /// They are sent as `Accept`, unless the route has an ``RouteOptions/accept`` or a field of its own. A response of another type throws
    /// ``RemoteError/Code/unexpectedType`` and is not parsed. A response without a type is parsed. A type without a suffix also accepts
    /// types with that suffix: `application/xml` accepts `application/atom+xml` (RFC 6839). Ranges such as `image/*` and ``MimeType/any``
    /// are possible (RFC 9110 §12.5.1).
    var mediaTypes: [MimeType] { get }

    /// Makes a value from a response, off the caller's actor.
    ///
    /// - Parameters:
    ///   - response: The body with its status and header fields.
    ///   - type: The type of the value.
    /// - Throws: Any error. Callers receive a ``RemoteError`` with the code ``RemoteError/Code/undecodable`` and this error as its
    ///   ``RemoteError/underlyingError``.
    func parse<Value: Decodable>(_ response: RemoteResponse<Data>, as type: Value.Type) throws -> Value
}

struct JSONParser: ResponseParser {
    let makeDecoder: @Sendable () -> JSONDecoder

    var mediaTypes: [MimeType] { [.json] }

    func parse<Value: Decodable>(_ response: RemoteResponse<Data>, as type: Value.Type) throws -> Value {
        try makeDecoder().decode(type, from: response.value)
    }
}

extension RemoteHost {
    func parser(for options: RouteOptions) -> any ResponseParser { options.parser ?? parser ?? JSONParser(makeDecoder: makeDecoder) }

    func defaults(for options: RouteOptions) -> Headers {
        // An `Accept` among the host's defaults belongs to the host's parser, not to the route's.
        guard options.parser != nil || !defaults.names("Accept") else { return defaults }
        // Any type comes last, because an error may be of any type.
        let accept = (options.parser ?? parser).map { ($0.mediaTypes.map(\.rawValue) + ["*/*;q=0.1"]).joined(separator: ", ") }
        var all: Headers = ["Accept": accept ?? "application/json, */*;q=0.1"]
        all.append(contentsOf: defaults, except: "Accept")
        return all
    }
}
