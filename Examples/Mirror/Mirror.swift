/// `swift run mirror`: not built yet; the README's status line says so.
@main
struct Mirror {
    static func main() {}
}
