/// How an exchange went, as libcurl counts it; times in microseconds.
package struct WireMetrics: Hashable, Sendable {
    /// Moments after the beginning of the exchange.
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
    /// How many connections were made for the exchange.
    package var connections: Int
    /// libcurl's number of the version.
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

    /// The bytes of a request's head, which libcurl counts together with some of the body.
    ///
    /// - Parameters:
    ///   - request: The bytes that libcurl counts for the request.
    ///   - body: The bytes of the body.
    ///   - isCopied: Whether libcurl has a copy of the body, which goes out together with the head.
    ///   - countsBodies: Whether the library counts all of each body (8.7).
    package static func headBytes(of request: Int64, body: Int64, isCopied: Bool, countsBodies: Bool) -> Int64 {
        isCopied || countsBodies ? max(0, request - body) : request
    }
}
