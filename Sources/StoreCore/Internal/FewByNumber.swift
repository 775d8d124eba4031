/// Values that are found by a number: most often none or one, which then costs neither an allocation nor a hash.
enum FewByNumber<Value> {
    case none
    case one(UInt64, Value)
    /// Never empty, so that thousands who have come and gone leave no storage behind.
    case many([UInt64: Value])

    var isEmpty: Bool { if case .none = self { true } else { false } }

    var count: Int {
        switch self {
        case .none: 0
        case .one: 1
        case .many(let values): values.count
        }
    }

    subscript(number: UInt64) -> Value? {
        switch self {
        case .none: nil
        case .one(let other, let value): other == number ? value : nil
        case .many(let values): values[number]
        }
    }

    /// Puts a value in, in the place of the one that has its number.
    mutating func put(_ value: Value, at number: UInt64) {
        switch takeAll() {
        case .none:
            self = .one(number, value)
        case .one(let other, let first):
            self = other == number ? .one(number, value) : .many([other: first, number: value])
        case .many(var values):
            values[number] = value
            self = .many(values)
        }
    }

    /// Takes a value out.
    @discardableResult
    mutating func remove(_ number: UInt64) -> Value? {
        switch takeAll() {
        case .none:
            return nil
        case .one(let other, let value):
            if other == number { return value }
            self = .one(other, value)
            return nil
        case .many(var values):
            let removed = values.removeValue(forKey: number)
            if !values.isEmpty { self = .many(values) }
            return removed
        }
    }

    /// Takes out what fits, in one pass: most often that is everything, thousands at once.
    mutating func removeAll(where fits: (_ number: UInt64, _ value: Value) -> Bool) {
        switch takeAll() {
        case .none:
            break
        case .one(let number, let value):
            if !fits(number, value) { self = .one(number, value) }
        case .many(let values):
            let left = values.filter { !fits($0.key, $0.value) }
            if !left.isEmpty { self = .many(left) }
        }
    }

    /// Takes everything out; what was here is then held once, and changed without a copy.
    private mutating func takeAll() -> FewByNumber {
        var taken = FewByNumber.none
        swap(&taken, &self)
        return taken
    }
}

extension FewByNumber: Sequence {
    /// All values with their numbers, in no order.
    func makeIterator() -> AnyIterator<(number: UInt64, value: Value)> {
        switch self {
        case .none:
            return AnyIterator { nil }
        case .one(let number, let value):
            var element: (number: UInt64, value: Value)? = (number, value)
            return AnyIterator {
                defer { element = nil }
                return element
            }
        case .many(let values):
            var values = values.makeIterator()
            return AnyIterator { values.next().map { ($0.key, $0.value) } }
        }
    }
}

extension FewByNumber: Sendable where Value: Sendable {}
