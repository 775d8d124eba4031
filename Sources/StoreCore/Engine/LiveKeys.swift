/// The keys about which something goes on, each at a place that stays its own as long as it is live: who knows the place need not look
/// for the key.
struct LiveKeys<Param: Hashable & Sendable, Content: Sendable> {
    typealias Key = Cell<LiveKey<Param, Content>>

    /// One who lives here; the key stands beside its cell too, which may be in use while another key is looked for.
    private struct Place {
        let param: Param
        let key: Key
    }

    private var places: ContiguousArray<Place?> = []
    /// Places that have been left; the one left last is taken first.
    private var free: [Int] = []
    private var index = HashIndex()

    var count: Int { index.count }
    var isEmpty: Bool { index.count == 0 }

    /// How many keys there is room for.
    var capacity: Int { places.capacity }

    /// All of them, in no order.
    var all: [Key] { places.compactMap { $0?.key } }

    subscript(param: Param) -> Key? {
        let place = place(of: param)
        return place < 0 ? nil : places[place]?.key
    }

    /// The key that lives at a place, which need not be the one that did.
    func key(at place: Int) -> Key? { places.indices.contains(place) ? places[place]?.key : nil }

    /// The key, which becomes live where it was not.
    mutating func key(for param: Param, rules: KeyRules<Content>) -> Key {
        if let key = self[param] { return key }
        let place = free.popLast() ?? places.count
        let key = Cell(LiveKey<Param, Content>(param: param, place: place, rules: rules))
        if place == places.count { places.append(nil) }
        places[place] = Place(param: param, key: key)
        index.insert(HashIndex.hash(param), at: place)
        return key
    }

    mutating func remove(_ param: Param) {
        let place = place(of: param)
        guard place >= 0 else { return }
        index.remove(HashIndex.hash(param), at: place)
        // A list keeps its size when it empties: a thousand keys once live would cost for ever.
        if index.count == 0, places.count > 64 {
            self = LiveKeys()
        } else {
            places[place] = nil
            free.append(place)
        }
    }

    private func place(of param: Param) -> Int {
        index.position(HashIndex.hash(param)) { places[$0]?.param == param }
    }
}
