/// The part of a book that takes part in links: as content that shows entities, and as an entity that other content shows.
struct LinkedBook<Content: Sendable> {
    // The entity.

    /// The stamp of the accepted content; zero before there is any.
    var stamp: Stamp = 0
    /// The stamps of the fields that fragments have brought and that are newer than the content.
    var parts: [String: Stamp] = [:]
    /// The newest value at a loaded full place, while the key has no content (E6).
    var row: Content?
    /// Whether the accepted content came from a shared cacher, so that the process that has changed it saves its places (E8).
    var isReceived = false

    // The linked content.

    /// The places of the accepted content, for each link; empty before it is known.
    var places: [LinkedPlaces<Content>] = []
    /// The pending changes of all entities, applied to the accepted content before the patches of this key; `nil` if there are none.
    var overlay: (@Sendable (inout Content) -> Void)?
    /// The saves of the changes by entities.
    var pace = SavePace()
}

/// The places of one link in one content.
struct LinkedPlaces<Content: Sendable>: Sendable {
    let entities: any PlaceKeys
    var stamps: [Stamp]
    /// The number of the last change of the entities that the places were reconciled with.
    var number: UInt64 = 0
    /// The values with the pending changes of their entities, by the positions of their places.
    var pending: [Int: Content] = [:]
    /// The positions of the elements that are being removed.
    var hidden: Set<Int> = []
    /// The entities that only the patches of commands show here, and their accepted values, which may have left memory since.
    var added: [BoxedKey: Content?] = [:]

    /// The stamp of an entity's places, which agree after each transition.
    func stamp(of key: BoxedKey) -> Stamp? { entities.positions(of: key).lazy.map { stamps[$0] }.max() }

    /// The value at an entity's first place in the content.
    func value(of key: BoxedKey, in content: BoxedContent, _ link: LinkRules) -> BoxedContent? {
        entities.firstPosition(of: key).flatMap { link.values(content, [$0]).first }
    }

    /// The pending values at the places of their entities in other content.
    func pendingValues(at places: any PlaceKeys) -> [Int: Content] {
        let keys = entities.keys
        return pending.reduce(into: [:]) { for place in places.positions(of: keys[$1.key]) { $0[place] = $1.value } }
    }
}

/// The keys of the entities at the places of one content, in the order of the places, and their positions.
protocol PlaceKeys: Sendable {
    var keys: [BoxedKey] { get }
    var distinct: [BoxedKey] { get }
    /// The position of an entity's first place; `nil` if no place shows it.
    func firstPosition(of key: BoxedKey) -> Int?
    /// The positions of the places of an entity, ascending; empty if no place shows it.
    func positions(of key: BoxedKey) -> [Int]
}

/// The keys with their own type, so that a place needs no object.
struct TypedPlaceKeys<Key: Hashable & Sendable>: PlaceKeys {
    private let all: ContiguousArray<Key>
    /// The first place of each entity.
    private var first = HashIndex()
    /// The other places of an entity, by its first one.
    private var others: [Int: [Int]] = [:]

    init(_ keys: some Sequence<Key>) {
        all = ContiguousArray(keys)
        first.reserveCapacity(all.count)
        for (position, key) in all.enumerated() {
            let hash = HashIndex.hash(key)
            let found = self.position(of: key, hash)
            if found >= 0 { others[found, default: []].append(position) } else { first.insert(hash, at: position) }
        }
    }

    private func position(of key: Key, _ hash: UInt32) -> Int { first.position(hash) { all[$0] == key } }

    var keys: [BoxedKey] { all.map { BoxedKey($0) } }

    var distinct: [BoxedKey] {
        let repeated = Set(others.values.joined())
        return all.indices.compactMap { repeated.contains($0) ? nil : BoxedKey(all[$0]) }
    }

    func firstPosition(of key: BoxedKey) -> Int? {
        // A boxed key has its hash, so that a look at every live key computes none.
        let found = position(of: key.value(as: Key.self), HashIndex.hash(key))
        return found < 0 ? nil : found
    }

    func positions(of key: BoxedKey) -> [Int] {
        guard let first = firstPosition(of: key) else { return [] }
        guard let further = others[first] else { return [first] }
        return [first] + further
    }
}

/// A change of accepted content, as far as the stamps of its places depend on it.
enum LinkChange<Content: Sendable>: Sendable {
    /// A response or a pushed value of this moment in place of older content.
    case fetched(Stamp, over: CacheRecord<Content>?)
    case page(Stamp, Content)
    /// The content was changed; only the places that differ are newer. The others keep the values of `over`, if it is not the same content.
    case changed(from: Content?, at: Stamp, over: Content? = nil)
    /// The value of a place was merged; a fragment does not raise the stamp of the content (E3).
    case merged(from: Content, at: Stamp, isWhole: Bool)
}

/// The visible effect of reconciling content with its entities.
struct LinkOutcome: OptionSet {
    let rawValue: Int
    static let accepted = LinkOutcome(rawValue: 1)
    /// The content that readers see has changed.
    static let shown = LinkOutcome(rawValue: 2)
    /// The record must be mirrored again, because it was reconciled with newer changes.
    static let reconciled = LinkOutcome(rawValue: 4)
    /// The cacher lacks the change, because this process has made it.
    static let local = LinkOutcome(rawValue: 8)
}

