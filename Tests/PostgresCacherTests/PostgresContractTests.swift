import PostgresCacher
import StoreCore
import StoreCoreTesting
import Testing
import Trials

/// The contract suite for cachers, which users run over their own.
@Suite(.timeLimit(.minutes(hangMinutes)), .enabled(if: PostgresServer.obstacle == nil, needsPostgres))
struct PostgresContractTests {
    private let place: PostgresPlace

    init() async throws { place = try await PostgresPlace() }

    @Test func `a cacher over PostgreSQL keeps the contract`() async throws {
        try await CacherContract.check(
            keys: ["a", "A", "", "é", "e\u{301}\u{301}", "..", String(repeating: "k", count: 300)],
            contents: ["", "\u{0}\"\\\n", String(repeating: "c", count: 20_000)]
        ) { try place.textCacher() }
    }

    @Test func `a cacher over PostgreSQL keeps the contract of shared cachers`() async throws {
        try await CacherContract.checkSharing(keys: [1, 2, 3], contents: [1, 2], timeout: hangLimit) { try place.cacher() }
    }
}
