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
/// Stored in chunks, so that adding a page copies one chunk and the short list of chunks instead of the keys of all pages.
package struct LoadedPages: Hashable, Sendable {
    private static var chunkSize: Int { 32 }

    private var chunks: [[LoadedPage]]

    package init(_ pages: [LoadedPage]) {
        chunks = stride(from: 0, to: pages.count, by: Self.chunkSize).map { start in
            Array(pages[start..<min(start + Self.chunkSize, pages.count)])
        }
    }

    package var all: [LoadedPage] { Array(chunks.joined()) }

    /// Adds a page at one side of the list.
    mutating func add(_ page: LoadedPage, at direction: PageDirection) {
        switch direction {
        case .next:
            if let last = chunks.indices.last, chunks[last].count < Self.chunkSize {
                chunks[last].append(page)
            } else {
                chunks.append([page])
            }
        case .prev:
            if let first = chunks.first, first.count < Self.chunkSize {
                chunks[0].insert(page, at: 0)
            } else {
                chunks.insert([page], at: 0)
            }
        }
    }

    var counts: PageCounts {
        var counts = PageCounts()
        for chunk in chunks {
            for page in chunk {
                switch page.direction {
                case .next: counts.next += 1
                case .prev: counts.prev += 1
                case nil: break
                }
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

    /// Chunks depend on the order in which pages came, so they do not count.
    package static func == (lhs: LoadedPages, rhs: LoadedPages) -> Bool { lhs.all == rhs.all }

    package func hash(into hasher: inout Hasher) { hasher.combine(all) }
}
