/// A process that writes with the module's own parts and is killed meanwhile.
@main
struct SyncCrashWriter {
    static func main() {}
}
