internal import Foundation
internal import RemoteRouting
internal import StoreCore
import StoreFiles
internal import Testing

// The examples of the article on cookies and of the doc comments beside it.

struct CookieSnippets {
    @Test func `a jar in a scope lists, removes, saves and clears its cookies`() async throws {
        let scope = CacheScope()
        //: KeepingCookies.md: let jar = CookieJar
        //: KeepingCookies.md: let api = RemoteHost
        #expect(api.cookies === jar)
        let (id, page) = ("1", try #require(URL(string: "https://api.example.com/login")))
        //: KeepingCookies.md: try await jar.set
        #expect(try await jar.cookies().count == 1)
        //: KeepingCookies.md: for cookie in
        #expect(try await jar.cookies().isEmpty)
        //: KeepingCookies.md: try await jar.waitUntilSaved
        try await scope.close(clearing: true)
        #expect(try await jar.cookies().isEmpty)
    }
}
