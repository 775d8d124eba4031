import StoreTrials
import Testing
import Trials

@testable import StoreCore

/// Compares the live keys with a dictionary. Each key is found by its value and at its place, which is fixed while the key is live.
struct LiveKeysTests {
    private let rules = KeyRules<BoxedContent>()

    private func compare(_ keys: LiveKeys, _ model: [BoxedKey: (cell: LiveKeys.Key, place: Int)], _ known: [BoxedKey]) {
        #expect(keys.count == model.count && keys.isEmpty == model.isEmpty)
        #expect(Set(keys.values.map(\.value.param)) == Set(model.keys) && keys.values.count == model.count)
        for key in known {
            #expect(keys[key] === model[key]?.cell)
            guard let (cell, place) = model[key] else { continue }
            #expect(cell.value.param == key && cell.value.place == place)
            #expect(keys.key(at: place) === cell)
        }
    }

    @Test(arguments: Clumsy.spreads)
    func `C15: a live key is found by its value and at its place until it is removed`(_ spread: Int) throws {
        var dice = SplitMix(seed: UInt64(spread))
        var (keys, model) = (LiveKeys(), [BoxedKey: (cell: LiveKeys.Key, place: Int)]())
        let known = (0..<60).map { BoxedKey(Clumsy($0, spread: spread)) }
        for step in 0..<rounds(6_000, quick: 2_000) {
            let key = known[dice.below(known.count)]
            if dice.below(20) < (step / 1_000 % 2 == 0 ? 13 : 7) {
                let found = dice.below(2) == 0 ? keys[key] : keys.find(HashIndex.hash(key)) { $0 == key }
                #expect(found === model[key]?.cell)
                let cell = found ?? keys.insert(key, rules: rules)
                if let (known, place) = model[key] {
                    #expect(cell === known && cell.value.place == place)
                } else {
                    #expect(!model.values.contains { $0.place == cell.value.place }, "two keys share a place")
                    model[key] = (cell, cell.value.place)
                }
            } else {
                let place = model.removeValue(forKey: key)?.place
                keys.remove(key)
                if let place { #expect(keys.key(at: place) == nil) }
            }
            // After a first difference, the next steps would remove keys that are not there.
            try #require(keys.count == model.count)
            if step % 20 == 0 { compare(keys, model, known) }
        }
        compare(keys, model, known)
        // Places are reused: there are never more places than keys were live at once.
        #expect(keys.capacity <= 128)
        #expect(keys.key(at: 1_000) == nil && keys.key(at: -1) == nil)
    }

    @Test func `C15: keys that were live once cost nothing after the last of them is removed`() {
        var keys = LiveKeys()
        let known = (0..<1_000).map { BoxedKey(Clumsy($0, spread: 1_000_000)) }
        for key in known { _ = keys.insert(key, rules: rules) }
        #expect(keys.count == 1_000)
        for key in known.dropLast() { keys.remove(key) }
        #expect(keys.count == 1 && keys.capacity >= 1_000)
        keys.remove(known[999])
        #expect(keys.isEmpty && keys.capacity == 0)
        #expect(keys.insert(known[3], rules: rules).value.place == 0)
    }
}
