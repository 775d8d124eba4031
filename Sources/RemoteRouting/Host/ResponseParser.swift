public import Foundation

/// A parser of response bodies, for a host or a route, in the place of the default.
///
/// ```swift
/// struct PropertyListParser: ResponseParser {
///     var mediaTypes: [MimeType] { [.propertyList] }
///
///     func parse<Value: Decodable>(_ response: RemoteResponse<Data>, as type: Value.Type) throws -> Value {
///         try PropertyListDecoder().decode(type, from: response.value)
///     }
/// }
/// ```
/// ```swift
/// let api = RemoteHost("api.example.com").with { $0.parser = PropertyListParser() }
/// let settings: Settings = try await api.send("/settings")
/// ```
///
/// A route's own parser (``RouteOptions/parser``) replaces its host's (``RemoteHost/parser``). Without either, `Data` is the body as it came,
/// and any other type is decoded from JSON with ``RemoteHost/makeDecoder``.
///
/// A parser gets every type that a caller asks for, `Data` too, except ``Empty``, and optionals of a response without a body. It never sees
/// a status outside 2xx, except for ``RemoteError/details(as:decoder:)``, nor 204, 205 and the response to HEAD. An empty body of another
/// status is the parser's to judge.
public protocol ResponseParser: Sendable {
    /// The media types that the parser takes.
    ///
    /// They are what `Accept` asks for, unless the route has an ``RouteOptions/accept`` or a field of its own. A response of another type
    /// throws ``RemoteError/Code/unexpectedType`` and is not parsed; one that does not say its type is parsed. A type without a suffix takes
    /// types with that suffix too, as `application/xml` takes `application/atom+xml` (RFC 6839). Ranges such as `image/*` and
    /// ``MimeType/any`` are possible (RFC 9110 §12.5.1).
    var mediaTypes: [MimeType] { get }

    /// Makes a value of a response, off the caller's actor.
    ///
    /// - Parameters:
    ///   - response: The body, with the status and fields beside it.
    ///   - type: The type of the value.
    /// - Throws: Any error. Callers get a ``RemoteError`` with the code ``RemoteError/Code/undecodable`` and this error as its
    ///   ``RemoteError/underlyingError``.
    func parse<Value: Decodable>(_ response: RemoteResponse<Data>, as type: Value.Type) throws -> Value
}

/// The default of all types but `Data`.
struct JSONParser: ResponseParser {
    let makeDecoder: @Sendable () -> JSONDecoder

    var mediaTypes: [MimeType] { [.json] }

    func parse<Value: Decodable>(_ response: RemoteResponse<Data>, as type: Value.Type) throws -> Value {
        try makeDecoder().decode(type, from: response.value)
    }
}

extension RemoteHost {
    /// The parser of a route's responses.
    func parser(for options: RouteOptions) -> any ResponseParser { options.parser ?? parser ?? JSONParser(makeDecoder: makeDecoder) }

    /// The fields that all requests with some options have unless the route says otherwise.
    func defaults(for options: RouteOptions) -> Headers {
        // A host's own field asks for what the host's parser takes.
        guard options.parser != nil || !defaults.names("Accept") else { return defaults }
        var all: Headers = ["Accept": (options.parser ?? parser)?.accept ?? "application/json, */*;q=0.1"]
        all.append(contentsOf: defaults, except: "Accept")
        return all
    }
}

extension ResponseParser {
    /// The media types as `Accept` has them; others come last, since errors may be of any type.
    fileprivate var accept: String { (mediaTypes.map(\.rawValue) + ["*/*;q=0.1"]).joined(separator: ", ") }
}
