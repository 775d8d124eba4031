/// The metrics of an exchange as libcurl counts them; times in microseconds.
package struct WireMetrics: Hashable, Sendable {
    /// Moments relative to the start of the exchange.
    package struct Marks: Hashable, Sendable {
        package var nameLookup: Int64
        package var connect: Int64
        package var secure: Int64
        package var firstByte: Int64
        package var total: Int64

        package init(nameLookup: Int64, connect: Int64, secure: Int64, firstByte: Int64, total: Int64) {
            self.nameLookup = nameLookup
            self.connect = connect
            self.secure = secure
            self.firstByte = firstByte
            self.total = total
        }
    }

    package var marks: Marks
    /// The number of connections opened for the exchange.
    package var connections: Int
    /// libcurl's number for the HTTP version.
    package var version: Int
    package var sentHeadBytes: Int64
    package var sentBodyBytes: Int64
    package var receivedHeadBytes: Int64
    package var receivedBodyBytes: Int64

    package init(
        marks: Marks, connections: Int, version: Int, sentHeadBytes: Int64, sentBodyBytes: Int64, receivedHeadBytes: Int64,
        receivedBodyBytes: Int64
    ) {
        self.marks = marks
        self.connections = connections
        self.version = version
        self.sentHeadBytes = sentHeadBytes
        self.sentBodyBytes = sentBodyBytes
        self.receivedHeadBytes = receivedHeadBytes
        self.receivedBodyBytes = receivedBodyBytes
    }

    /// Returns the number of bytes of a request's head, which libcurl counts together with parts of the body.
    ///
    /// - Parameters:
    ///   - request: The number of bytes that libcurl counts for the request.
    ///   - body: The number of body bytes.
    ///   - isCopied: Whether libcurl has a copy of the body, which it sends together with the head.
    ///   - countsBodies: Whether the library counts bodies completely (since 8.7).
    package static func headBytes(of request: Int64, body: Int64, isCopied: Bool, countsBodies: Bool) -> Int64 {
        isCopied || countsBodies ? max(0, request - body) : request
    }
}
