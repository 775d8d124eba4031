/// The outcome of a page request.
///
/// ```swift
/// while await repos["apple"].requestNextData() == .loaded {}
/// ```
public enum PageRequest: Sendable {
    /// The page was fetched and is part of the list.
    case loaded
    /// Another caller had already requested this page, and it is now part of the list.
    case joined
    /// There is no page in this direction.
    case noPage
    /// The list itself was missing, loading or failed. The request joined or started its fetch, which has ended; request the page again.
    case notLoadedYet
    /// The page could not be fetched, or the caller was canceled. The list and the page key are unchanged.
    case failed(any Error)
    /// The page was dropped because `refresh()`, `publish(forceRefresh: true)`, `clear()` or an update with new keys came first.
    ///
    /// Other changes and automatic fetches only interrupt a request: the store requests the page again for the changed list.
    case superseded
}

extension PageRequest: Equatable {
    /// Returns whether both outcomes are equal; errors are equal if their types and their `String(reflecting:)` are.
    public static func == (lhs: PageRequest, rhs: PageRequest) -> Bool {
        switch (lhs, rhs) {
        case (.loaded, .loaded), (.joined, .joined), (.noPage, .noPage), (.notLoadedYet, .notLoadedYet), (.superseded, .superseded): true
        case (.failed(let left), .failed(let right)): isSame(left, right)
        default: false
        }
    }
}
