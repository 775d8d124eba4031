#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import StoreCore

/// A fault of a `FileCacher` that did not fail a call, because it is a miss or occurred in the background.
///
/// ```swift
/// let cacher = FileCacher<Int, String>(directory: directory) { fault in
///     print("cache file \(fault.file.lastPathComponent): \(fault.error)")
/// }
/// ```
public struct FileCacherFault: Error, Sendable, CustomStringConvertible {
    /// The kind of fault, which also tells whether the file was deleted.
    public var kind: Kind

    /// The file, or the directory if the fault concerns more than one file.
    public var file: URL

    /// The operation that failed, its cause, and the remedy if there is one.
    public var error: StoreError

    /// Creates a fault, for tests of fault handlers.
    ///
    /// - Parameters:
    ///   - kind: The kind of fault.
    ///   - file: The file or directory.
    ///   - error: The cause.
    public init(_ kind: Kind, file: URL, error: StoreError) {
        self.kind = kind
        self.file = file
        self.error = error
    }

    /// The kind of the fault, then the description of its error.
    public var description: String { "FileCacherFault.\(kind.rawValue): \(error)" }

    /// The kinds of faults. The set is open.
    public struct Kind: RawRepresentable, Hashable, Sendable {
        /// The name of the kind, as in the fault's description: `damaged`.
        public let rawValue: String

        /// Creates a kind with a name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The file's bytes were altered after they were written; the file was deleted.
        public static let damaged = Kind(rawValue: "damaged")
        /// The file is intact, but its content cannot be decoded, or it has another version of the file format. It stays
        /// until it is overwritten or evicted.
        public static let undecodable = Kind(rawValue: "undecodable")
        /// The file at a record's path is not a record of this key. The file stays, and a symbolic link is not followed.
        public static let foreign = Kind(rawValue: "foreign")
        /// The scan of the directory or the removal of records failed; the next scan tries again.
        public static let sweepFailed = Kind(rawValue: "sweepFailed")
        /// The changes of other processes cannot be followed; the cacher tries again, and then all records count as changed.
        public static let changesLost = Kind(rawValue: "changesLost")
    }
}
