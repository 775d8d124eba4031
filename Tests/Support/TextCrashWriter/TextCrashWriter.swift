/// A process that writes with the module's own parts and is killed meanwhile.
@main
struct TextCrashWriter {
    static func main() {}
}
