/// The state of the pages in one direction of a list.
///
/// <doc:Paginating> shows the states of pages.
public enum AdditionalLoadingState: Sendable {
    /// No page is loading; `canRequestAdditionalData` states whether there is a page to request.
    case fixed(canRequestAdditionalData: Bool)
    /// A page is loading; a request now joins the running one.
    case loading
    /// The last page request failed; another request tries the same page.
    case error(rawError: any Error)

    /// The state without a page to request, which all content other than lists has.
    public static let none = AdditionalLoadingState.fixed(canRequestAdditionalData: false)

    /// Whether a request now would load a page: there is a page, and it is not loading.
    public var canRequestAdditionalData: Bool {
        switch self {
        case .fixed(let canRequestAdditionalData): canRequestAdditionalData
        case .loading: false
        case .error: true
        }
    }

    /// Whether a page in this direction is loading.
    public var isLoading: Bool {
        if case .loading = self { true } else { false }
    }

    /// The error of the last page request, if it failed.
    public var error: (any Error)? {
        if case .error(let rawError) = self { rawError } else { nil }
    }

    /// Calls the closure that matches the state.
    ///
    /// ```swift
    /// let footer = next.doAction(
    ///     onFixed: { $0 ? "Load more" : "" },
    ///     onLoading: { "Loading more" },
    ///     onError: { "Failed: \($0)" })
    /// ```
    ///
    /// - Parameters:
    ///   - onFixed: Receives whether there is a page to request.
    ///   - onLoading: Runs while a page is loading.
    ///   - onError: Receives the error of the last page request.
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
    /// Returns whether both states are equal; errors are equal if their types and their `String(reflecting:)` are.
    public static func == (lhs: AdditionalLoadingState, rhs: AdditionalLoadingState) -> Bool {
        switch (lhs, rhs) {
        case (.fixed(let left), .fixed(let right)): left == right
        case (.loading, .loading): true
        case (.error(let left), .error(let right)): isSame(left, right)
        default: false
        }
    }
}
