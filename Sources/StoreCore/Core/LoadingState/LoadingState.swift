/// The state that an observer may show now.
///
/// ```swift
/// switch state {
/// case .loading(let stale): show(stale, spinner: true)
/// case .completed(let user, next: _, prev: _): show(user)
/// case .error(let error, let stale): show(stale, banner: error)
/// }
/// ```
///
/// Each state carries its own content, so it stays consistent however late it is read.
///
/// <doc:GettingStarted> explains the states of an observation.
public enum LoadingState<Content> {
    /// A fetch is running; `content` is the last good content, if there is any.
    case loading(content: Content?)
    /// The content is available. `next` and `prev` describe the pages beside a list, and are `.none` for all other content.
    case completed(content: Content, next: AdditionalLoadingState, prev: AdditionalLoadingState)
    /// The last fetch failed; `content` is the last good content, if there is any.
    case error(rawError: any Error, content: Content?)
}

extension LoadingState: Sendable where Content: Sendable {}

extension LoadingState {
    /// The content to show: the current content, or the last good content while loading and after an error.
    public var content: Content? {
        switch self {
        case .loading(let content): content
        case .completed(let content, next: _, prev: _): content
        case .error(rawError: _, let content): content
        }
    }

    /// The error of the last fetch, if it failed.
    public var error: (any Error)? {
        if case .error(let rawError, content: _) = self { rawError } else { nil }
    }

    /// Whether a fetch of the content is running; a page that is loading does not count.
    public var isLoading: Bool {
        if case .loading = self { true } else { false }
    }

    /// Whether content is available and no fetch is running or has failed.
    public var isCompleted: Bool {
        if case .completed = self { true } else { false }
    }

    /// Returns a completed state of content without pages beside it.
    public static func completed(_ content: Content) -> LoadingState {
        .completed(content: content, next: .none, prev: .none)
    }

    /// Returns the same state with other content.
    ///
    /// - Parameter transform: Makes the new content; called only if there is content.
    /// - Returns: A state of the same kind, with the same error and the same page states.
    /// - Throws: The error that `transform` throws.
    @inlinable
    public func map<Other, Failure: Error>(_ transform: (Content) throws(Failure) -> Other) throws(Failure) -> LoadingState<Other> {
        switch self {
        case .loading(let content): .loading(content: try content.map(transform))
        case .completed(let content, let next, let prev): .completed(content: try transform(content), next: next, prev: prev)
        case .error(let rawError, let content): .error(rawError: rawError, content: try content.map(transform))
        }
    }

    /// Calls the closure that matches the state.
    ///
    /// - Parameters:
    ///   - onLoading: Receives the last good content, if there is any.
    ///   - onCompleted: Receives the content and both page states.
    ///   - onError: Receives the error and the last good content, if there is any.
    /// - Returns: The closure's result.
    /// - Throws: The closure's error.
    @discardableResult
    public func doAction<Result, Failure: Error>(
        onLoading: (_ content: Content?) throws(Failure) -> Result,
        onCompleted: (_ content: Content, _ next: AdditionalLoadingState, _ prev: AdditionalLoadingState) throws(Failure) -> Result,
        onError: (_ rawError: any Error, _ content: Content?) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        switch self {
        case .loading(let content): try onLoading(content)
        case .completed(let content, let next, let prev): try onCompleted(content, next, prev)
        case .error(let rawError, let content): try onError(rawError, content)
        }
    }
}

extension LoadingState: Equatable where Content: Equatable {
    /// Returns whether both states are equal; errors are equal if their types and their `String(reflecting:)` are.
    public static func == (lhs: LoadingState, rhs: LoadingState) -> Bool {
        switch (lhs, rhs) {
        case (.loading(let left), .loading(let right)): left == right
        case (.completed(let left, let leftNext, let leftPrev), .completed(let right, let rightNext, let rightPrev)):
            left == right && leftNext == rightNext && leftPrev == rightPrev
        case (.error(let leftError, let left), .error(let rightError, let right)): left == right && isSame(leftError, rightError)
        default: false
        }
    }
}

/// Returns whether two errors look the same, because errors have no equality of their own.
func isSame(_ left: any Error, _ right: any Error) -> Bool {
    type(of: left) == type(of: right) && String(reflecting: left) == String(reflecting: right)
}
