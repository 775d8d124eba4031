internal import Foundation
internal import RemoteRouting
internal import StoreCore
import StoreFiles
import RemoteRoutingTesting
internal import Testing
internal import Trials

// What stands in the article on authorizing.

//: Authorizing.md: struct ShopToken

struct AuthorizingTests {
    @Test func `each kind of credentials is written as it should be`() async throws {
        let transport = shopTransport()
        let shop = RemoteHost("shop.example.com", transport: transport)
        let (password, token, key) = ("secret", "abc", "xyz")
        //: Authorizing.md: let basic = shop
        for host in [basic, fixed, keyed] { try await host.send("/products") }
        #expect(transport.requests.map { $0.fields["Authorization"] } == ["Basic YWRhOnNlY3JldA==", "Bearer abc", nil])
        #expect(transport.requests.last?.fields["X-API-Key"] == "xyz")
    }

    /// A shop that renews tokens, and a token that it refuses.
    private func renewingShop() -> (MemoryTransport, RemoteHost, ShopToken) {
        let transport = MemoryTransport { request in
            if request.url.path == "/tokens" { return .json(#"{"accessToken": "new", "refreshToken": "next"}"#) }
            return request.fields["Authorization"] == "Bearer old" ? .status(401) : .json("[]")
        }
        return (transport, RemoteHost("shop.example.com", transport: transport), ShopToken(accessToken: "old", refreshToken: "first"))
    }

    @Test func `a token is refreshed once`() async throws {
        let (transport, shop, saved) = renewingShop()
        //: Authorizing.md: let signedIn
        let products: [Product] = try await signedIn.send("/products")
        #expect(products.isEmpty)
        #expect(transport.requests.map(\.url.path) == ["/products", "/tokens", "/products"])
    }
}

/// Where an app keeps tokens.
final class Keychain: Sendable {
    let saved = Lock<[ShopToken]>([])

    func save(_ token: ShopToken) { saved.withLock { $0.append(token) } }
}

extension AuthorizingTests {
    @Test func `each new token is saved, and one that was got by signing in is used`() async throws {
        let (transport, shop, saved) = renewingShop()
        let keychain = Keychain()
        //: Authorizing.md: let tokens = RefreshingTokens
        try await signedIn.send("/products")
        let fresh = ShopToken(accessToken: "fresh", refreshToken: "last")
        //: Authorizing.md: tokens.replace
        try await signedIn.send("/products")
        #expect(keychain.saved.withLock { $0.map(\.accessToken) } == ["new"])
        #expect(
            transport.requests.map { $0.fields["Authorization"] } == ["Bearer old", nil, "Bearer new", "Bearer fresh"])
    }

    @Test func `processes that share a token refresh it once`() async throws {
        let (transport, shop, saved) = renewingShop()
        let place = try TemporaryDirectory()
        let directory = place.url
        for _ in 0..<2 {
            //: Authorizing.md: let shared = RefreshingTokens
            try await signedIn.send("/products")
            let fresh = ShopToken(accessToken: "fresh", refreshToken: "last")
            //: Authorizing.md: try await shared
        }
        #expect(
            transport.requests.map { $0.fields["Authorization"] } == ["Bearer old", nil, "Bearer new", "Bearer fresh"])
    }
}

//: Authorizing.md: final class ShopSession

extension AuthorizingTests {
    @Test func `a signed-in user gets private content, and signing out leaves nothing behind`() async throws {
        let transport = MemoryTransport { request in
            if request.url.path == "/tokens" { return .json(#"{"accessToken": "ada's", "refreshToken": "next"}"#) }
            return request.fields["Authorization"] == "Bearer ada's" ? .json(#"{"id": "lamp", "name": "Lamp"}"#) : .status(401)
        }
        let shop = RemoteHost("shop.example.com", transport: transport)
        let session = try await ShopSession.signIn(user: "ada", password: "secret", at: shop)
        #expect(try await session.products["lamp"].requireData().name == "Lamp")
        try await session.signOut()
        await #expect(throws: StoreError.self) { try await session.products["lamp"].requireData(from: .cache) }
        await #expect(throws: RemoteError.self) { try await session.host.send("/products/lamp") }
        #expect(transport.requests.map(\.url.path) == ["/tokens", "/products/lamp"])
    }
}
