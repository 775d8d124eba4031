/// The rarely used parts of a record, out of line.
@usableFromInline
package final class RecordDetails: Sendable {
    package struct Fields: Hashable, Sendable, Codable {
        package var freshness = Freshness.unspecified
        package var validator: Validator?
        package var nextKey: String?
        package var prevKey: String?
        package var loadedPages = PageCounts()
        package var isInvalidated = false

        package init(
            freshness: Freshness = .unspecified, validator: Validator? = nil, nextKey: String? = nil, prevKey: String? = nil,
            loadedPages: PageCounts = PageCounts(), isInvalidated: Bool = false
        ) {
            self.freshness = freshness
            self.validator = validator
            self.nextKey = nextKey
            self.prevKey = prevKey
            self.loadedPages = loadedPages
            self.isInvalidated = isInvalidated
        }
    }

    package let fields: Fields

    /// `nil` where every field has its default, so that such a record costs nothing out of line. Empty page keys are no keys.
    package convenience init?(_ fields: Fields) {
        self.init(
            freshness: fields.freshness, validator: fields.validator, nextKey: fields.nextKey, prevKey: fields.prevKey,
            loadedPages: fields.loadedPages, isInvalidated: fields.isInvalidated)
    }

    /// The same from its parts, as an origin says them: all of them together are large, and are put together in one place only.
    @usableFromInline
    convenience init?(
        freshness: Freshness, validator: Validator? = nil, nextKey: String? = nil, prevKey: String? = nil,
        loadedPages: PageCounts = PageCounts(), isInvalidated: Bool = false
    ) {
        let (hasNext, hasPrev) = (nextKey?.isEmpty == false, prevKey?.isEmpty == false)
        guard
            hasNext || hasPrev || validator != nil || isInvalidated || loadedPages != PageCounts() || freshness != .unspecified
        else { return nil }
        self.init(
            keeping: freshness, validator, nextKey: hasNext ? nextKey : nil, prevKey: hasPrev ? prevKey : nil, loadedPages, isInvalidated)
    }

    /// The details of a list to one side of which a page is put.
    ///
    /// - Parameters:
    ///   - list: What the list has so far.
    ///   - page: What the origin said beside the page.
    ///   - direction: The side.
    convenience init(_ list: RecordDetails?, extendedBy page: RecordDetails?, _ direction: PageDirection) {
        var freshness = list?.fields.freshness ?? .unspecified
        // A list of which a part must not be stored must not be stored.
        if page?.fields.freshness.storage == .forbidden { freshness.storage = .forbidden }
        var pages = list?.fields.loadedPages ?? PageCounts()
        switch direction {
        // A cacher's author may have written any number.
        case .next: pages.next = max(0, pages.next).addingSaturated(1)
        case .prev: pages.prev = max(0, pages.prev).addingSaturated(1)
        }
        self.init(
            keeping: freshness, list?.fields.validator,
            nextKey: direction == .next ? page?.fields.nextKey : list?.fields.nextKey,
            prevKey: direction == .prev ? page?.fields.prevKey : list?.fields.prevKey, pages, list?.fields.isInvalidated ?? false)
    }

    private init(
        keeping freshness: Freshness, _ validator: Validator?, nextKey: String?, prevKey: String?, _ loadedPages: PageCounts,
        _ isInvalidated: Bool
    ) {
        fields = Fields(
            freshness: freshness, validator: validator, nextKey: nextKey, prevKey: prevKey, loadedPages: loadedPages,
            isInvalidated: isInvalidated)
    }

    /// Whether there is a page at this side.
    func hasPage(_ direction: PageDirection) -> Bool {
        direction == .next ? fields.nextKey != nil : fields.prevKey != nil
    }
}
