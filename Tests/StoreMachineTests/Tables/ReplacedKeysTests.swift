import Testing

@testable import StoreCore

struct ReplacedKeysTests {
    private func key(_ number: Int) -> BoxedKey { BoxedKey(number) }

    @Test func `C15, O8: the newest replaced keys are remembered, and the oldest forgotten`() {
        var keys = TemporaryKeys<BoxedKey, BoxedKey>(limit: 3)
        #expect(keys.isEmpty)
        for number in 1...100 {
            keys.replace(key(number), with: key(-number))
            #expect(keys.count == min(3, number))
            for known in 1...100 { #expect(keys[key(known)] == (known > number - 3 && known <= number ? key(-known) : nil)) }
        }
    }

    @Test func `O8: a key that is replaced again keeps its place`() {
        var keys = TemporaryKeys<BoxedKey, BoxedKey>(limit: 2)
        keys.replace(key(1), with: key(10))
        keys.replace(key(1), with: key(11))
        keys.replace(key(2), with: key(20))
        #expect(keys[key(1)] == key(11) && keys.count == 2)
        keys.replace(key(3), with: key(30))
        #expect(keys[key(1)] == nil && keys[key(2)] == key(20) && keys[key(3)] == key(30))
    }

    @Test func `C15: a store remembers ten thousand replaced keys`() {
        let store = Store(cacher: MemoryCacher<Int, Int>()) { $0 }
        for number in 1...11_000 { store.engine.replaceKey(key(number), with: key(-number), unlessShown: false) }
        #expect(store.engine.state.withLock { $0.replacedKeys.count } == 10_000)
        #expect(store.engine.resolved(key(11_000)) == key(-11_000) && store.engine.resolved(key(1)) == key(1))
    }
}
