extension SemanticVersion: Comparable, Hashable {
    /// Returns whether both have the same precedence; build metadata is ignored.
    @inlinable
    public static func == (lhs: SemanticVersion, rhs: SemanticVersion) -> Bool {
        lhs.major == rhs.major && lhs.minor == rhs.minor && lhs.patch == rhs.patch && order(lhs, rhs) == 0
    }

    /// Returns whether `lhs` has the lower precedence (section 11 of the specification).
    ///
    /// The usual case is inlinable, so that sorting in other modules can specialize it.
    @inlinable
    public static func < (lhs: SemanticVersion, rhs: SemanticVersion) -> Bool {
        if lhs.major != rhs.major { return lhs.major < rhs.major }
        // Numbers beyond 64 bits compare by their digits, which must precede the numbers after them.
        if lhs.major != .max {
            if lhs.minor != rhs.minor { return lhs.minor < rhs.minor }
            if lhs.minor != .max, lhs.patch != rhs.patch { return lhs.patch < rhs.patch }
        }
        return order(lhs, rhs) < 0
    }

    /// Hashes versions of equal precedence identically.
    public func hash(into hasher: inout Hasher) {
        for (index, number) in [major, minor, patch].enumerated() {
            if number == .max { hasher.combine(digits(ofNumber: index)) } else { hasher.combine(number) }
        }
        guard let preRelease else { return }
        for identifier in preRelease.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false) {
            let isNumber = identifier.allSatisfy { $0 &- 0x30 <= 9 }
            for byte in isNumber ? identifier.withoutLeadingZeros : identifier { hasher.combine(byte) }
            hasher.combine(UInt8(ascii: "."))
        }
    }

    /// The extent of a comparison of two versions.
    public enum Part: Hashable, Sendable {
        /// The first number alone: incompatible changes.
        case major
        /// The first two numbers: incompatible changes and additions.
        case minor
    }

    /// Returns whether two versions have the same numbers up to a part.
    ///
    /// - Parameters:
    ///   - other: Another version.
    ///   - part: The last number to compare.
    public func agrees(with other: SemanticVersion, upTo part: Part) -> Bool {
        guard Self.orderOfNumber(0, self, other) == 0 else { return false }
        return part == .major || Self.orderOfNumber(1, self, other) == 0
    }

    /// Returns -1, 0, or 1, by the precedence of SemVer §11.
    @usableFromInline
    static func order(_ lhs: SemanticVersion, _ rhs: SemanticVersion) -> Int {
        if lhs.major != rhs.major { return lhs.major < rhs.major ? -1 : 1 }
        if lhs.major == .max, case let order = orderOfNumber(0, lhs, rhs), order != 0 { return order }
        if lhs.minor != rhs.minor { return lhs.minor < rhs.minor ? -1 : 1 }
        if lhs.minor == .max, case let order = orderOfNumber(1, lhs, rhs), order != 0 { return order }
        if lhs.patch != rhs.patch { return lhs.patch < rhs.patch ? -1 : 1 }
        if lhs.patch == .max, case let order = orderOfNumber(2, lhs, rhs), order != 0 { return order }
        switch (lhs.isPreRelease, rhs.isPreRelease) {
        case (false, false): return 0
        case (true, false): return -1
        case (false, true): return 1
        case (true, true): return orderOfPreReleases(lhs, rhs)
        }
    }

    private static func orderOfNumber(_ index: Int, _ lhs: SemanticVersion, _ rhs: SemanticVersion) -> Int {
        let (left, right) =
            switch index {
            case 0: (lhs.major, rhs.major)
            case 1: (lhs.minor, rhs.minor)
            default: (lhs.patch, rhs.patch)
            }
        guard left == right else { return left < right ? -1 : 1 }
        guard left == .max else { return 0 }
        let leftDigits = lhs.digits(ofNumber: index), rightDigits = rhs.digits(ofNumber: index)
        if leftDigits.count != rightDigits.count { return leftDigits.count < rightDigits.count ? -1 : 1 }
        return leftDigits == rightDigits ? 0 : leftDigits.lexicographicallyPrecedes(rightDigits) ? -1 : 1
    }

    /// Returns the digits of one of the three numbers without leading zeros; only for numbers beyond 64 bits.
    private func digits(ofNumber index: Int) -> [UInt8] {
        let core = description.utf8.drop { $0 | 0x20 == UInt8(ascii: "v") }
            .prefix { $0 &- 0x30 <= 9 || $0 == UInt8(ascii: ".") }
        let numbers = core.split(separator: UInt8(ascii: "."))
        return index < numbers.count ? Array(numbers[index].withoutLeadingZeros) : []
    }

    private static func orderOfPreReleases(_ lhs: SemanticVersion, _ rhs: SemanticVersion) -> Int {
        var left = lhs.description, right = rhs.description
        return left.withUTF8 { left in
            right.withUTF8 { right in
                orderOfIdentifiers(
                    UnsafeBufferPointer(rebasing: left[Int(lhs.preReleaseStart)..<Int(lhs.preReleaseEnd)]),
                    UnsafeBufferPointer(rebasing: right[Int(rhs.preReleaseStart)..<Int(rhs.preReleaseEnd)]))
            }
        }
    }

    private static func orderOfIdentifiers(_ left: UnsafeBufferPointer<UInt8>, _ right: UnsafeBufferPointer<UInt8>) -> Int {
        var left = left[...], right = right[...]
        while true {
            if left.isEmpty || right.isEmpty { return left.isEmpty ? (right.isEmpty ? 0 : -1) : 1 }
            let one = left.prefix { $0 != UInt8(ascii: ".") }, other = right.prefix { $0 != UInt8(ascii: ".") }
            let order = orderOfIdentifier(one, other)
            guard order == 0 else { return order }
            left = left.dropFirst(one.count + 1)
            right = right.dropFirst(other.count + 1)
        }
    }

    private static func orderOfIdentifier(_ left: Slice<UnsafeBufferPointer<UInt8>>, _ right: Slice<UnsafeBufferPointer<UInt8>>) -> Int {
        let leftIsNumber = left.allSatisfy { $0 &- 0x30 <= 9 }, rightIsNumber = right.allSatisfy { $0 &- 0x30 <= 9 }
        switch (leftIsNumber, rightIsNumber) {
        case (true, false): return -1
        case (false, true): return 1
        case (false, false): return left.elementsEqual(right) ? 0 : left.lexicographicallyPrecedes(right) ? -1 : 1
        case (true, true):
            let left = left.withoutLeadingZeros, right = right.withoutLeadingZeros
            if left.count != right.count { return left.count < right.count ? -1 : 1 }
            return left.elementsEqual(right) ? 0 : left.lexicographicallyPrecedes(right) ? -1 : 1
        }
    }
}

extension Collection<UInt8> {
    /// The digits of a number without leading zeros; none for zero.
    fileprivate var withoutLeadingZeros: SubSequence { drop { $0 == 0x30 } }
}
