/// The keys about which something goes on, each at a place that stays its own as long as it is live: who knows the place need not look
/// for the key.
struct LiveKeys {
    typealias Key = Cell<LiveKey>

    // Two lists: what is read of a list of pairs is copied with both.
    private var params: ContiguousArray<BoxedKey?> = []
    private var cells: ContiguousArray<Key?> = []
    /// The places at which a key lives, in no order, and where each stands among them: who wants all keys must not look at those that
    /// were live once.
    private var taken: ContiguousArray<Int> = []
    private var ranks: ContiguousArray<Int> = []
    /// Places that have been left; the one left last is taken first.
    private var free: [Int] = []
    private var index = HashIndex()

    var count: Int { index.count }
    var isEmpty: Bool { index.count == 0 }

    /// How many keys there is room for.
    var capacity: Int { cells.capacity }

    /// All of them, in no order.
    var all: [Key] { taken.compactMap { cells[$0] } }

    subscript(param: BoxedKey) -> Key? {
        let place = place(HashIndex.hash(param)) { $0 == param }
        return place < 0 ? nil : cells[place]
    }

    /// The key that lives at a place, which need not be the one that did.
    func key(at place: Int) -> Key? { cells.indices.contains(place) ? cells[place] : nil }

    /// The key, which becomes live where it was not.
    mutating func key(for param: BoxedKey, rules: KeyRules<BoxedContent>) -> Key {
        key(hash: HashIndex.hash(param), where: { $0 == param }, make: { param }, rules: rules)
    }

    /// The same for who has not made the key yet, and need not where it is live.
    mutating func key(hash: UInt32, where fits: (BoxedKey) -> Bool, make: () -> BoxedKey, rules: KeyRules<BoxedContent>) -> Key {
        let place = place(hash, where: fits)
        if place >= 0, let key = cells[place] { return key }
        return insert(make(), hash, rules)
    }

    private mutating func insert(_ param: BoxedKey, _ hash: UInt32, _ rules: KeyRules<BoxedContent>) -> Key {
        let place = free.popLast() ?? cells.count
        let key = Cell(LiveKey(param: param, place: place, rules: rules))
        if place == cells.count {
            params.append(param)
            cells.append(key)
            ranks.append(taken.count)
        } else {
            (params[place], cells[place], ranks[place]) = (param, key, taken.count)
        }
        taken.append(place)
        index.insert(hash, at: place)
        return key
    }

    mutating func remove(_ param: BoxedKey) {
        let hash = HashIndex.hash(param)
        let place = place(hash) { $0 == param }
        guard place >= 0 else { return }
        index.remove(hash, at: place)
        // A list keeps its size when it empties: a thousand keys once live would cost for ever.
        if index.count == 0, cells.count > 64 {
            self = LiveKeys()
        } else {
            (params[place], cells[place]) = (nil, nil)
            free.append(place)
            let (rank, last) = (ranks[place], taken.count - 1)
            taken[rank] = taken[last]
            ranks[taken[rank]] = rank
            taken.removeLast()
        }
    }

    // The keys stand beside their cells, because a cell may be in use while another key is looked for.
    private func place(_ hash: UInt32, where fits: (BoxedKey) -> Bool) -> Int {
        index.position(hash) { place in params[place].map(fits) ?? false }
    }
}
