/// A reference to one value that is changed in place; the owner's lock guards it.
///
/// The value is one structure rather than the properties of an object, so a change is one access instead of dozens.
final class Cell<Value> {
    // The lock makes the access exclusive. Debug builds check that. In release builds the check would cost a look-up in thread-local
    // storage at each access.
    #if DEBUG
    var value: Value
    #else
    @exclusivity(unchecked) var value: Value
    #endif

    init(_ value: Value) {
        self.value = value
    }
}

/// A value that is stored out of line, so that it costs its owner one word.
struct OutOfLine<Value> {
    private var cell: Cell<Value>

    init(_ value: Value) {
        cell = Cell(value)
    }

    var value: Value {
        _read { yield cell.value }
        _modify {
            if !isKnownUniquelyReferenced(&cell) { cell = Cell(cell.value) }
            yield &cell.value
        }
    }
}
