/// A place for one value, which is changed where it stands; guarded by the lock of whoever has it.
///
/// The value is one structure and not the properties of an object: so a change is one access, and not dozens.
final class Cell<Value> {
    // Whoever has the lock is the only one here. Debug builds see to that; in release builds it would be a look-up in the thread's own
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
