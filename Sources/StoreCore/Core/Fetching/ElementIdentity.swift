/// The rule that decides whether two elements of a list are the same.
///
/// ```swift
/// let rooms = PaginationStore(
///     cacher: MemoryCacher(), fetcher: MessageFetcher(api: api),
///     identity: .by { $0.text })
/// ```
///
/// Lists shift while pages are loaded, so the last element of one page may return as the first of the next. With an identity, the newer
/// element replaces the older one. Without an identity, the list contains that element twice.
///
/// <doc:Paginating> explains what happens to repeated elements.
public struct ElementIdentity<Element>: Sendable {
    @usableFromInline let merge: PageMerge<[Element]>
    @usableFromInline let resize: PageResize<[Element]>

    private init(merge: @escaping PageMerge<[Element]>, resize: @escaping PageResize<[Element]>) {
        self.merge = merge
        self.resize = resize
    }

    @inlinable
    init(_ merger: some PageMerger<Element>) {
        merge = { list, page, direction, index in merger.merge(page, into: &list, direction, &index) }
        resize = { sizes, old, new in merger.resize(sizes, old, new) }
    }

    @inlinable
    func rules(isTwoWay: Bool, paging: PagingPolicy? = nil) -> ListRules<[Element]> {
        ListRules(
            merge: merge, count: { $0.count }, resize: resize,
            drop: { list, count, direction in ListRules.drop(from: &list, count, direction) }, isTwoWay: isTwoWay,
            window: paging?.maximumPages)
    }

    /// No identity: pages are added unchanged.
    public static var none: ElementIdentity {
        ElementIdentity(
            merge: { list, page, direction, _ in
                switch direction {
                case .next: list.append(contentsOf: page)
                case .prev: list.insert(contentsOf: page, at: 0)
                }
                return nil
            },
            // Without an identity, elements cannot be found again, so the page boundaries stay and the last page absorbs the difference.
            resize: { sizes, _, new in movedPages(sizes, to: new.count) { start, _, _ in start } })
    }

    /// Returns an identity by a key of each element: elements are the same if their keys are equal.
    ///
    /// Cost: one look-up for each element of a page, and one pass over the list after it was replaced.
    ///
    /// - Parameter key: Returns an element's identity. It runs under the store's lock, which is also held while identities are hashed,
    ///   compared and released. All of that must be quick and must not call the store.
    @inlinable  // Like the index: hashing costs a tenth if the compiler sees the types.
    public static func by<ID: Hashable>(_ key: @escaping @Sendable (_ element: Element) -> ID) -> ElementIdentity {
        ElementIdentity(IdentityMerger(key: key))
    }
}

extension ElementIdentity where Element: Identifiable, Element: SendableMetatype {
    /// The identity by `id`: elements are the same if their `id` is equal.
    @inlinable
    public static var id: ElementIdentity { by { $0.id } }
}

extension ElementIdentity {
    /// The `id` of elements that are `Identifiable`; otherwise the element itself if it is `Hashable`, such as a plain key; otherwise none.
    ///
    /// The choice is made when the store is created, so it also works in generic code that does not know its element type. Pass ``none`` for
    /// a list in which equal elements are different rows, such as the lines of a log.
    public static var automatic: ElementIdentity {
        if let type = Element.self as? any (Identifiable & SendableMetatype).Type { return byID(type) as? ElementIdentity ?? .none }
        if let type = Element.self as? any (Hashable & SendableMetatype).Type { return byValue(type) as? ElementIdentity ?? .none }
        return .none
    }

    private static func byValue<Other: Hashable & SendableMetatype>(_ type: Other.Type) -> any Sendable {
        ElementIdentity<Other>.by { $0 }
    }

    private static func byID<Other: Identifiable & SendableMetatype>(_ type: Other.Type) -> any Sendable {
        ElementIdentity<Other>.id
    }
}

/// Adds a page in one direction of a list. The last argument is the merger's own index, which is discarded after any other change.
///
/// Returns the elements that the page has replaced, so that a caller that holds a lock can release them later.
@usableFromInline
typealias PageMerge<Content> = @Sendable (inout Content, Content, PageDirection, inout AnyObject?) -> Content?

/// A `PageMerge` and a `PageResize` for one type of element.
@usableFromInline
protocol PageMerger<Element>: Sendable {
    associatedtype Element

    func merge(_ page: [Element], into list: inout [Element], _ direction: PageDirection, _ index: inout AnyObject?) -> [Element]?

    func resize(_ sizes: [Int], _ old: [Element], _ new: [Element]) -> [Int]
}

@usableFromInline
struct IdentityMerger<Element, ID: Hashable>: PageMerger {
    @usableFromInline let key: @Sendable (Element) -> ID

    @inlinable
    init(key: @escaping @Sendable (Element) -> ID) {
        self.key = key
    }

