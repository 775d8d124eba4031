/// `swift run terms`: not built yet; the README's status line says so.
@main
struct Terms {
    static func main() {}
}
