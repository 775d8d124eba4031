/// The live keys. Each has a place that is fixed while it is live, so that an observer finds its key without a look-up.
///
/// A dictionary in its place adds a third to the time from an update to its observer.
struct LiveKeys {
    typealias Key = Cell<LiveKey>

    // Two arrays: reading an element of an array of pairs would copy both parts.
    private var params: ContiguousArray<BoxedKey?> = []
    private var cells: ContiguousArray<Key?> = []
    /// The places in use, in no order, and the position of each place in that list, so that `values` does not visit free places.
    private var taken: ContiguousArray<Int> = []
    private var ranks: ContiguousArray<Int> = []
    /// Free places; the last one is taken first.
    private var free: [Int] = []
    private var index = HashIndex()

    var count: Int { index.count }
    var isEmpty: Bool { index.count == 0 }

    var capacity: Int { cells.capacity }

    /// All live keys, in no order; each call makes a new array.
    var values: [Key] { taken.compactMap { cells[$0] } }

    /// Returns keys from a place on in the list of all keys, which has no order.
    func params(from rank: Int, limit: Int) -> [BoxedKey] { taken.dropFirst(rank).prefix(limit).compactMap { params[$0] } }

    subscript(param: BoxedKey) -> Key? { find(HashIndex.hash(param)) { $0 == param } }

    /// Finds a key by its hash, without a boxed key to compare.
    func find(_ hash: UInt32, where fits: (BoxedKey) -> Bool) -> Key? {
        let place = place(hash, where: fits)
        return place < 0 ? nil : cells[place]
    }

    /// The key at a place. Another key may have been there before.
    func key(at place: Int) -> Key? { cells.indices.contains(place) ? cells[place] : nil }

    /// Adds a key that is not live.
    mutating func insert(_ param: BoxedKey, rules: KeyRules<BoxedContent>) -> Key {
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
        index.insert(HashIndex.hash(param), at: place)
        return key
    }

    mutating func remove(_ param: BoxedKey) {
        let hash = HashIndex.hash(param)
        let place = place(hash) { $0 == param }
        guard place >= 0 else { return }
        index.remove(hash, at: place)
        // An array keeps its capacity, so a thousand keys that were once live would cost memory forever.
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

    // The keys are stored beside their cells, because a cell may be in use during the search for another key.
    private func place(_ hash: UInt32, where fits: (BoxedKey) -> Bool) -> Int {
        index.position(hash) { place in params[place].map(fits) ?? false }
    }
}
