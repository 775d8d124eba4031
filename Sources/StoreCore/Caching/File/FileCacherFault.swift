public import Foundation

/// Something wrong with a file of a `FileCacher` that did not fail a call, because it is a miss or happened in the background.
///
/// ```swift
/// let cacher = FileCacher<Int, String>(directory: directory) { fault in
///     print("cache file \(fault.file.lastPathComponent): \(fault.error)")
/// }
/// ```
public struct FileCacherFault: Error, Sendable, CustomStringConvertible {
    /// What kind of fault this is, and so what became of the file.
    public var kind: Kind

    /// The file, or the directory where it concerns more than one.
    public var file: URL

    /// What was wrong and what to do about it.
    public var error: StoreError

    /// Makes a fault, for tests of what handles them.
    ///
    /// - Parameters:
    ///   - kind: What kind of fault this is.
    ///   - file: The file or directory.
    ///   - error: What was wrong.
    public init(_ kind: Kind, file: URL, error: StoreError) {
        self.kind = kind
        self.file = file
        self.error = error
    }

    /// The kind, and what was wrong.
    public var description: String { "FileCacherFault.\(kind.rawValue): \(error)" }

    /// The kinds of faults; the set is open.
    public struct Kind: RawRepresentable, Hashable, Sendable {
        /// The kind's name.
        public let rawValue: String

        /// Makes a kind of that name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The file's bytes are not those that were written; it was deleted.
        public static let damaged = Kind(rawValue: "damaged")
        /// The file is whole, but its content does not decode; it stays until it is overwritten or swept.
        public static let undecodable = Kind(rawValue: "undecodable")
        /// Something else than a record of this key has the record's name; it stays, and is not followed where it is a link.
        public static let foreign = Kind(rawValue: "foreign")
        /// Scanning the directory or removing what was used longest ago failed; the next scan tries again.
        public static let sweepFailed = Kind(rawValue: "sweepFailed")
    }
}
