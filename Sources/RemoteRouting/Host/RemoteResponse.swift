public import Foundation

/// A value with what came along: status, fields, and how it was got.
public struct RemoteResponse<Value> {
    /// The value.
    public var value: Value
    /// Status, fields, and who answered after all redirects.
    public var head: HTTPHead
    /// How many attempts were made.
    public var attempts: Int
    /// How long it took, from the call to the last byte, waits and refreshes included.
    public var duration: Duration

    /// The status code.
    public var status: Int { head.status }
    /// The header.
    public var fields: HTTPFields { head.fields }
    /// Who answered, after all redirects.
    public var url: URL { head.url }

    /// The same response with another value.
    func map<Other>(_ value: Other) -> RemoteResponse<Other> {
        RemoteResponse<Other>(value: value, head: head, attempts: attempts, duration: duration)
    }
}

extension RemoteResponse: Sendable where Value: Sendable {}

/// What a route gives of whose answer only the success is of interest.
public struct Empty: Codable, Hashable, Sendable {
    /// Nothing.
    public init() {}

    /// Accepts whatever is there.
    public init(from decoder: any Decoder) {}
}
