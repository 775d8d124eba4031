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

    /// Takes out what fits: most often nothing or everything, of thousands.
    mutating func removeAll(where fits: (_ number: UInt64, _ value: Value) -> Bool) {
        if case .one(let number, let value) = self {
            if fits(number, value) { self = .none }
            return
        }
        let gone = numbers(where: fits)
        if gone.count == count { self = .none } else { for number in gone { remove(number) } }
    }

    private func numbers(where fits: (_ number: UInt64, _ value: Value) -> Bool) -> [UInt64] {
        var numbers: [UInt64] = []
        for (number, value) in self where fits(number, value) { numbers.append(number) }
        return numbers
    }

    /// Takes everything out; what was here is then held once, and changed without a copy.
    private mutating func takeAll() -> FewByNumber {
        var taken = FewByNumber.none
        swap(&taken, &self)
        return taken
    }
}

extension FewByNumber: Sequence {
    struct Iterator: IteratorProtocol {
        fileprivate var one: (number: UInt64, value: Value)?
        fileprivate var many: [UInt64: Value].Iterator?

        mutating func next() -> (number: UInt64, value: Value)? {
            if let element = many?.next() { return (element.key, element.value) }
            defer { one = nil }
            return one
        }
    }

    /// All values with their numbers, in no order.
    func makeIterator() -> Iterator {
        switch self {
        case .none: Iterator()
        case .one(let number, let value): Iterator(one: (number, value))
        case .many(let values): Iterator(many: values.makeIterator())
        }
    }
}

extension FewByNumber: Sendable where Value: Sendable {}
