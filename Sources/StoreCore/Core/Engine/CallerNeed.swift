/// The result that a caller waits for.
enum CallerNeed: Hashable, Sendable {
    /// Valid content from the cache or the origin.
    case content
    /// Content fetched after the call, or by a fetch of the current epoch.
    case origin
    /// Valid content of the cache, without a fetch.
    case cached
    /// Valid content after a fetch that did not fail, or the end of a fetch.
    case freshness
    /// Valid content for later use, requested by the prefetch queue.
    ///
    /// The caller gets no content. After a failed fetch, valid content is not fetched again, and clearing the key ends the wait.
    case prefetch
    /// The end of a fetch of the current epoch, and the save of its result.
    case refresh
    /// Knowledge of the accepted content. The caller stays registered, so that the key stays live until the caller leaves.
    case acceptedContent
    /// The save of this revision or a later one; fails if that save fails.
    case saved(Ticket)
    /// The save of content that was derived from the previous content.
    ///
    /// The result is `outdated` if a newer record of another user replaces the derived content. The caller then derives it again.
    case savedEdit(Ticket)
    /// The save of all content accepted so far, including failed saves.
    case allSaved
    /// A page at one side of the list.
    case page(PageDirection, continueWhenError: Bool)
    /// A page of a list that is being fetched. The caller is resumed without a page when the fetch ends.
    case pageAfterFetch
    /// A page that an earlier caller has requested.
    case joinedPage(PageDirection)

    /// Whether the caller keeps a fetch running. A caller that waits only for the cacher does not.
    var wantsFetch: Bool {
        switch self {
        case .content, .origin, .freshness, .prefetch, .refresh, .page, .pageAfterFetch, .joinedPage: true
        case .cached, .acceptedContent, .saved, .savedEdit, .allSaved: false
        }
    }

    /// Whether the caller waits for the cacher alone and needs no content.
    var isSavedNeed: Bool {
        switch self {
        case .saved, .savedEdit: true
        default: false
        }
    }

    /// Whether the caller waits for a save at last.
    var endsWithSave: Bool { isSavedNeed || self == .allSaved || self == .refresh }

    /// Whether the caller requests a page of a list that is not known yet.
    var isPageNeed: Bool {
        if case .page = self { true } else { false }
    }
}

@usableFromInline
enum CallerResult<Content: Sendable>: Sendable {
    case content(Content)
    case failure(any Error)
    case done
    case page(PageRequest)
    /// The content that the caller started from is no longer the newest.
    case outdated
    /// The caller's task was canceled. Machines never return this.
    case cancelled
}

/// The outcome of a caller's arrival.
enum Admission: Sendable {
    case immediate(CallerResult<BoxedContent>)
    case waiting(SharedResult<CallerResult<BoxedContent>>)
}
