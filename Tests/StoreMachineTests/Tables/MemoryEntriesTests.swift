import Foundation
import StoreTrials
import Testing
import Trials

@testable import StoreCore

/// Compares the entries of the memory table with a plain list, the most recently used entry first.
struct MemoryEntriesTests {
    private struct Model {
        struct Entry: Equatable {
            var key: Clumsy
            var content: Int
            var cost: Int
        }

        var entries: [Entry] = []

        func place(_ key: Clumsy) -> Int? { entries.firstIndex { $0.key == key } }

        /// - Returns: The content that was replaced.
        mutating func put(_ entry: Entry) -> Int? {
            let replaced = place(entry.key).map { entries.remove(at: $0).content }
            entries.insert(entry, at: 0)
            return replaced
        }

        mutating func trim(_ count: Int, _ cost: Int) -> [Entry] {
            var removed: [Entry] = []
            while entries.count > count || entries.reduce(0, { $0 + $1.cost }) > cost, let last = entries.popLast() { removed.append(last) }
            return removed
        }
    }

    private typealias Entries = MemoryEntries<Clumsy, Int>

    /// The entries in the order of their links, from either end.
    private func linked(_ entries: Entries, from start: Int32, _ next: (MemoryEntry<Clumsy, Int>) -> Int32) -> [Model.Entry] {
        var all: [Model.Entry] = []
        var position = start
        while position >= 0, all.count <= entries.count {
            let entry = entries.entries[Int(position)]
            all.append(plain(entry))
            position = next(entry)
        }
        return all
    }

    private func plain(_ entry: MemoryEntry<Clumsy, Int>) -> Model.Entry {
        Model.Entry(key: entry.key, content: entry.record.content, cost: entry.cost)
    }

    private func compare(_ entries: Entries, _ model: Model, _ keys: Int, _ spread: Int) {
        #expect(entries.count == model.entries.count)
        #expect(entries.totalCost == model.entries.reduce(0) { $0 + $1.cost })
        #expect(linked(entries, from: entries.newest) { $0.older } == model.entries)
        #expect(linked(entries, from: entries.oldest) { $0.newer } == model.entries.reversed())
        for key in (0..<keys).map({ Clumsy($0, spread: spread) }) {
            let position = entries.position(of: key)
            #expect((position < 0 ? nil : plain(entries.entries[position])) == model.place(key).map { model.entries[$0] })
        }
    }

    @Test(arguments: Clumsy.spreads)
    func `C15: the table holds what was put, minus what was removed or evicted as least recently used`(_ spread: Int) throws {
        var dice = SplitMix(seed: UInt64(spread))
        var (entries, model) = (Entries(), Model())
        let keys = 80
        for step in 0..<rounds(8_000, quick: 2_000) {
            let key = Clumsy(dice.below(keys), spread: spread)
            switch dice.below(10) {
            case 0...4:
                let cost = dice.below(5)
                let record = CacheRecord(content: step, fetchedAt: Date(timeIntervalSince1970: 0))
                let replaced = entries.put(key, hash: HashIndex.hash(key), record, deadline: .max, cost: cost)
                #expect(replaced == model.put(.init(key: key, content: step, cost: cost)))
            case 5, 6:
                let position = entries.position(of: key)
                guard let place = model.place(key) else {
                    #expect(position == -1)
                    continue
                }
                try #require(position >= 0)
                #expect(plain(entries.remove(at: position)) == model.entries.remove(at: place))
            case 7, 8:
                let position = entries.position(of: key)
                guard position >= 0, let place = model.place(key) else { continue }
                entries.touch(position)
                model.entries.insert(model.entries.remove(at: place), at: 0)
            default:
                guard dice.below(8) == 0 else { continue }
                let (count, cost) = (dice.below(keys), dice.below(3) == 0 ? dice.below(100) : .max)
                #expect(entries.trim(count: count, cost: cost).map(plain) == model.trim(count, cost))
            }
            // After a first difference, the next steps would remove entries that are not there.
            try #require(entries.count == model.entries.count)
            if step % 20 == 0 { compare(entries, model, keys, spread) }
        }
        compare(entries, model, keys, spread)
        #expect(entries.trim(count: 0, cost: .max).map(plain) == model.trim(0, .max))
        compare(entries, model, keys, spread)
    }
}
