public import Foundation
public import StoreCore

/// Why a pass did not make the local side equal to the source.
public struct SyncError: LocalizedError, Sendable, CustomStringConvertible {
    /// What kind of error this is.
    public var code: Code
    /// The operation that failed and what to do about it.
    public var message: String
    /// In which stage it failed; `nil` outside a pass.
    public var stage: SyncStage?
    /// How far the pass came, with everything that went wrong; `nil` outside a pass.
    public var report: SyncReport?
    /// What the error comes from, where something below failed.
    public var underlyingError: (any Error)?
    /// Whether another attempt begins from another state, although errors of this code last.
    var isWorthRetrying = false

    /// Makes an error.
    ///
    /// - Parameters:
    ///   - code: What kind of error this is.
    ///   - message: The operation that failed and what to do about it.
    ///   - stage: In which stage it failed.
    ///   - report: How far the pass came.
    ///   - underlyingError: What it comes from.
    public init(
        _ code: Code, _ message: String, stage: SyncStage? = nil, report: SyncReport? = nil, underlyingError: (any Error)? = nil
    ) {
        self.code = code
        // Names of a list are in it, and the message may go to a terminal.
        self.message = message.escapedForDisplay()
        self.stage = stage
        self.report = report
        self.underlyingError = underlyingError
    }

    /// The operation that failed, what to do about it, and what it comes from.
    public var description: String {
        var text = "SyncError.\(code.rawValue): \(message)"
        if let underlyingError { text += " (underlying: \("\(underlyingError)".escapedForDisplay()))" }
        return text
    }

    /// The description, also as `localizedDescription`.
    public var errorDescription: String? { description }

    /// The kinds of errors; the set is open.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// The code's name.
        public let rawValue: String

        /// Makes a code of that name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// Some items failed; the report names each with stage and key. Everything else was done.
        public static let incomplete = Code(rawValue: "incomplete")
        /// The run was cancelled; the next one goes on where it stopped.
        public static let cancelled = Code(rawValue: "cancelled")
        /// A stage that is not about a single item failed; the underlying error tells why.
        public static let stageFailed = Code(rawValue: "stageFailed")
        /// The remote list stopped without its end, or had another count than it said.
        public static let incompleteList = Code(rawValue: "incompleteList")
        /// The remote list is no list of items, or an item of it cannot be decoded.
        public static let unreadableList = Code(rawValue: "unreadableList")
        /// A list that is said to be sorted is not.
        public static let unsortedList = Code(rawValue: "unsortedList")
        /// A list has a key more than once.
        public static let duplicateKeys = Code(rawValue: "duplicateKeys")
        /// The remote list is empty and the local side is not.
        public static let emptySource = Code(rawValue: "emptySource")
        /// More would be removed than `removalLimit` allows.
        public static let removalLimit = Code(rawValue: "removalLimit")
        /// More would be replaced than `updateLimit` allows.
        public static let updateLimit = Code(rawValue: "updateLimit")
        /// Most of the items that would be replaced would get the same content.
        public static let sharedContent = Code(rawValue: "sharedContent")
        /// Not one local item is as the source has it.
        public static let everythingChanged = Code(rawValue: "everythingChanged")
        /// `sync()` was called by a call of the processor that the run waits for.
        public static let calledFromWithin = Code(rawValue: "calledFromWithin")
        /// A local item was changed between plan and deed, and is left alone.
        public static let changedLocally = Code(rawValue: "changedLocally")
        /// Another process, or another synchronizer, works on the same target.
        public static let targetLocked = Code(rawValue: "targetLocked")
        /// A name that would leave the target's directory, or that cannot be a file's name.
        public static let unsafeName = Code(rawValue: "unsafeName")
        /// Two names that the target takes for one.
        public static let nameClash = Code(rawValue: "nameClash")
        /// Something that is no plain file, or a file where a directory must be, has the name.
        public static let nameTaken = Code(rawValue: "nameTaken")
        /// What was downloaded has not the size or the digest that the list says.
        public static let wrongContent = Code(rawValue: "wrongContent")
    }
}

extension SyncError: FailureAdvising {
    /// Whether trying again may help: after another writer, and after wrong content that was put together from several attempts.
    ///
    /// Wrong content that arrived in one attempt is what the origin has: it would only be downloaded again.
    /// A stage fails as what it failed of; what the list or the target is wrong about stays wrong.
    public var failureKind: FailureKind {
        switch code {
        case .cancelled: .cancelled
        case .targetVanished: .fatal
        case .targetLocked: .transient
        case _ where isWorthRetrying: .transient
        case .stageFailed, .incomplete: underlyingError.map { FailureKind(judging: $0) } ?? .permanent
        default: .permanent
        }
    }
}
