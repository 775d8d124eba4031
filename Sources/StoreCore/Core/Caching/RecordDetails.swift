#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// The rarely used parts of a record, stored out of line.
@usableFromInline
package final class RecordDetails: Sendable {
    package struct Fields: Hashable, Sendable, Codable {
        package var freshness = Freshness.unspecified
        package var validator: Validator?
        package var nextKey: String?
        package var prevKey: String?
        package var guessedEnd: GuessedEnd?
        /// The pages of a list; `nil` while all elements belong to the list's initial page.
        package var pages: LoadedPages?
        package var isInvalidated = false
        /// Whether the stream that brought the content has ended normally, so that valid content begins no other one (L4).
        package var isComplete: Bool?
        /// The delivered commands that the content contains and that their outbox may show again after a restart.
        package var commands: [UUID]?
        /// The stamp of the content in a store with links (E2).
        package var stamp: Stamp?
        /// The stamps of the fields that newer fragments have brought, by the names of the fields.
        package var parts: [String: Stamp]?
        package var places: PlaceStamps?
    }

    package let fields: Fields

    /// The arrival of the first page, if one fetch has loaded several pages; `nil` for all other details, and after a load from a cacher.
    let arrival: MonotonicInstant?
    /// The age that the origin stated, in microseconds as stamps have them, or the largest one of pages that one fetch has loaded; zero after
    /// a load from a cacher.
    let age: Stamp
    /// The number of the last change of an entity that the content contains; zero if it must be reconciled before it is shown.
    @usableFromInline let reconciled: UInt64

    /// Returns `nil` if every field has its default, so that such a record has no out-of-line storage. An empty page key counts as none.
    package convenience init?(_ fields: Fields) { self.init(fields, age: 0) }

    private convenience init?(_ fields: Fields, age: Stamp) {
        var fields = fields
        if fields.nextKey?.isEmpty == true { fields.nextKey = nil }
        if fields.prevKey?.isEmpty == true { fields.prevKey = nil }
        guard
            fields.nextKey != nil || fields.prevKey != nil || fields.validator != nil || fields.isInvalidated || fields.pages != nil
                || fields.freshness != .unspecified || fields.commands?.isEmpty == false || fields.guessedEnd != nil
                || fields.stamp != nil || fields.isComplete != nil
        else { return nil }
        self.init(keeping: fields, age: age)
    }

    /// The same initializer for the parts of an origin's response. Most responses have none, so it decides before it makes `Fields`.
    @usableFromInline
    convenience init?(
        freshness: Freshness, validator: Validator? = nil, nextKey: String? = nil, prevKey: String? = nil,
        guessedEnd: GuessedEnd? = nil, age: Duration = .zero
    ) {
        let (hasNext, hasPrev) = (nextKey?.isEmpty == false, prevKey?.isEmpty == false)
        guard hasNext || hasPrev || validator != nil || freshness != .unspecified || guessedEnd != nil || age > .zero else { return nil }
        self.init(
            keeping: Fields(
                freshness: freshness, validator: validator, nextKey: hasNext ? nextKey : nil, prevKey: hasPrev ? prevKey : nil,
                guessedEnd: guessedEnd),
            age: age > .zero ? Stamp(min(age / Duration.microseconds(1), 1e18)) : 0)
    }

    /// Creates the details of a list after a page was added.
    ///
    /// The validator still describes the initial page if the page replaced no element. The page is merged with an empty one at that end if
    /// the list has a window (C18).
    convenience init(
        _ list: RecordDetails?, extendedBy page: RecordDetails?, _ direction: PageDirection, key: String?,
        sizes: (before: Int, after: Int), keepsValidator: Bool, mergesEmpty: Bool, arrival: MonotonicInstant? = nil
    ) {
        var fields = list?.fields ?? Fields()
        // A list must not be stored if any of its pages must not be stored.
        let storage = page?.fields.freshness.storage ?? .allowed
        var pages = fields.pages ?? LoadedPages([LoadedPage(fields.freshness.storage, count: sizes.before)])
        if storage == .forbidden { fields.freshness.storage = .forbidden }
        let returnKey = direction == .next ? page?.fields.prevKey : page?.fields.nextKey
        let added = LoadedPage(direction: direction, storage, key: key, returnKey: returnKey, count: sizes.after - sizes.before)
        if mergesEmpty { pages.addMerging(added, at: direction) } else { pages.add(added, at: direction) }
        // The page has replaced elements of other pages with its own.
        if storage == .forbidden, !keepsValidator { pages.spreadStorage() }
        if !keepsValidator { fields.validator = fields.validator?.withoutVersion }
        switch direction {
        case .next: (fields.nextKey, fields.guessedEnd) = (page?.fields.nextKey, page?.fields.guessedEnd)
        case .prev: fields.prevKey = page?.fields.prevKey
        }
        (fields.pages, fields.places) = (pages, nil)
        self.init(keeping: fields, arrival: arrival, age: max(list?.age ?? 0, page?.age ?? 0))
    }

    /// Creates the details of a list that begins with another page than the initial one.
    convenience init?(_ page: RecordDetails?, of start: PageStart, count: Int) {
        var fields = page?.fields ?? Fields()
        let (direction, key) =
            switch start {
            case .page(let direction, let key): (direction, key)
            }
        let returnKey = direction == .next ? fields.prevKey : fields.nextKey
        let first = LoadedPage(direction: direction, fields.freshness.storage, key: key, returnKey: returnKey, count: count)
        fields.pages = LoadedPages([first])
        // A list keeps only the validator of its initial page, and the notes of the page with which it began.
        fields.validator = fields.validator?.withoutVersion
        self.init(fields, age: page?.age ?? 0)
    }

    init(keeping fields: Fields, arrival: MonotonicInstant? = nil, age: Stamp = 0, reconciled: UInt64 = 0) {
        var fields = fields
        // A list with a next page has not ended.
        if fields.nextKey != nil { fields.guessedEnd = nil }
        (self.fields, self.arrival, self.age, self.reconciled) = (fields, arrival, age, reconciled)
    }

    func hasPage(_ direction: PageDirection) -> Bool {
        direction == .next ? fields.nextKey != nil : fields.prevKey != nil
    }
}
