/// The position of a change in the order of all changes that the users of a shared cacher have made.
///
/// Revisions are totally ordered, first by number and then by writer, and never restart: neither a removal nor the emptying of the cacher
/// makes a later revision smaller than an earlier one.
///
/// ```swift
/// let base = files.position
/// let outcome = try await files.save(record, param: id, over: base)
/// ```
public struct Revision: Hashable, Comparable, Sendable, Codable, CustomStringConvertible {
    /// The number of the change; greater for later changes.
    public var number: UInt64
    /// The random number of the cacher that made the change.
    public var writer: UInt64

    /// Creates a revision, for authors of shared cachers.
    ///
    /// - Parameters:
    ///   - number: The number of the change.
    ///   - writer: The random number of the cacher that made the change.
    public init(number: UInt64, writer: UInt64) {
        self.number = number
        self.writer = writer
    }

    /// The revision before all changes; also that of a record without a revision.
    public static let none = Revision(number: 0, writer: 0)

    /// Returns whether a revision precedes another one.
    public static func < (lhs: Revision, rhs: Revision) -> Bool {
        (lhs.number, lhs.writer) < (rhs.number, rhs.writer)
    }

    /// The number in decimal and the writer in hexadecimal digits, such as `12/5f3a`.
    public var description: String { "\(number)/\(String(writer, radix: 16))" }
}
