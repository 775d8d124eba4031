extension LoopbackOrigin {
    /// A deviation from a correct response; several may be combined.
    ///
    /// ```swift
    /// origin.on(.get, "/download") { _ in
    ///     .data(film).misbehaving(.drip(bytes: 1024, every: .milliseconds(1)), .reset(afterBodyBytes: 100_000))
    /// }
    /// ```
    ///
    /// Counts of body bytes refer to the wire: they include chunk sizes, and ignore what a coding inflates to.
    public enum Misbehavior: Sendable, Hashable {
        /// Delays the head.
        case delayHead(by: Duration)
        /// Sends the body in pieces of that many bytes, with a pause between two of them.
        case drip(bytes: Int, every: Duration)
        /// Closes the connection in the middle of the body that the head promises.
        case truncate(afterBodyBytes: Int)
        /// Resets the connection in the middle of the body; with 0, directly after the head.
        case reset(afterBodyBytes: Int)
        /// Resets the connection instead of responding.
        case resetBeforeHead
        /// Stops sending in the middle of the body until the client leaves.
        case stall(afterBodyBytes: Int)
        /// Sends nothing until the client leaves.
        case neverAnswer
        /// Sends one `Content-Length` for each number, regardless of the body's length.
        case declareLengths([Int])
        /// Sends a chunk with a malformed size after that many body bytes in chunked coding, and then closes the connection.
        case breakChunk(afterBodyBytes: Int)
        /// Closes the connection after the response without announcing it in the head.
        case closeSilently
        /// Closes the connection some time after the response without announcing it; a request that arrives meanwhile is not read.
        case closeLate(after: Duration)
        /// Closes the connection without announcing it if no further request arrives for that long.
        case closeIdle(after: Duration)
        /// Keeps the connection open until the next request arrives on it, and closes it without a response.
        case closeOnNextRequest
    }
}
