#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

public import StoreCore

/// The reason why a pass did not make the local side equal to the source.
///
/// <doc:ErrorsAndRetries> explains which failures end a pass.
public struct SyncError: LocalizedError, Sendable, CustomStringConvertible {
    /// The reason for the failure. The set of codes is open, so a `switch` needs a `default`.
    public var code: Code
    /// The failed operation, the reason, and the remedy.
    public var message: String
    /// The stage that failed; `nil` outside a pass.
    public var stage: SyncStage?
    /// The progress and all failures of the pass; `nil` outside a pass.
    public var report: SyncReport?
    /// The error that caused this error, if there is one.
    public var underlyingError: (any Error)?
    /// Whether another attempt may succeed, although errors of this code normally persist.
    var isWorthRetrying = false
    /// The file or directory that causes the failure, perhaps also that of other items; `nil` without one. A report names it only once.
    var place: PathKey?

    /// Creates an error; each parameter sets the property of its name.
    public init(
        _ code: Code, _ message: String, stage: SyncStage? = nil, report: SyncReport? = nil, underlyingError: (any Error)? = nil
    ) {
        self.code = code
        // Escapes control characters, because a message contains names of the list and may be printed to a terminal.
        self.message = message.escapedForDisplay()
        self.stage = stage
        self.report = report
        self.underlyingError = underlyingError
    }

    /// The code, the message, and the underlying error.
    public var description: String {
        var text = "SyncError.\(code.rawValue): \(message)"
        // The message of an incomplete pass contains its first failure.
        if let underlyingError, code != .incomplete { text += " (underlying: \("\(underlyingError)".escapedForDisplay()))" }
        return text
    }

    /// The description, which is also the `localizedDescription`.
    public var errorDescription: String? { description }

    /// The kinds of errors; the set is open.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// The name of the code, as in the error's description: `incompleteList`.
        public let rawValue: String

        /// Creates a code with a name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// Some items failed; the report names each with its stage and key. All other items were processed.
        public static let incomplete = Code(rawValue: "incomplete")
        /// The run was canceled; the next run resumes its work.
        public static let cancelled = Code(rawValue: "cancelled")
        /// A stage failed as a whole; the underlying error gives the reason.
        public static let stageFailed = Code(rawValue: "stageFailed")
        /// The remote list stopped before its end, or its count was wrong.
        public static let incompleteList = Code(rawValue: "incompleteList")
        /// The remote list cannot be parsed, or an item of it cannot be decoded.
        public static let unreadableList = Code(rawValue: "unreadableList")
        /// The remote list has more items or pages than `listLimit` allows, or more bytes than `byteLimit`.
        public static let listLimit = Code(rawValue: "listLimit")
        /// A list violates its declared order.
        public static let unsortedList = Code(rawValue: "unsortedList")
        /// A list contains a key more than once.
        public static let duplicateKeys = Code(rawValue: "duplicateKeys")
        /// The remote list is empty, but the local side is not.
        public static let emptySource = Code(rawValue: "emptySource")
        /// The filter excludes every item of the remote list.
        public static let everythingExcluded = Code(rawValue: "everythingExcluded")
        /// The plan would remove more than `removalLimit` allows.
        public static let removalLimit = Code(rawValue: "removalLimit")
        /// The plan would replace more than `updateLimit` allows.
        public static let updateLimit = Code(rawValue: "updateLimit")
        /// Most of the items to replace would receive the same content.
        public static let sharedContent = Code(rawValue: "sharedContent")
        /// No local item equals the source.
        public static let everythingChanged = Code(rawValue: "everythingChanged")
        /// The processor called `sync()` within a call for which the run waits.
        public static let calledFromWithin = Code(rawValue: "calledFromWithin")
        /// A local item changed after the plan was made, and is left alone.
        public static let changedLocally = Code(rawValue: "changedLocally")
        /// Another process or another synchronizer works on the same target.
        public static let targetLocked = Code(rawValue: "targetLocked")
        /// The name would lead out of the target's directory, or cannot be a file name.
        public static let unsafeName = Code(rawValue: "unsafeName")
        /// The target treats two names as equal.
        public static let nameClash = Code(rawValue: "nameClash")
        /// The name belongs to something other than a regular file, or a file exists where a directory is needed.
        public static let nameTaken = Code(rawValue: "nameTaken")
        /// The downloaded content does not have the size or digest in the list.
        public static let wrongContent = Code(rawValue: "wrongContent")
    }
}

extension SyncError: FailureAdvising {
    /// The kind of the failure: transient if another writer holds the target, or if another attempt may repair wrong content.
    ///
    /// Another attempt may repair content that is too short, or that was assembled from several attempts. Other wrong content is the
    /// origin's, and another download would return it again. A failed stage has the kind of its underlying error. A fault of the list or
    /// the target persists.
    public var failureKind: FailureKind {
        switch code {
        case .cancelled: .cancelled
        case .targetVanished, .foreignOwner: .fatal
        // Other directories of the target can still be changed.
        case .targetDenied: place == nil ? .fatal : .permanent
        case .targetLocked: .transient
        case _ where isWorthRetrying: .transient
        case .stageFailed, .incomplete: underlyingError.map { FailureKind(judging: $0) } ?? .permanent
        default: .permanent
        }
    }
}
