/// A list that usually has at most one element and then needs no allocation.
@usableFromInline
package enum Few<Element> {
    case none
    case one(Element)
    case many([Element])

    var isEmpty: Bool { if case .none = self { true } else { false } }

    mutating func append(_ element: consuming Element) {
        switch self {
        case .none:
            self = .one(element)
        case .one(let first):
            self = .many([first, element])
        case .many(var elements):
            // Releases the old reference first; otherwise the list would be copied.
            self = .none
            elements.append(element)
            self = .many(elements)
        }
    }

    mutating func append(contentsOf elements: consuming Few) {
        if case .none = self { self = elements } else { elements.forEach { append($0) } }
    }

    mutating func takeAll() -> Few {
        var taken = Few.none
        swap(&taken, &self)
        return taken
    }

    func forEach(_ body: (Element) -> Void) {
        switch self {
        case .none: break
        case .one(let element): body(element)
        case .many(let elements): for element in elements { body(element) }
        }
    }

    /// Passes each element to a closure, which consumes it without a copy.
    consuming func consumeEach(_ body: (consuming Element) -> Void) {
        switch consume self {
        case .none: break
        case .one(let element): body(element)
        case .many(var elements):
            // Removing the last element moves it instead of copying it.
            elements.reverse()
            while let element = elements.popLast() { body(element) }
        }
    }
}

extension Few: Sendable where Element: Sendable {}
