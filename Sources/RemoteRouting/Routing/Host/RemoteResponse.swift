public import Foundation
public import RemoteHTTP

/// A value with the status, the header fields and the metrics of its response.
public struct RemoteResponse<Value> {
    /// The value that was made of the body, or of the file that contains it.
    public var value: Value
    /// The status code in three digits (RFC 9110 §15).
    public var status: Int
    /// The header fields of the last response, after all redirects.
    public var fields: HTTPFields
    /// The address that responded, after all redirects.
    public var url: URL
    /// The number of attempts, including the successful one; redirects do not count.
    public var attempts: Int
    /// The time from the call to the last byte, including waits and refreshes; for a stream, to the head.
    public var duration: Duration
    /// The metrics of the call's last exchange; `nil` for a stream.
    ///
    /// A stream has ``RemoteBytes/metrics`` after its last chunk has been read.
    public var metrics: ExchangeMetrics? {
        get { ownMetrics?.value }
        set { ownMetrics = newValue.map { Box($0) } }
    }
    var ownMetrics: Box<ExchangeMetrics>?
    var exchange: CachedExchange

    func map<Other>(_ value: Other) -> RemoteResponse<Other> {
        RemoteResponse<Other>(
            value: value, status: status, fields: fields, url: url, attempts: attempts, duration: duration, ownMetrics: ownMetrics,
            exchange: exchange)
    }
}

extension RemoteResponse<HTTPResponse.Body> {
    /// Not inlined: its copies would otherwise enlarge the frame of every waiting call.
    @inline(never)
    var whole: RemoteResponse<Data> { map(value.data ?? Data()) }
}

extension RemoteResponse: Sendable where Value: Sendable {}

/// The value of a response whose body does not matter.
public struct Empty: Codable, Hashable, Sendable {}
