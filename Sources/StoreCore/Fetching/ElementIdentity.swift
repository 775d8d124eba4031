/// What makes two elements of a list the same one.
///
/// ```swift
/// let rooms = PaginationStore(
///     cacher: MemoryCacher(), fetcher: MessageFetcher(api: api), identity: .by { $0.text })
/// ```
///
/// Pages shift while they are read: an element that was the last of one page comes again as the first of the next. With an identity,
/// the newer one takes the older one's place; without, it stands there twice.
public struct ElementIdentity<Element>: Sendable {
    @usableFromInline let merge: PageMerge<[Element]>

    private init(merge: @escaping PageMerge<[Element]>) {
        self.merge = merge
    }

    @inlinable
    init(_ merger: some PageMerger<Element>) {
        merge = { list, page, direction, index in merger.merge(page, into: &list, direction, &index) }
    }

    /// Elements have no identity: pages are put together as they come.
    public static var none: ElementIdentity {
        ElementIdentity(merge: { list, page, direction, _ in
            switch direction {
            case .next: list.append(contentsOf: page)
            case .prev: list.insert(contentsOf: page, at: 0)
            }
        })
    }

    /// Elements are the same when what `key` makes of them is equal.
    ///
    /// Cost: one look-up for each element of a page, and one pass over the list after it was replaced.
    ///
    /// - Parameter key: Makes an element's identity. It is called under the store's lock, so it must be quick and must not call the store.
    @inlinable  // As is the index: where the compiler sees the types it hashes at a tenth of the price.
    public static func by<ID: Hashable>(_ key: @escaping @Sendable (_ element: Element) -> ID) -> ElementIdentity {
        ElementIdentity(IdentityMerger(key: key))
    }
}

extension ElementIdentity where Element: Identifiable, Element: SendableMetatype {
    /// Elements are the same when their `id` is.
    @inlinable
    public static var id: ElementIdentity { by { $0.id } }
}

extension ElementIdentity {
    /// The `id` of elements that are `Identifiable`, and no identity for others.
    ///
    /// Found out when the store is made, so that generic code, which does not know what its elements are, gets it too.
    public static var automatic: ElementIdentity {
        guard let type = Element.self as? any (Identifiable & SendableMetatype).Type else { return .none }
        return byID(type) as? ElementIdentity ?? .none
    }

    private static func byID<Other: Identifiable & SendableMetatype>(_ type: Other.Type) -> any Sendable {
        ElementIdentity<Other>.id
    }
}

/// Adds a page at one side of a list; the last argument is the merger's own index, which is thrown away when the list changes otherwise.
@usableFromInline
typealias PageMerge<Content> = @Sendable (inout Content, Content, PageDirection, inout AnyObject?) -> Void

/// Puts a page to a list.
@usableFromInline
protocol PageMerger<Element>: Sendable {
    associatedtype Element

    func merge(_ page: [Element], into list: inout [Element], _ direction: PageDirection, _ index: inout AnyObject?)
}

/// Puts a page to a list of elements that have an identity.
@usableFromInline
struct IdentityMerger<Element, ID: Hashable>: PageMerger {
    @usableFromInline let key: @Sendable (Element) -> ID

    @inlinable
    init(key: @escaping @Sendable (Element) -> ID) {
        self.key = key
    }

    @inlinable
    func merge(_ page: [Element], into list: inout [Element], _ direction: PageDirection, _ index: inout AnyObject?) {
        let places = (index as? IdentityIndex<ID>) ?? IdentityIndex(of: list, by: key)
        switch direction {
        case .next: places.append(page, to: &list, by: key)
        case .prev: places.prepend(page, to: &list, by: key)
        }
        index = places
    }
}

/// Where the identities of a list stand; kept beside the list, so that appending a page costs the page and not the list.
@usableFromInline
final class IdentityIndex<ID: Hashable> {
    /// Places counted from where the list began at first, so that pages put in front move nothing.
    @usableFromInline var places: [ID: Int] = [:]
    @usableFromInline var inFront = 0

    @inlinable
    init<Element>(of list: [Element], by key: (Element) -> ID) {
        places.reserveCapacity(list.count)
        for (place, element) in list.enumerated() {
            let id = key(element)
            if places[id] == nil { places[id] = place }
        }
    }

    @inlinable
    func append<Element>(_ page: [Element], to list: inout [Element], by key: (Element) -> ID) {
        for element in page {
            let id = key(element)
            // Most are new: put in first and taken back for the few that are not, each of them is hashed once.
            if let place = places.updateValue(list.count - inFront, forKey: id) {
                places[id] = place
                list[place + inFront] = element
            } else {
                list.append(element)
            }
        }
    }

    @inlinable
    func prepend<Element>(_ page: [Element], to list: inout [Element], by key: (Element) -> ID) {
        var fresh: [Element] = []
        var freshPlaces: [ID: Int] = [:]
        for element in page {
            let id = key(element)
            if let place = places[id] {
                list[place + inFront] = element
            } else if let place = freshPlaces[id] {
                fresh[place] = element
            } else {
                freshPlaces[id] = fresh.count
                fresh.append(element)
            }
        }
        list.insert(contentsOf: fresh, at: 0)
        inFront += fresh.count
        for (id, place) in freshPlaces { places[id] = place - inFront }
    }
}
