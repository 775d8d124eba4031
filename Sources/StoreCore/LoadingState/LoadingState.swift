/// What an observer may show now.
///
/// ```swift
/// switch state {
/// case .loading(let stale): show(stale, spinner: true)
/// case .completed(let user, next: _, prev: _): show(user)
/// case .error(let error, let stale): show(stale, banner: error)
/// }
/// ```
///
/// Each state carries its own content: what is read from it is what was true at its moment, however late it is looked at.
public enum LoadingState<Content> {
    /// A fetch is running; `content` is the last good content, if there is any.
    case loading(content: Content?)
    /// The content is there; `next` and `prev` tell of the pages beside a list and are fixed for anything else.
    case completed(content: Content, next: AdditionalLoadingState, prev: AdditionalLoadingState)
    /// The last fetch failed; `content` is the last good content, if there is any.
    case error(rawError: any Error, content: Content?)
}

extension LoadingState: Sendable where Content: Sendable {}

extension LoadingState {
    /// The content to show: the current one, or the last good one while loading and after an error.
    public var content: Content? {
        switch self {
        case .loading(let content): content
        case .completed(let content, next: _, prev: _): content
        case .error(rawError: _, let content): content
        }
    }

    /// The error of the last fetch, where it failed.
    public var error: (any Error)? {
        if case .error(let rawError, content: _) = self { rawError } else { nil }
    }

    /// Whether a fetch is running.
    public var isLoading: Bool {
        if case .loading = self { true } else { false }
    }

    /// Whether the content is there and no fetch is running or has failed.
    public var isCompleted: Bool {
        if case .completed = self { true } else { false }
    }

    /// A completed state of content without pages beside it.
    public static func completed(_ content: Content) -> LoadingState {
        .completed(content: content, next: .none, prev: .none)
    }

    /// The same state with other content.
    ///
    /// - Parameter transform: Makes the new content; called only where there is content.
    /// - Returns: A state of the same kind, with the same error and the same pages beside it.
    /// - Throws: What `transform` throws.
    @inlinable
    public func map<Other, Failure: Error>(_ transform: (Content) throws(Failure) -> Other) throws(Failure) -> LoadingState<Other> {
        switch self {
        case .loading(let content): .loading(content: try LoadingState.map(content, transform))
        case .completed(let content, let next, let prev): .completed(content: try transform(content), next: next, prev: prev)
        case .error(let rawError, let content): .error(rawError: rawError, content: try LoadingState.map(content, transform))
        }
    }

    @inlinable
    static func map<Other, Failure: Error>(
        _ content: Content?, _ transform: (Content) throws(Failure) -> Other
    ) throws(Failure) -> Other? {
        guard let content else { return nil }
        return try transform(content)
    }

    /// Calls the one of three closures that fits the state.
    ///
    /// - Parameters:
    ///   - onLoading: Gets the last good content, if there is any.
    ///   - onCompleted: Gets the content and the states of the pages beside it.
    ///   - onError: Gets the error and the last good content, if there is any.
    /// - Returns: What the closure returned.
    /// - Throws: What the closure throws.
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
    /// Whether both show the same; two errors are equal when their types and their `String(reflecting:)` are.
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

/// Whether two errors look the same: errors have no equality of their own.
func isSame(_ left: any Error, _ right: any Error) -> Bool {
    type(of: left) == type(of: right) && String(reflecting: left) == String(reflecting: right)
}
