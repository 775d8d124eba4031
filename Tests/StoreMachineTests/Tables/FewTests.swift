import Testing

@testable import StoreCore

struct FewTests {
    private func list(_ few: Few<Int>) -> [Int] {
        var list: [Int] = []
        few.forEach { list.append($0) }
        return list
    }

    @Test(arguments: 0..<6)
    func `a small list returns its elements in the order of insertion`(count: Int) {
        var few = Few<Int>.none
        for number in 0..<count { few.append(number) }
        #expect(list(few) == Array(0..<count))
        #expect(few.isEmpty == (count == 0))
        var handedOn: [Int] = []
        few.takeAll().consumeEach { handedOn.append($0) }
        #expect(handedOn == Array(0..<count))
        #expect(few.isEmpty, "the elements taken are still in the list")
    }

    @Test(arguments: 0..<4, 0..<4)
    func `appending a list keeps the order of both`(_ left: Int, _ right: Int) {
        var (few, others) = (Few<Int>.none, Few<Int>.none)
        for number in 0..<left { few.append(number) }
        for number in 0..<right { others.append(left + number) }
        few.append(contentsOf: others)
        #expect(list(few) == Array(0..<(left + right)))
        #expect(list(others) == Array(left..<(left + right)))
    }
}
