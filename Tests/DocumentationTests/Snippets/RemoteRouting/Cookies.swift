internal import Foundation
internal import RemoteRouting
internal import StoreCore
import StoreFiles
internal import Testing

// The examples of the article on cookies and of the doc comments beside it.

struct CookieSnippets {
    @Test func `a jar in a scope lists, removes, saves and clears its cookies`() async throws {
        let scope = CacheScope()
        let jar = CookieJar(
            cacher: FileCacher(directory: scope.directory(named: "cookies")),
            sharedDomains: ["example.com"], scope: scope)
        let api = RemoteHost("api.example.com").with { $0.cookies = jar }
        #expect(api.cookies === jar)
        let (id, page) = ("1", try #require(URL(string: "https://api.example.com/login")))
        try await jar.set(["sid=\(id); Path=/; Secure; HttpOnly"], from: page)
        #expect(try await jar.cookies().count == 1)
        for cookie in try await jar.cookies() where cookie.name == "sid" {
            jar.remove(cookie)
        }
        #expect(try await jar.cookies().isEmpty)
        try await jar.waitUntilSaved()
        try await scope.close(clearing: true)
        #expect(try await jar.cookies().isEmpty)
    }
}
