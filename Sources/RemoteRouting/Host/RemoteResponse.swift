public import Foundation

/// A value with what came along: status, fields, and how it was got.
public struct RemoteResponse<Value> {
    /// The value.
    public var value: Value
    /// The status code.
    public var status: Int
    /// The header.
    public var fields: HTTPFields
    /// The address that responded, after all redirects.
    public var url: URL
    /// The number of attempts.
    public var attempts: Int
    /// The time from the call to the last byte, waits and refreshes included; of a stream, to the head.
    public var duration: Duration
    /// How the last exchange of the call went; `nil` for a stream.
    ///
    /// A stream has its ``RemoteBytes/metrics`` once its last piece was read.
    public var metrics: ExchangeMetrics? {
        get { ownMetrics?.metrics }
        set { ownMetrics = newValue.map { ExchangeMetrics.Box($0) } }
    }
    var ownMetrics: ExchangeMetrics.Box?
    /// The parts of the exchange that decide how long the response may be used.
    var exchange: CachedExchange

    /// The same response with another value.
    func map<Other>(_ value: Other) -> RemoteResponse<Other> {
        RemoteResponse<Other>(
            value: value, status: status, fields: fields, url: url, attempts: attempts, duration: duration, ownMetrics: ownMetrics,
            exchange: exchange)
    }
}

extension RemoteResponse<HTTPResponse.Body> {
    /// The same response with the bytes of its body, which is in memory.
    var whole: RemoteResponse<Data> { map(value.data ?? Data()) }
}

extension RemoteResponse: Sendable where Value: Sendable {}

/// The value of a response whose body does not matter.
public struct Empty: Codable, Hashable, Sendable {}
