/// What is known of the pages at one side of a list.
public enum AdditionalLoadingState: Sendable {
    /// Nothing is being loaded there; `canRequestAdditionalData` tells whether there is a page to ask for.
    case fixed(canRequestAdditionalData: Bool)
    /// A page is being loaded there.
    case loading
    /// The last page asked for there failed; asking again tries the same page.
    case error(rawError: any Error)

    /// There is no page to ask for: the value for everything that is not a list.
    public static let none = AdditionalLoadingState.fixed(canRequestAdditionalData: false)

    /// Whether asking for a page now would load one: there is one, and it is neither being loaded nor known to be missing.
    public var canRequestAdditionalData: Bool {
        switch self {
        case .fixed(let canRequestAdditionalData): canRequestAdditionalData
        case .loading: false
        case .error: true
        }
    }

    /// Whether a page is being loaded.
    public var isLoading: Bool {
        if case .loading = self { true } else { false }
    }

    /// The error of the last page asked for, where it failed.
    public var error: (any Error)? {
        if case .error(let rawError) = self { rawError } else { nil }
    }
}

extension AdditionalLoadingState {
    /// Calls the closure that fits the state.
    ///
    /// ```swift
    /// let footer = next.doAction(
    ///     onFixed: { $0 ? "Load more" : "" },
    ///     onLoading: { "Loading more" },
    ///     onError: { "Failed: \($0)" })
    /// ```
    ///
    /// - Parameters:
    ///   - onFixed: Gets whether there is a page to request.
    ///   - onLoading: Runs while a page is being loaded.
    ///   - onError: Gets the error of the last page request.
    /// - Returns: The closure's result.
    /// - Throws: The closure's error.
    @discardableResult
    public func doAction<Result, Failure: Error>(
        onFixed: (_ canRequestAdditionalData: Bool) throws(Failure) -> Result,
        onLoading: () throws(Failure) -> Result,
        onError: (_ rawError: any Error) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        switch self {
        case .fixed(let canRequestAdditionalData): try onFixed(canRequestAdditionalData)
        case .loading: try onLoading()
        case .error(let rawError): try onError(rawError)
        }
    }
}

extension AdditionalLoadingState: Equatable {
    /// Whether both say the same; two errors are equal when their types and their `String(reflecting:)` are.
    public static func == (lhs: AdditionalLoadingState, rhs: AdditionalLoadingState) -> Bool {
        switch (lhs, rhs) {
        case (.fixed(let left), .fixed(let right)): left == right
        case (.loading, .loading): true
        case (.error(let left), .error(let right)): isSame(left, right)
        default: false
        }
    }
}
