import Testing
import Trials

@testable import StoreCore

struct FewByNumberTests {
    private func dictionary(_ few: FewByNumber<Int>) -> [UInt64: Int] {
        Dictionary(uniqueKeysWithValues: few.map { ($0.number, $0.value) })
    }

    @Test(arguments: 0..<200 as Range<UInt64>)
    func `a small map holds what a dictionary holds`(seed: UInt64) {
        var random = SplitMix(seed: seed)
        var few = FewByNumber<Int>.none
        var model: [UInt64: Int] = [:]
        // Few numbers, so that the map grows from empty to many entries and shrinks back, again and again.
        for step in 0..<200 {
            let number = UInt64.random(in: 1...4, using: &random)
            switch Int.random(in: 0..<6, using: &random) {
            case 0...2:
                few.put(step, at: number)
                model[number] = step
            case 3, 4:
                #expect(few.remove(number) == model.removeValue(forKey: number))
            default:
                let bound = step - Int.random(in: 0..<8, using: &random)
                few.removeAll { $0 == number || $1 < bound }
                model = model.filter { $0.key != number && $0.value >= bound }
            }
            #expect(dictionary(few) == model)
            #expect(few.count == model.count && few.isEmpty == model.isEmpty)
            #expect((1...4).allSatisfy { few[$0] == model[$0] })
        }
    }

    @Test func `a map that was emptied keeps no storage`() {
        var few = FewByNumber<Int>.none
        for number in 1...1_000 as ClosedRange<UInt64> { few.put(0, at: number) }
        for number in 1...1_000 as ClosedRange<UInt64> { few.remove(number) }
        guard case .none = few else {
            Issue.record("all entries were removed, but the table is still allocated")
            return
        }
    }
}
