/// The operations that an engine needs for content that is a list.
///
/// They are closures, not requirements of a protocol, so that they are compiled in the module that creates the store and knows all types.
@usableFromInline
struct ListRules<Content>: Sendable {
    @usableFromInline let merge: PageMerge<Content>
    /// Counts the elements of a list, for the sizes of its pages.
    @usableFromInline let count: @Sendable (_ list: Content) -> Int
    /// Returns the sizes of a list's pages after a change other than an added page.
    @usableFromInline let resize: PageResize<Content>
    @usableFromInline let isTwoWay: Bool
    @usableFromInline let drop: PageDrop<Content>
    /// The largest number of pages of the list, its window (C18); `nil` if all loaded pages stay.
    @usableFromInline let window: Int?

    @usableFromInline
    init(
        merge: @escaping PageMerge<Content>, count: @escaping @Sendable (_ list: Content) -> Int, resize: @escaping PageResize<Content>,
        drop: @escaping PageDrop<Content>, isTwoWay: Bool = true, window: Int? = nil
    ) {
        self.merge = merge
        self.count = count
        self.resize = resize
        self.drop = drop
        self.isTwoWay = isTwoWay
        self.window = window
    }
}

extension ListRules {
    @inlinable
    static func drop<Element>(
        from list: inout [Element], _ count: Int, _ direction: PageDirection
    ) -> [Element]? where Content == [Element] {
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

/// Removes elements at one end of a list and returns them, so that a caller that holds a lock can release them later.
@usableFromInline
typealias PageDrop<Content> = @Sendable (_ list: inout Content, _ count: Int, _ direction: PageDirection) -> Content?

/// Finds the pages of an old list in a new one. It takes the old sizes of the pages and returns their new sizes, which sum to the new
/// count.
@usableFromInline
typealias PageResize<Content> = @Sendable (_ sizes: [Int], _ old: Content, _ new: Content) -> [Int]

/// Moves the page boundaries from an old list to a new one. An element that no page has loaded belongs to the page around it.
///
/// `move` moves the start of a page; it receives it together with the start of the next page, in the old list and in the new one.
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
