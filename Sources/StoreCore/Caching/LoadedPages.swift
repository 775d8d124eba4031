/// One page of a list as its record keeps it: how it was requested, and how many consecutive elements of the list are its own.
///
/// ```swift
/// let record = try await cacher.load(param: "swift")
/// let sizes = record?.pages.map(\.count)  // [50, 50, 12]
/// ```
///
/// Pages stand in the order of the list, so the first page owns the first `count` elements, the second page the next ones. An element that
/// a later page repeats stays with the page that had it first.
public struct LoadedPage: Hashable, Sendable, Codable {
    /// The side at which the page was added; `nil` for the page that the list began with.
    public var direction: PageDirection?

    /// The key that requested the page; `nil` for the page that the list began with.
    public var key: String?

    /// The key that the page gave for its other side, toward the page that the list began with; `nil` where it gave none.
    public var returnKey: String?

    /// The number of elements that the list has from this page.
    public var count: Int

    /// Creates the description of a page.
    ///
    /// - Parameters:
    ///   - direction: The side at which the page was added; `nil` for the page that the list began with.
    ///   - key: The key that requested the page.
    ///   - returnKey: The key that the page gave for its other side.
    ///   - count: The number of elements that the list has from this page.
    public init(direction: PageDirection? = nil, key: String? = nil, returnKey: String? = nil, count: Int) {
        self.direction = direction
        self.key = key
        self.returnKey = returnKey
        self.count = count
    }
}

/// The number of pages that a list holds beside the one that it began with.
struct PageCounts: Hashable, Sendable {
    /// Pages after it.
    var next = 0
    /// Pages before it.
    var prev = 0
}

/// The pages of a list in its order.
///
/// Adding a page takes constant time although earlier values stay valid: values that differ only in pages at an end share one log.
package struct LoadedPages: Hashable, Sendable {
    /// The pages added before the others, the latest last.
    private var front: PageLog?
    private var back: PageLog

    package init(_ pages: [LoadedPage]) {
        back = PageLog(pages)
    }

    package var all: [LoadedPage] { (front?.pages.reversed() ?? []) + back.pages }

    /// Adds a page at one side of the list.
    mutating func add(_ page: LoadedPage, at direction: PageDirection) {
        switch direction {
        case .next: back = back.appending(page)
        case .prev: front = front?.appending(page) ?? PageLog([page])
        }
    }

    var counts: PageCounts {
        var counts = PageCounts()
        for page in all {
            switch page.direction {
            case .next: counts.next += 1
            case .prev: counts.prev += 1
            case nil: break
            }
        }
        return counts
    }

    /// Gives the pages other sizes, after the list was changed in another way than by a page.
    mutating func resize(_ change: (_ sizes: [Int]) -> [Int]) {
        var pages = all
        let sizes = pages.map(\.count)
        let resized = change(sizes)
        guard resized != sizes, resized.count == sizes.count else { return }
        for (position, size) in resized.enumerated() { pages[position].count = size }
        self = LoadedPages(pages)
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

    /// How the pages are divided between the logs depends on the order in which they came, so it does not count.
    package static func == (lhs: LoadedPages, rhs: LoadedPages) -> Bool { lhs.all == rhs.all }

    package func hash(into hasher: inout Hasher) { hasher.combine(all) }
}

/// The first `count` pages of a log that only grows.
///
/// Only the value that ends where the log ends appends to it in place; every other value begins a log of its own.
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
