/// What all contestants keep: a small struct. Its name is short enough to stand in the struct itself, so that counting references to it
/// is nobody's share of a figure.
struct User: Hashable, Identifiable, Sendable {
    var id: Int
    var name = "Ada"
}
