#if os(Linux)
import Foundation
import StoreCore
import StoreFiles
import Testing
import Trials

@testable import RemoteRouting

/// Entity tags and cookies with bytes beyond ASCII, over real connections.
@Suite(.enabled(if: RealTransport.available.contains(.curl), "libcurl is missing"), .timeLimit(.minutes(hangMinutes)))
struct OpaqueFieldTests {
    private static let value: [UInt8] = [0x22, 0xE4, 0x22]

    /// A server that sends a field with bytes that are not UTF-8, and records the heads of the requests.
    ///
    /// The heads have U+FFFD in place of each such byte, which no UTF-8 of the same character has.
    private func server(_ field: String, _ heads: WatchedState<[String]>, status: String = "200 OK") throws -> RawServer {
        try RawServer { connection in
            while let head = connection.readHead() {
                heads.update { $0.append(head) }
                connection.send("HTTP/1.1 \(status)\r\nCache-Control: no-cache\r\n\(field)")
                connection.send(OpaqueFieldTests.value)
                connection.send("\r\nContent-Type: application/json\r\nContent-Length: 3\r\n\r\n[1]")
            }
        }
    }

    @Test func `H19: an entity tag goes back to the server as it came`() async throws {
        let heads = WatchedState<[String]>([])
        let server = try server("ETag: ", heads)
        let host = try RealTransport.curl.host(server.port)
        let place = try TemporaryDirectory()
        // The second store reads the tag from the file.
        for _ in 0..<2 {
            let store = Store(
                cacher: FileCacher<Int, [Int]>(directory: place.url),
                fetcher: host.fetcher(of: [Int].self) { (_: Int) in Route(path: "/x") })
            #expect(try await store[1].requireData() == [1])
            try await store.waitUntilSaved()
        }
        #expect(heads.current.count == 2)
        #expect(heads.current.last?.contains("If-None-Match: \"\u{FFFD}\"\r\n") == true, "\(heads.current)")
    }

    @Test func `H19: a cookie goes back to the server as it came`() async throws {
        let heads = WatchedState<[String]>([])
        let server = try server("Set-Cookie: a=", heads)
        let host = try RealTransport.curl.host(server.port) { $0.cookies = CookieJar() }
        for _ in 0..<2 { _ = try await host.data(for: Route(path: "/x")) }
        #expect(heads.current.last?.contains("Cookie: a=\"\u{FFFD}\"\r\n") == true, "\(heads.current)")
    }

    @Test func `H19, H21: a redirect leads to the bytes of its Location`() async throws {
        let heads = WatchedState<[String]>([])
        let server = try RawServer { connection in
            while let head = connection.readHead() {
                heads.update { $0.append(head) }
                if head.hasPrefix("GET /x ") {
                    connection.send("HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: /caf")
                    connection.send([0xE9] as [UInt8])
                    connection.send("\r\n\r\n")
                } else {
                    connection.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                }
            }
        }
        _ = try await RealTransport.curl.host(server.port).data(for: Route(path: "/x"))
        #expect(heads.current.last?.hasPrefix("GET /caf%E9 HTTP/1.1\r\n") == true, "\(heads.current)")
    }

    @Test func `H19: a download resumes with the entity tag as it came`() async throws {
        let heads = WatchedState<[String]>([])
        let server = try RawServer { connection in
            guard let head = connection.readHead() else { return }
            heads.update { $0.append(head) }
            let isRange = head.contains("Range: bytes=2-\r\n")
            connection.send(
                isRange ? "HTTP/1.1 206 Partial\r\nContent-Range: bytes 2-3/4\r\nContent-Length: 2" : "HTTP/1.1 200 OK\r\nContent-Length: 4"
            )
            connection.send("\r\nETag: ")
            connection.send(OpaqueFieldTests.value)
            connection.send("\r\n\r\n" + (isRange ? "cd" : "ab"))
        }
        let place = try TemporaryDirectory()
        try await RealTransport.curl.host(server.port) { $0.random = { 0 } }.download(Route(path: "/f"), to: place.target)
        #expect(try Data(contentsOf: place.target) == Data("abcd".utf8))
        #expect(heads.current.last?.contains("If-Range: \"\u{FFFD}\"\r\n") == true, "\(heads.current)")
    }
}
#endif
