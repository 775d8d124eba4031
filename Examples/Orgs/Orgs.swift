/// `swift run orgs`: not built yet; the README's status line says so.
@main
struct Orgs {
    static func main() {}
}
