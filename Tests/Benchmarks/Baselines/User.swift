/// The content of all contestants: a small struct. Its short name is stored inline, so that no figure includes reference counting.
struct User: Hashable, Identifiable, Sendable {
    var id: Int
    var name = "Ada"
}
