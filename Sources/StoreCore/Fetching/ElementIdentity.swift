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
    let merge: PageMerge<[Element]>

    private init(merge: @escaping PageMerge<[Element]>) {
        self.merge = merge
    }

    private init(_ merger: some PageMerger<Element>) {
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
    /// - Parameter key: Makes an element's identity.
    public static func by<ID: Hashable>(_ key: @escaping @Sendable (_ element: Element) -> ID) -> ElementIdentity {
        ElementIdentity(IdentityMerger(key: key))
    }
}

extension ElementIdentity where Element: Identifiable, Element: SendableMetatype {
    /// Elements are the same when their `id` is.
    public static var id: ElementIdentity { by { $0.id } }
}

extension ElementIdentity {
    /// The `id` of elements that are `Identifiable`, and no identity for others.
    ///
    /// Found out when the store is made and not by an overload, so that generic code gets it too.
    public static var automatic: ElementIdentity {
        guard let type = Element.self as? any (Identifiable & SendableMetatype).Type else { return .none }
        return byID(type) as? ElementIdentity ?? .none
    }

    private static func byID<Other: Identifiable & SendableMetatype>(_ type: Other.Type) -> any Sendable {
        ElementIdentity<Other>.id
    }
}

/// Puts a page to a list.
private protocol PageMerger<Element>: Sendable {
    associatedtype Element

    func merge(_ page: [Element], into list: inout [Element], _ direction: PageDirection, _ index: inout AnyObject?)
}

/// Puts a page to a list of elements that have an identity.
private struct IdentityMerger<Element, ID: Hashable>: PageMerger {
    let key: @Sendable (Element) -> ID

    func merge(_ page: [Element], into list: inout [Element], _ direction: PageDirection, _ index: inout AnyObject?) {
        let places = (index as? IdentityIndex<ID>) ?? IdentityIndex(of: list, by: key)
        places.merge(page, into: &list, direction, by: key)
        index = places
    }
}

/// Where the identities of a list stand; kept beside the list, so that appending a page costs the page and not the list.
private final class IdentityIndex<ID: Hashable> {
    /// Places counted from where the list began at first, so that pages put in front move nothing.
    private var places: [ID: Int] = [:]
    private var inFront = 0

    init<Element>(of list: [Element], by key: (Element) -> ID) {
        places.reserveCapacity(list.count)
        for (place, element) in list.enumerated() {
            let id = key(element)
            if places[id] == nil { places[id] = place }
        }
    }

    func merge<Element>(_ page: [Element], into list: inout [Element], _ direction: PageDirection, by key: (Element) -> ID) {
        switch direction {
        case .next: append(page, to: &list, by: key)
        case .prev: prepend(page, to: &list, by: key)
        }
    }

    private func append<Element>(_ page: [Element], to list: inout [Element], by key: (Element) -> ID) {
        for element in page {
            let id = key(element)
            if let place = places[id] {
                list[place + inFront] = element
            } else {
                places[id] = list.count - inFront
                list.append(element)
            }
        }
    }

    private func prepend<Element>(_ page: [Element], to list: inout [Element], by key: (Element) -> ID) {
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