/// The layer between accepted content and patches, as a transition uses it.
protocol LinkLayer<Content>: AnyObject, Sendable {
    associatedtype Content: Sendable
    var clocks: LinkClocks { get }
    /// Reconciles the accepted content with its entities. `isNew` is whether the content may have other places than before.
    func settle(_ book: inout Book<Content>, _ change: LinkChange<Content>?, isNew: Bool) -> LinkOutcome
    func keepNewer(_ page: inout Content, _ book: Book<Content>, than stamp: Stamp)
    /// Gives the places that the patches of commands have added to the content the entities that these commands change as well.
    func followAdded(_ content: inout Content, _ book: inout Book<Content>)
}

extension KeyMachine {
    /// The content of a full place in place of content that is loading, with the patches of this key applied (E6).
    var placeholder: Content? {
        guard var row = book.linked?.value.row else { return nil }
        for patch in book.patches { patch.apply(&row) }
        return row
    }

    /// A loaded full place shows this key while it has no content; returns whether it has none.
    @discardableResult
    mutating func rowFound(_ row: Content) -> Bool {
        guard book.held == nil else { return false }
        if book.linked == nil { book.linked = OutOfLine(LinkedBook()) }
        book.linked?.value.row = row
        return true
    }

    /// Forgets the row in place of content, and that the entity was removed.
    mutating func forgetEntity(_ transition: inout Transition) {
        origin.removal = nil
        guard let row = book.linked?.value.row else { return }
        transition.discarded.append(row)
        book.linked?.value.row = nil
        transition.isPublished = true
        desk.shown = sight
    }

    /// The store begins to stamp its contents. A running fetch counts as begun now, so that it is not older than the content before it.
    mutating func dateFetches(_ stamp: Stamp) {
        origin.changeFlight { $0.stamp = stamp }
        for direction in PageDirection.allCases { sides[direction].stamp = stamp }
    }

    /// A mutation of a key without content succeeds: the row of a full place becomes the content, and is out of date (E5).
    mutating func rowBecomesContent(_ row: Content, _ transition: inout Transition) {
        guard book.held == nil, origin.isKnown, !book.patches.isEmpty, !isTemporary else { return }
        book.held = HeldRecord(CacheRecord(content: row, fetchedAt: transition.date, details: nil), deadline: .distantPast)
        book.held?.invalidate()
        book.contentNumber += 1
        // The patch may have to wait for an earlier one, and both still show.
        rebuildOverlay(&transition)
        transition.publishes = true
    }

    /// Entities that the content shows may have changed: shows their newest values (E1).
    ///
    /// The content keeps its epoch, its date, its validator and its deadline, and no fetch is canceled (E4).
    mutating func entitiesChanged(_ transition: inout Transition) {
        guard let layer = transition.links, book.held != nil else { return }
        let isNew = book.linked?.value.stamp ?? 0 == 0
        let number = book.contentNumber
        let outcome = layer.settle(&book, nil, isNew: isNew)
        show(outcome, &transition)
        // Idle content from memory is built anew for each reader. Its pending changes do not count as a change, or every look would cause one.
        if isNew, !outcome.contains(.accepted) { book.contentNumber = number }
        if !outcome.isEmpty { endTransition(&transition) }
    }

    /// The value of a place is newer than this entity: changes content and stamp, but not the freshness (E3).
    mutating func merged(_ content: Content, at stamp: Stamp, isWhole: Bool, _ transition: inout Transition) {
        guard let old = book.held?.record.content else { return }
        // The request for the value began after these changes were confirmed, so the value contains them (E5).
        if isWhole { discardPatches(&transition) { $0.isConfirmed && min($0.confirmed, $0.shown) < stamp } }
        noteArrival()
        if origin.isStreaming { keepValue() }
        transition.linkChange = .merged(from: old, at: stamp, isWhole: isWhole)
        transition.discarded.append(old)
        book.held?.record.content = content
        sides.mergeIndex = nil
        book.contentNumber += 1
        acceptedContentChanged(.derived, &transition)
        endTransition(&transition)
    }

    /// The accepted content has changed: dates it and its places, and reconciles them with their entities.
    mutating func settleLinks(_ transition: inout Transition) {
        guard let layer = transition.links else { return }
        let change = transition.linkChange
        transition.linkChange = nil
        let outcome = layer.settle(&book, change, isNew: true)
        book.linked?.value.isReceived = false
        // A copied value may have another identity in its list.
        if outcome.contains(.accepted) { sides.mergeIndex = nil }
        if !outcome.isDisjoint(with: [.accepted, .shown]) { book.contentNumber += 1 }
    }

    /// The record was read or adopted, so its places are new.
    mutating func linkRead(_ transition: inout Transition) {
        guard let layer = transition.links, book.held != nil else { return }
        let outcome = layer.settle(&book, nil, isNew: true)
        // Another user of the cacher has saved the record since.
        if let removal = origin.removal, book.linked?.value.stamp ?? 0 > removal { origin.removal = nil }
        let isShared = rules.isShared
        book.linked?.value.isReceived = isShared
        show(outcome, &transition)
    }

    private mutating func show(_ outcome: LinkOutcome, _ transition: inout Transition) {
        if outcome.contains(.accepted) {
            sides.mergeIndex = nil
            if outcome.contains(.local) || saving.tried != book.revision {
                note(.derived)
                let revision = transition.tickets.next()
                book.revision = revision
                book.linked?.value.pace.revision = revision
                book.linked?.value.isReceived = false
            } else {
                // The process that has made the change saves it.
                book.revision = transition.tickets.next()
                saving.tried = book.revision
            }
        }
        if !outcome.isDisjoint(with: [.accepted, .shown]) {
            rebuildOverlay(&transition)
            book.contentNumber += 1
            transition.publishes = true
        }
        if !outcome.isEmpty { mirror(&transition) }
    }
}
