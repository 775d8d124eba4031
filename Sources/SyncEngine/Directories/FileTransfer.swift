/// Downloads the bytes of a file into a part; besides the list, a `DirectoryTarget` needs nothing else from the app.
///
/// ```swift
/// struct HTTPTransfer: FileTransfer {
///     func transfer(_ file: ListedFile, into part: FilePart) async throws {
///         // Range: bytes=offset-, If-Range: validator
///         let response = try await client.get(file.path, range: part.resumePoint)
///         try part.begin(at: response.firstByte, validator: response.entityTag)
///         for try await piece in response.body { try part.append(piece) }
///     }
/// }
/// ```
///
/// The target checks size and digest; a transfer only sets the offset at which it begins. It should return soon after its task is canceled.
/// The bytes received by then are kept.
///
/// <doc:MirrorsOfFiles> shows a transfer that resumes by itself.
public protocol FileTransfer<Item>: Sendable {
    /// An item of the list, from which the transfer derives its request.
    associatedtype Item: FileItem

    /// Downloads all bytes of a file, or the missing ones.
    ///
    /// - Parameters:
    ///   - item: The file.
    ///   - part: Receives the bytes, and holds those of an earlier attempt.
    /// - Throws: Any error; its `FailureAdvising` kind decides whether it is retried, reported, or ends the pass.
    func transfer(_ item: Item, into part: FilePart) async throws
}

/// The point at which a transfer can resume: the number of stored bytes and the validator of their content.
public struct ResumePoint: Hashable, Sendable {
    /// The number of stored bytes, counted from the first byte of the file.
    ///
    /// May be the length of the file if the list gives no size: the process may have ended between the download and the installation. HTTP
    /// origins respond to such a range with 416 (RFC 9110 §15.5.17); the transfer then begins at 0.
    public var offset: Int64
    /// The origin's validator of the content: for HTTP, a strong entity tag or a date, as sent in `If-Range` (RFC 9110 §13.1.5).
    public var validator: String

    /// Creates a resume point; each parameter sets the property of its name.
    public init(offset: Int64, validator: String) {
        self.offset = offset
        self.validator = validator
    }
}
