extension LoopbackOrigin {
    /// One way in which an answer departs from what it should be; several may be combined.
    ///
    /// ```swift
    /// origin.on(.get, "/download") { _ in
    ///     .data(film).misbehaving(.drip(bytes: 1024, every: .milliseconds(1)), .reset(afterBodyBytes: 100_000))
    /// }
    /// ```
    ///
    /// Counts of body bytes are counts on the wire: chunk sizes count, what a coding inflates to does not.
    public enum Misbehavior: Sendable, Hashable {
        /// Nothing is sent for that long.
        case delayHead(by: Duration)
        /// The head is sent, then nothing for that long.
        case delayBody(by: Duration)
        /// The body comes in pieces of that many bytes with a pause between two of them.
        case drip(bytes: Int, every: Duration)
        /// The head promises the whole body, and the connection ends in its middle.
        case truncate(afterBodyBytes: Int)
        /// The connection is reset in the middle of the body; with 0 right behind the head.
        case reset(afterBodyBytes: Int)
        /// The connection is reset instead of an answer.
        case resetBeforeHead
        /// In the middle of the body nothing more comes until the client leaves.
        case stall(afterBodyBytes: Int)
        /// Nothing is ever sent; the connection stays until the client leaves.
        case neverAnswer
        /// One `Content-Length` for each number, whatever the body's length is.
        case declareLengths([Int])
        /// Chunked coding whose next chunk, behind that many body bytes, has a size that is not a number; then the connection ends.
        case breakChunk(afterBodyBytes: Int)
        /// The connection is closed behind the answer, and the head does not say so.
        case closeSilently
        /// The connection is closed that long behind the answer, and the head does not say so; a request that arrives meanwhile is not read.
        case closeLate(after: Duration)
        /// The connection is closed where no further request arrives for that long, and the head does not say so.
        case closeIdle(after: Duration)
        /// The connection stays open until the next request arrives on it, and is closed without an answer to that.
        case closeOnNextRequest
    }
}
