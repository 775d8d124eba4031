/// Brings the bytes of a file from wherever they are; the one thing a `DirectoryTarget` does not know.
///
/// ```swift
/// struct HTTPTransfer: FileTransfer {
///     func transfer(_ file: ListedFile, into part: FilePart) async throws {
///         let answer = try await client.get(file.path, range: part.resumePoint)     // Range: bytes=offset-, If-Range: validator
///         try part.begin(at: answer.firstByte, validator: answer.entityTag)
///         for try await piece in answer.body { try part.append(piece) }
///     }
/// }
/// ```
///
/// Size and digest are checked by the target; a transfer only has to say at which byte it begins. It should return soon after its task was
/// cancelled. What has arrived by then is kept.
public protocol FileTransfer<Item>: Sendable {
    /// An item of the list.
    associatedtype Item: FileItem

    /// Brings the bytes of a file, all of them or those that are missing.
    ///
    /// - Parameters:
    ///   - item: The file.
    ///   - part: Where the bytes go, and what is there of an earlier attempt.
    /// - Throws: What went wrong; an error that conforms to `FailureAdvising` decides by its kind what happens next.
    func transfer(_ item: Item, into part: FilePart) async throws
}

/// Where a transfer can go on: so many bytes are there, of a content with this validator.
public struct ResumePoint: Hashable, Sendable {
    /// How many bytes are there, from the first one on.
    public var offset: Int64
    /// What the origin told the content apart by: for HTTP, a strong entity tag or a date, as it goes into `If-Range` (RFC 9110 §13.1.5).
    public var validator: String

    /// Makes a resume point.
    ///
    /// - Parameters:
    ///   - offset: How many bytes are there.
    ///   - validator: What the origin told the content apart by.
    public init(offset: Int64, validator: String) {
        self.offset = offset
        self.validator = validator
    }
}
