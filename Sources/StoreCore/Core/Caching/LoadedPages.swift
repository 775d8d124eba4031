/// One page of a list in its record: the request that loaded it, and the number of consecutive elements that belong to it.
///
/// ```swift
/// let record = try await cacher.load(param: "swift")
/// let sizes = record?.pages.map(\.count)  // [50, 50, 12]
/// ```
///
/// Pages are in the order of the list: the first page owns the first `count` elements, the second page the next ones, and so on. An element
/// that a later page repeats stays with the page that loaded it first.
public struct LoadedPage: Hashable, Sendable, Codable {
    /// The direction in which the page was added; `nil` for the list's initial page.
    public var direction: PageDirection?

    /// Whether the page may be passed to a cacher. Not encoded, because a list with a page that must not be stored is never saved.
    var storage = Freshness.Storage.allowed

    /// The key that requested the page; `nil` for the list's initial page.
    public var key: String?

    /// The page's key for its opposite direction, toward the list's initial page; `nil` if the page had none.
    public var returnKey: String?

    /// The number of elements of the list that belong to this page.
    public var count: Int

    /// Creates the description of a page.
    ///
    /// - Parameters:
    ///   - direction: The direction in which the page was added; `nil` for the list's initial page.
    ///   - key: The key that requested the page.
    ///   - returnKey: The page's key for its opposite direction.
    ///   - count: The number of elements of the list that belong to this page.
    public init(direction: PageDirection? = nil, key: String? = nil, returnKey: String? = nil, count: Int) {
        self.direction = direction
        self.key = key
        self.returnKey = returnKey
        self.count = count
    }

    init(direction: PageDirection? = nil, _ storage: Freshness.Storage, key: String? = nil, returnKey: String? = nil, count: Int) {
        self.init(direction: direction, key: key, returnKey: returnKey, count: count)
        self.storage = storage
    }

    private enum CodingKeys: String, CodingKey { case direction, key, returnKey, count }
}

/// The number of pages in each direction beside the page that a fetch of the list begins with.
struct PageCounts: Hashable, Sendable {
    var next = 0
    var prev = 0
    /// The page to begin with; `nil` for the list's initial page.
    var start: PageStart?
}

/// The first page of a list that has lost its initial page (C18).
///
/// Indirect, so that the fetches of all other content carry one word instead of three.
indirect enum PageStart: Hashable, Sendable {
    case page(PageDirection, key: String)
}

/// The pages of a list in its order.
///
/// Adding a page takes constant time although earlier values stay valid: values that differ only in pages at an end share one log.
package struct LoadedPages: Hashable, Sendable {
    /// The pages added in front, the latest last.
    private var front: PageLog?
    private var back: PageLog

    package init(_ pages: [LoadedPage]) {
        back = PageLog(pages)
    }

    package var all: [LoadedPage] { (front?.pages.reversed() ?? []) + back.pages }

    mutating func add(_ page: LoadedPage, at direction: PageDirection) {
        switch direction {
        case .next: back = back.appending(page)
        case .prev: front = front?.appending(page) ?? PageLog([page])
        }
    }

    /// Adds a page in one direction, and merges it with the page at that end if that one is empty.
    ///
    /// The merged page has the key of the empty one: its elements may have come after the empty page, which is requested again before it.
    mutating func addMerging(_ page: LoadedPage, at direction: PageDirection) {
        guard let empty = all.emptyEnd(direction) else { return add(page, at: direction) }
        var (pages, merged) = (all, page)
        (merged.key, merged.returnKey) = (empty.key, empty.returnKey)
        if empty.storage == .forbidden { merged.storage = .forbidden }
        pages[direction == .next ? pages.count - 1 : 0] = merged
        self = LoadedPages(pages)
    }

    var withoutEmptyEnds: LoadedPages {
        var pages = all
        if pages.count > 1, pages.emptyEnd(.next) != nil { pages.removeLast() }
        if pages.count > 1, pages.emptyEnd(.prev) != nil { pages.removeFirst() }
        return LoadedPages(pages)
    }

    var counts: PageCounts {
        let pages = all
        let hasInitialPage = pages.contains { $0.direction == nil }
        if !hasInitialPage, let first = pages.first, let direction = first.direction, let key = first.key {
            return PageCounts(next: pages.count - 1, start: .page(direction, key: key))
        }
        return PageCounts(next: pages.count { $0.direction == .next }, prev: pages.count { $0.direction == .prev })
    }

    /// Whether the whole list may be passed to a cacher: it may not if one of its pages may not.
    var storage: Freshness.Storage { all.allSatisfy { $0.storage == .allowed } ? .allowed : .forbidden }

    /// Forbids the storage of each page if one page must not be stored, because a change may have moved its elements to other pages.
    mutating func spreadStorage() {
        guard storage == .forbidden else { return }
        var pages = all
        for position in pages.indices { pages[position].storage = .forbidden }
        self = LoadedPages(pages)
    }

    /// Changes the sizes of the pages after a change other than an added page.
    mutating func resize(_ change: (_ sizes: [Int]) -> [Int]) {
        spreadStorage()
        var pages = all
        let sizes = pages.map(\.count)
        let resized = change(sizes)
        guard resized != sizes, resized.count == sizes.count else { return }
        for (position, size) in resized.enumerated() { pages[position].count = size }
        self = LoadedPages(pages)
    }
}

extension [LoadedPage] {
    /// The page at one end if it was added there and has no elements.
    func emptyEnd(_ direction: PageDirection) -> LoadedPage? {
        guard let page = direction == .next ? last : first, page.count == 0, page.direction == direction else { return nil }
        return page
    }
}

extension LoadedPages: Codable {
    package init(from decoder: any Decoder) throws {
        self.init(try decoder.singleValueContainer().decode([LoadedPage].self))
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(all)
    }

    /// The distribution of pages between the logs depends on the order of their arrival, so it does not count.
    package static func == (lhs: LoadedPages, rhs: LoadedPages) -> Bool { lhs.all == rhs.all }

    package func hash(into hasher: inout Hasher) { hasher.combine(all) }
}

/// The first `count` pages of a log that only grows.
///
/// Only the value that ends where the log ends appends in place. Every other value starts a new log.
private struct PageLog: Sendable {
    private final class Storage: Sendable {
        let pages: Lock<[LoadedPage]>

        init(_ pages: [LoadedPage]) { self.pages = Lock(pages) }
    }

    private let storage: Storage
    private let count: Int

    init(_ pages: [LoadedPage]) {
        storage = Storage(pages)
        count = pages.count
    }

    private init(_ storage: Storage, count: Int) {
        self.storage = storage
        self.count = count
    }

    var pages: [LoadedPage] { storage.pages.withLock { Array($0.prefix(count)) } }

    func appending(_ page: LoadedPage) -> PageLog {
        let appended = storage.pages.withLock { pages in
            guard pages.count == count else { return false }
            pages.append(page)
            return true
        }
        return appended ? PageLog(storage, count: count + 1) : PageLog(pages + [page])
    }
}
