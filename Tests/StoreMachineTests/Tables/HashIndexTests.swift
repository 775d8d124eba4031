import Testing
import Trials

@testable import StoreCore

/// Compares the index with a dictionary.
struct HashIndexTests {
    /// The contents that the index must have: the position of each key and the key at each position.
    private struct Model {
        var index = HashIndex()
        var positions: [Int: Int] = [:]
        var owners: [Int: Int] = [:]
        let hashes: [UInt32]

        func hash(_ key: Int) -> UInt32 { hashes[key % hashes.count] }

        /// Looks the key up in the index, which compares keys at each position with the same hash.
        func found(_ key: Int) -> Int { index.position(hash(key)) { owners[$0] == key } }

        mutating func insert(_ key: Int, at position: Int) {
            index.insert(hash(key), at: position)
            (positions[key], owners[position]) = (position, key)
        }

        mutating func remove(_ key: Int, at position: Int) {
            index.remove(hash(key), at: position)
            (positions[key], owners[position]) = (nil, nil)
        }

        mutating func move(_ key: Int, from position: Int, to newPosition: Int) {
            index.move(hash(key), from: position, to: newPosition)
            owners[position] = nil
            (positions[key], owners[newPosition]) = (newPosition, key)
        }
    }

    enum Hashes: CaseIterable, Sendable {
        case one, atTheEnd, crowded, many

        var values: [UInt32] {
            switch self {
            case .one: [0xFFFF_FFFF]
            // Their buckets are the last of a table of any size, so that runs wrap around to its beginning.
            case .atTheEnd: [0xFFFF_FFFF, 0xFFFF_FFFE, 0xFFFF_0FFF, 0xFFFF_FFFD, 0xFFFF_FFF0, 0, 1]
            case .crowded: (0..<16).map { $0 * 3 }
            case .many: (0..<1_000).map { UInt32(truncatingIfNeeded: $0 &* 2_654_435_761) }
            }
        }
    }

    /// The first positions: small ones, ones outside the range of a signed 32-bit number, and the last ones that a word can hold.
    static let bases = [0, 1 << 30, (1 << 31) - 100, (1 << 32) - 1 - 400]

    @Test(arguments: Hashes.allCases, bases)
    func `an index finds what a dictionary finds`(_ hashes: Hashes, _ base: Int) {
        var dice = SplitMix(seed: UInt64(base) + UInt64(hashes.values.count))
        var model = Model(hashes: hashes.values)
        for step in 0..<rounds(6_000, quick: 1_200) {
            // Grows to a few hundred keys, shrinks to none, and starts again.
            let grows = (step / 600).isMultiple(of: 2)
            let (key, position) = (dice.below(300), base + dice.below(400))
            if let here = model.positions[key] {
                if !grows || dice.below(4) == 0 {
                    model.remove(key, at: here)
                } else if model.owners[position] == nil {
                    model.move(key, from: here, to: position)
                }
            } else if model.owners[position] == nil, grows || dice.below(8) == 0 {
                model.insert(key, at: position)
            }
            #expect(model.found(key) == model.positions[key] ?? -1)
            guard step % 50 == 0 else { continue }
            #expect(model.index.count == model.positions.count)
            #expect(model.index.words.count { $0 != 0 } == model.positions.count)
            #expect((0..<300).allSatisfy { model.found($0) == model.positions[$0] ?? -1 })
        }
    }

    @Test(arguments: Hashes.allCases, bases)
    func `elements that are added together end before the first known one`(_ hashes: Hashes, _ base: Int) {
        var dice = SplitMix(seed: UInt64(base) + UInt64(hashes.values.count))
        var model = Model(hashes: hashes.values)
        var end = base
        while end < base + 300 {
            let page = (0..<min(dice.below(20), base + 300 - end) + 1).map { _ in dice.below(4_000) }
            var known = Set(model.positions.keys)
            let fresh = page.firstIndex { !known.insert($0).inserted } ?? page.count
            let (start, owners, hashes) = (end, model.owners, page.map { model.hash($0) })
            let added = model.index.insert(
                page.count, from: start, hash: { hashes[$0] },
                isSame: { offset, place in (place < start ? owners[place] : page[place - start]) == page[offset] })
            #expect(added == fresh)
            for key in page[..<added] {
                (model.positions[key], model.owners[end]) = (end, key)
                end += 1
            }
            #expect(model.index.count == model.positions.count)
            for key in page { #expect(model.found(key) == model.positions[key] ?? -1) }
        }
        for (key, position) in model.positions { #expect(model.found(key) == position) }
    }

    @Test func `an empty index finds nothing, and reserving capacity allocates once`() {
        var index = HashIndex()
        #expect(index.position(7) { _ in true } == -1)
        index.reserveCapacity(1_000)
        let room = index.words.count
        for position in 0..<1_000 { index.insert(UInt32(position), at: position) }
        #expect(index.words.count == room)
        #expect(index.position(999) { $0 == 999 } == 999)
        #expect(index.position(1_000) { _ in true } == -1)
    }

    @Test func `an index is at most three quarters full, so that every search ends`() {
        var index = HashIndex()
        for position in 0..<10_000 {
            index.insert(0, at: position)
            if position % 97 == 0 { #expect(index.count * 4 <= index.words.count * 3) }
            if position > 200 { index.remove(0, at: position) }
        }
        #expect(index.position(0) { _ in false } == -1)
    }
}
