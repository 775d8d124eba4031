/// What became of asking for a page.
///
/// ```swift
/// while await repos["apple"].requestNextData() == .loaded {}
/// ```
public enum PageRequest: Sendable {
    /// The page was fetched and is part of the list.
    case loaded
    /// Somebody else had asked for the same page; it is part of the list now.
    case joined
    /// There is no page at that side.
    case noPage
    /// The list itself was missing, being fetched or failed; its fetch was joined or started and has ended. Ask again.
    case notLoadedYet
    /// The page could not be fetched, or the caller was cancelled; the list and the page's key are as they were.
    case failed(any Error)
    /// `refresh()`, `publish(forceRefresh: true)`, `clear()` or an update with new keys came first, and the page was dropped.
    ///
    /// Other changes and automatic fetches only interrupt a request: the store requests the page again, for the list as it is then.
    case superseded
}

extension PageRequest: Equatable {
    /// Whether both say the same; two errors are equal when their types and their `String(reflecting:)` are.
    public static func == (lhs: PageRequest, rhs: PageRequest) -> Bool {
        switch (lhs, rhs) {
        case (.loaded, .loaded), (.joined, .joined), (.noPage, .noPage), (.notLoadedYet, .notLoadedYet), (.superseded, .superseded): true
        case (.failed(let left), .failed(let right)): isSame(left, right)
        default: false
        }
    }
}
