/// A binary heap with the least element first.
package struct Heap<Element: Comparable> {
    @usableFromInline var elements: [Element] = []

    @inlinable
    package init() {}

    package var first: Element? { @inlinable get { elements.first } }

    var count: Int { elements.count }

    @inlinable
    package mutating func insert(_ element: Element) {
        elements.append(element)
        var place = elements.count - 1
        while place > 0, elements[place] < elements[(place - 1) / 2] {
            elements.swapAt(place, (place - 1) / 2)
            place = (place - 1) / 2
        }
    }

    /// Removes the least element of a heap that is not empty.
    @inlinable
    package mutating func removeFirst() {
        elements.swapAt(0, elements.count - 1)
        elements.removeLast()
        var place = 0
        while true {
            let left = 2 * place + 1
            let right = left + 1
            guard left < elements.count else { return }
            let child = right < elements.count && elements[right] < elements[left] ? right : left
            guard elements[child] < elements[place] else { return }
            elements.swapAt(place, child)
            place = child
        }
    }

    mutating func removeAll(where isUnwanted: (Element) -> Bool) {
        elements.removeAll(where: isUnwanted)
        // A sorted array is a heap.
        elements.sort()
    }
}

extension Heap: Sendable where Element: Sendable {}
