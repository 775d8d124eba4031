import Testing
import Trials

/// Mistakes of the first day, and the remedies that the compiler names.
@Suite(.enabled(if: SwiftCompiler.found != nil, "swiftc or the built modules are not found, so there is nothing to compile with"))
struct MistakeTests {
    private static let start = """
        import RemoteRouting
        import StoreCore
        import StoreOutbox
        struct Like: Command { static let name = "like"; var post = 1 }
        struct User: Codable, Sendable { var id = 1, name = "" }
        func try_(_ users: Store<Int, User>, _ me: Store<UnitParam, User>, _ rows: PaginationStore<Int, Int>, _ api: RemoteHost,
            _ news: PaginationStore<UnitParam, Int>, _ outbox: Outbox) async throws {

        """

    private static let mistakes = [
        ("try await users[1].mutate { $0.name = \"Ada\" }", "for a local change, call update { … }"),
        ("try await rows[1].mutate { $0 = [] }", "for a local change, call update { … }"),
        ("_ = Store(cacher: MemoryCacher()) { id in try await api.send(\"/users/\\(id)\") }", "let user: User = try await api.send(…)"),
        ("let user = try await api.send(\"/users/1\"); _ = user", "inferred to have type '()'"),
        ("if case .completed(let user) = LoadingState.completed(User()) { _ = user.name }", "(content: User, next:"),
        ("_ = MemoryCacher<Int, User>(expiry: 60)", ".after(.seconds(60))"),
        ("_ = MemoryCacher<Int, User>(expiry: 0.5)", ".after(.seconds(60))"),
        ("_ = try await users.requireData()", "store[key].requireData()"),
        ("_ = await users.getData()", "store[key].getData()"),
        ("for await _ in users.publish() {}", "store[key].publish()"),
        ("await users.update(User())", "store[key].update(content)"),
        ("_ = try await me.requireData()", "store.flowable.requireData()"),
        ("_ = await me.getData()", "store.flowable.getData()"),
        ("for await _ in me.publish() {}", "store.flowable.publish()"),
        ("await me.update(User())", "store.flowable.update(content)"),
        ("_ = Store(cacher: MemoryCacher<Int, User>(), fetcher: { User(id: $0) })", "Store(cacher: …) { key in … }"),
        ("_ = try await rows.requireData()", "store[key].requireData()"),
        ("for await _ in rows.publish() {}", "store[key].publish()"),
        ("_ = try await news.requireData()", "store.flowable.requireData()"),
        ("for await _ in news.publish() {}", "store.flowable.publish()"),
        (
            "_ = PaginationStore(cacher: MemoryCacher<Int, [Int]>(), fetcher: { _, _ in Page([1]) })",
            "PaginationClosureFetcher { key, nextKey in … }"
        ),
        (
            "await outbox.register(Like.self, patching: rows, at: { $0.post }) { _, _ in } perform: { _, _ in }",
            "register(…, patching: lists, element: …)"
        ),
        ("_ = Store(cacher: MemoryCacher<Void, User>()) { User() }", "does not conform to protocol 'Hashable'"),
    ]

    @Test func `the compiler names the remedy of a mistake`() async throws {
        let compiler = try #require(SwiftCompiler.found)
        let found = try await compiler.diagnostics(of: Self.start + Self.mistakes.map(\.0).joined(separator: "\n") + "\n}")
        let first = Self.start.count { $0.isNewline } + 1
        for (number, (mistake, remedy)) in Self.mistakes.enumerated() {
            let messages = found.filter { $0.line == first + number }.map(\.text)
            #expect(messages.contains { $0.contains(remedy) }, "\(mistake): \(messages)")
        }
        #expect(!found.contains { $0.line < first }, "\(found.first { $0.line < first }?.text ?? "")")
    }

    @Test func `correct calls beside them compile without a warning`() async throws {
        let compiler = try #require(SwiftCompiler.found)
        let calls = """
            _ = try await users[1].mutate { $0.name = "Ada" } perform: { 1 }
            try await users[1].mutate { $0.name = "Ada" } perform: { try await api.send("/users/1", method: .post) }
            try await rows[1].mutate { $0 = [] } perform: {}
            let user: User = try await api.send("/users/1"); _ = user
            _ = Store(cacher: MemoryCacher<Int, User>(expiry: .after(.seconds(60)))) { id in try await api.send("/users/\\(id)") }
            _ = Store(cacher: MemoryCacher()) { (id: Int) -> User in try await api.send("/users/\\(id)") }
            _ = try await (me.flowable.requireData(), news.flowable.requireData())
            _ = PaginationStore(cacher: MemoryCacher<Int, [Int]>(), fetcher: PaginationClosureFetcher { _, _ in Page([1]) })
            """
        #expect(try await compiler.diagnostics(of: Self.start + calls + "\n}").map(\.text) == [])
    }
}
