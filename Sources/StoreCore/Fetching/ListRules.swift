/// The operations that an engine needs for content that is a list.
///
/// They are closures, not requirements of a protocol, so that they are compiled in the module that creates the store and knows all types.
@usableFromInline
struct ListRules<Content>: Sendable {
    /// Adds a page in one direction.
    @usableFromInline let merge: PageMerge<Content>
    /// The number of elements.
    @usableFromInline let count: @Sendable (_ list: Content) -> Int
    /// Returns the sizes of a list's pages after a change other than an added page.
    @usableFromInline let resize: PageResize<Content>
    /// Whether there may be pages before the first one.
    @usableFromInline let isTwoWay: Bool
    /// The window of the list; `nil` if all loaded pages stay.
    @usableFromInline let window: PageWindow<Content>?

    @usableFromInline
    init(
        merge: @escaping PageMerge<Content>, count: @escaping @Sendable (_ list: Content) -> Int, resize: @escaping PageResize<Content>,
        isTwoWay: Bool = true, window: PageWindow<Content>? = nil
    ) {
        self.merge = merge
        self.count = count
        self.resize = resize
        self.isTwoWay = isTwoWay
        self.window = window
    }
}

/// The window of a list: the number of pages that it keeps (C18).
@usableFromInline
struct PageWindow<Content>: Sendable {
    /// The largest number of pages.
    @usableFromInline let maximumPages: Int
    /// Removes elements at one end of a list and returns them, so that a caller that holds a lock can release them later.
    @usableFromInline let drop: @Sendable (_ list: inout Content, _ count: Int, _ direction: PageDirection) -> Content?

    @usableFromInline
    init(
        maximumPages: Int, drop: @escaping @Sendable (_ list: inout Content, _ count: Int, _ direction: PageDirection) -> Content?
    ) {
        self.maximumPages = maximumPages
        self.drop = drop
    }
}

extension PageWindow {
    /// The window of a list of elements.
    @inlinable
    static func elements<Element>(_ policy: PagingPolicy) -> PageWindow where Content == [Element] {
        PageWindow(maximumPages: policy.maximumPages) { list, count, direction in
            switch direction {
            case .next:
                defer { list.removeLast(count) }
                return Array(list.suffix(count))
            case .prev:
                defer { list.removeFirst(count) }
                return Array(list.prefix(count))
            }
        }
    }
}

/// Finds the pages of an old list in a new one. It takes the old sizes of the pages and returns their new sizes, which sum to the new
/// count.
@usableFromInline
typealias PageResize<Content> = @Sendable (_ sizes: [Int], _ old: Content, _ new: Content) -> [Int]

/// Moves the page boundaries from an old list to a new one.
///
/// - Parameters:
///   - sizes: The sizes of the old list's pages.
///   - count: The number of elements in the new list.
///   - move: Moves the start of a page; receives it together with the start of the next page, in the old list and in the new one.
/// - Returns: The sizes of the same pages in the new list. An element that no page has loaded belongs to the page around it.
@usableFromInline
func movedPages(_ sizes: [Int], to count: Int, _ move: (_ start: Int, _ oldEnd: Int, _ newEnd: Int) -> Int) -> [Int] {
    var moved = sizes
    var oldEnd = sizes.reduce(0, +)
    var newEnd = count
    for position in sizes.indices.reversed() {
        let start = oldEnd - sizes[position]
        let newStart = position == 0 ? 0 : max(0, min(newEnd, move(start, oldEnd, newEnd)))
        moved[position] = newEnd - newStart
        (oldEnd, newEnd) = (start, newStart)
    }
    return moved
}
