internal import Foundation
internal import StoreCore
import StoreFiles
internal import Testing
internal import Trials

struct SharingACacheTests {
    @Test func `a record is saved over the newest position`() async throws {
        let directory = temporaryURL()
        let files = FileCacher<User.ID, User>(directory: directory, sharing: .processes)
        let (id, record) = (1, CacheRecord(content: User(id: 1, name: "Ada"), fetchedAt: .now))
        //: Revision.swift
        guard case .saved = outcome else {
            Issue.record("\(outcome)")
            return
        }
    }

    /// The printed output of an observer in one process that sees the update of another one.
    static func output() async throws -> [[String]] {
        let api = UserAPI()
        let directory = temporaryURL()

        //: SharingACache.md: let files = FileCacher

        // Another process has a cacher of its own.
        let widgetFiles = FileCacher<User.ID, User>(directory: directory, sharing: .processes)
        let widgetUsers = Store(cacher: TieredCacher(over: widgetFiles), fetcher: UserFetcher(api: api))
        return try await tell { printed in
            //: SharingACache.md: for await user
            return [try await printed.next(2)]
        }
    }
}

#if canImport(Darwin)
private func container() -> URL? {
    //: SharingACache.md: #if canImport
    return container
}
#endif