    @inlinable
    func merge(_ page: [Element], into list: inout [Element], _ direction: PageDirection, _ index: inout AnyObject?) -> [Element]? {
        let known = (index as? IdentityIndex<ID>) ?? IdentityIndex(IdentityPlaces(of: list, by: key))
        index = known
        let replaced =
            switch direction {
            case .next: known.places.append(page, to: &list, by: key)
            case .prev: known.places.prepend(page, to: &list, by: key)
            }
        return replaced.isEmpty ? nil : replaced
    }

    @inlinable
    func resize(_ sizes: [Int], _ old: [Element], _ new: [Element]) -> [Int] {
        // Most changes leave the beginning and the end of a list unchanged.
        let shared = min(old.count, new.count)
        var head = 0
        while head < shared, key(old[head]) == key(new[head]) { head += 1 }
        if head == old.count, head == new.count { return sizes }
        var tail = 0
        while tail < shared - head, key(old[old.count - 1 - tail]) == key(new[new.count - 1 - tail]) { tail += 1 }
        var places: IdentityPlaces<ID>?
        return movedPages(sizes, to: new.count) { start, oldEnd, newEnd in
            if start <= head { return start }
            if start >= old.count - tail { return start + new.count - old.count }
            let known = places ?? IdentityPlaces(of: new, by: key)
            places = known
            // Finds the first remaining element of the page; the search ends where the search for the next page began.
            for element in old[start..<min(oldEnd, old.count)] {
                let id = key(element)
                if let place = known.find(id, HashIndex.hash(id), in: new, by: key) { return place }
            }
            return newEnd
        }
    }
}

/// The positions of a list's identities. Kept beside the list, so that the cost of adding a page depends on the page and not on the list.
@usableFromInline
final class IdentityIndex<ID: Hashable> {
    @usableFromInline var places: IdentityPlaces<ID>

    @inlinable
    init(_ places: IdentityPlaces<ID>) {
        self.places = places
    }
}

/// The positions as a value, so that the index object is accessed once for each page and not for each element.
@usableFromInline
struct IdentityPlaces<ID: Hashable> {
    @usableFromInline var places = HashIndex()
    /// The position of the list's first element, in the middle of the index's range, so that prepended pages move nothing.
    @usableFromInline var start = 1 << 30

    @inlinable
    init<Element>(of list: [Element], by key: (Element) -> ID) {
        places.reserveCapacity(list.count)
        for (position, element) in list.enumerated() {
            let id = key(element)
            let hash = HashIndex.hash(id)
            if find(id, hash, in: list, by: key) == nil { places.insert(hash, at: start + position) }
        }
    }

    @inlinable
    func find<Element>(_ id: ID, _ hash: UInt32, in list: [Element], by key: (Element) -> ID) -> Int? {
        let place = places.position(hash) { key(list[$0 - start]) == id }
        return place < 0 ? nil : place - start
    }

    /// Adds a page at the end, and returns the elements that the page has replaced.
    @inlinable
    mutating func append<Element>(_ page: [Element], to list: inout [Element], by key: (Element) -> ID) -> [Element] {
        // Most pages repeat no element and are appended in one piece.
        let fresh = claim(page, behind: list, by: key)
        guard fresh < page.count else {
            list.append(contentsOf: page)
            return []
        }
        var replaced: [Element] = []
        list.append(contentsOf: page[..<fresh])
        for element in page[fresh...] { put(element, into: &list, &replaced, by: key) }
        return replaced
    }

    /// Indexes the elements of a page behind a list, up to the first element with a known identity. Returns their number.
    @inlinable
    mutating func claim<Element>(_ page: [Element], behind list: [Element], by key: (Element) -> ID) -> Int {
        let start = start, end = list.count
        return places.insert(
            page.count, from: start + end, hash: { HashIndex.hash(key(page[$0])) },
            isSame: { offset, place in
                let position = place - start
                return key(position < end ? list[position] : page[position - end]) == key(page[offset])
            })
    }

    /// Adds a page at the beginning, and returns the elements that the page has replaced.
    @inlinable
    mutating func prepend<Element>(_ page: [Element], to list: inout [Element], by key: (Element) -> ID) -> [Element] {
        var replaced: [Element] = []
        var fresh: [Element] = []
        var freshPlaces = IdentityPlaces(of: fresh, by: key)
        for element in page {
            let id = key(element)
            if let position = find(id, HashIndex.hash(id), in: list, by: key) {
                replaced.append(list[position])
                list[position] = element
            } else {
                freshPlaces.put(element, into: &fresh, &replaced, by: key)
            }
        }
        list.insert(contentsOf: fresh, at: 0)
        start -= fresh.count
        for (position, element) in fresh.enumerated() { places.insert(HashIndex.hash(key(element)), at: start + position) }
        return replaced
    }

    /// Replaces the element with the same identity, or appends the element.
    @inlinable
    @inline(__always)
    mutating func put<Element>(_ element: Element, into list: inout [Element], _ replaced: inout [Element], by key: (Element) -> ID) {
        let id = key(element)
        let hash = HashIndex.hash(id)
        if let position = find(id, hash, in: list, by: key) {
            replaced.append(list[position])
            list[position] = element
        } else {
            places.insert(hash, at: start + list.count)
            list.append(element)
        }
    }
}
