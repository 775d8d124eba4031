/// A place for one value, which is changed where it stands; guarded by the lock of whoever has it.
///
/// The value is one structure and not the properties of an object: so a change is one access that the runtime checks, and not dozens.
final class Cell<Value> {
    var value: Value

    init(_ value: Value) {
        self.value = value
    }
}
