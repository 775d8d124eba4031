#if os(Linux)
import Foundation
import LoopbackOrigin
import StoreCore
import StoreFiles
import Testing
import Trials

@testable import RemoteRouting

private func decode(_ bytes: [UInt8], _ coding: ContentCoding, pieces: Int = 1) throws -> Data {
    let inflater = try #require(Inflater(coding))
    var whole = Data()
    for start in stride(from: 0, to: bytes.count, by: pieces) {
        inflater.push(Data(bytes[start..<min(bytes.count, start + pieces)]))
        while let piece = try inflater.next() { whole.append(piece) }
    }
    try inflater.finish()
    return whole
}

private func codedOrigin(_ bytes: [UInt8], _ coding: ContentCoding, chunked: Bool = false) throws -> LoopbackOrigin {
    try LoopbackOrigin { _ in
        var response = LoopbackOrigin.Response.data(Data(bytes)).setting("Content-Encoding", to: coding.rawValue)
        if chunked { response.framing = .chunked(bytes: 5) }
        return response
    }
}

private func gzip(_ data: Data) throws -> [UInt8] {
    [UInt8](try #require(try ChildProcess.output(of: "/bin/gzip", ["-9nc"], input: data)))
}

/// Bodies with content codings that the transport decodes itself.
@Suite(.enabled(if: RealTransport.available.contains(.curl), "libcurl is missing"), .timeLimit(.minutes(hangMinutes)))
struct ContentCodingTests {
    private static let codings = ContentCoding.allCases.filter(\.isAvailable)
    private static let text = Data("hello, hello, hello, hello".utf8)

    private func body(_ coding: ContentCoding) throws -> [UInt8] {
        let base64 =
            switch coding {
            case .gzip: "H4sIAAAAAAACA8tIzcnJ11HIwKQAVaOCdxoAAAA="
            case .br: "GxkA+I2Ubt5ECVKGlmwsbzFPJLDjAA=="
            case .zstd: "KLUv/QRobQAAOGhlbGxvLCABAEqKEY+ZUzc="
            }
        return [UInt8](try #require(Data(base64Encoded: base64)))
    }

    /// Returns a short body that decodes to 32 MiB of zeros.
    private func bomb(_ coding: ContentCoding) throws -> [UInt8] {
        if coding == .gzip { return try gzip(Data(count: 32 << 20)) }
        guard coding == .br else { return zeros(blocks: 256, windowLog: 23) }
        let base64 = "y///PwAkAOKxQHLv//j//weABEAcFoDu/R////8AkACIwwLQvf/L//8/ABIAcVgAuvd/"
        return [UInt8](try #require(Data(base64Encoded: base64)))
    }

    /// Returns a zstd frame of blocks that each repeat one byte 131 072 times.
    private func zeros(blocks: Int, windowLog: UInt8) -> [UInt8] {
        let head: [UInt8] = [0x28, 0xB5, 0x2F, 0xFD, 0, (windowLog - 10) << 3]
        return (1...blocks).reduce(into: head) { $0 += [$1 == blocks ? 3 : 2, 0, 0x10, 0] }
    }

    @Test func `H24: only codings with a library are offered`() {
        let decodable = ContentCoding.allCases.filter { Inflater($0) != nil }.map(\.rawValue)
        #expect(ContentCoding.offer == (decodable.isEmpty ? "identity" : decodable.joined(separator: ", ")))
    }

    @Test(arguments: codings, [1, 2, 7, 1000])
    func `W7, H24: a body is decoded, in chunks of any size`(_ coding: ContentCoding, _ pieces: Int) throws {
        let body = try self.body(coding)
        #expect(try decode(body, coding, pieces: pieces) == ContentCodingTests.text)
        #expect(try decode([], coding, pieces: pieces).isEmpty)
        #expect(try decode(bomb(coding), coding, pieces: pieces) == Data(count: 32 << 20))
        // Brotli has no members.
        let twice = try? decode(body + body, coding, pieces: pieces)
        #expect(twice == (coding == .br ? nil : ContentCodingTests.text + ContentCodingTests.text))
    }

    @Test(arguments: codings)
    func `W7, H24: a body that is truncated at any byte, malformed or too long is an error`(_ coding: ContentCoding) throws {
        let body = try self.body(coding)
        for count in 1..<body.count {
            for start in [[], body] {
                #expect(throws: TransportFailure.self, "cut behind \(count) bytes") { try decode(start + body[..<count], coding) }
            }
        }
        for malformed in [body + [0x61], Array("not coded at all".utf8), [UInt8](repeating: 0xFF, count: 50)] {
            #expect(throws: TransportFailure.self) { try decode(malformed, coding) }
        }
    }

    @Test(.enabled(if: ContentCoding.zstd.isAvailable, "libzstd is missing"), arguments: [UInt8(17), 23, 24, 27, 41])
    func `H8, H24: a zstd window over 8 MiB is refused`(_ windowLog: UInt8) throws {
        let data = try? decode(zeros(blocks: 1, windowLog: windowLog), .zstd)
        #expect((data != nil) == (windowLog <= 23))
    }

    @Test(arguments: codings, [true, false])
    func `W7, H24: coded responses are decoded, and truncated ones are errors`(_ coding: ContentCoding, _ chunked: Bool) async throws {
        let body = try self.body(coding)
        // Brotli has no members.
        let (whole, text) = coding == .br ? (body, Self.text) : (body + body, Self.text + Self.text)
        let origin = try codedOrigin(whole, coding, chunked: chunked)
        #expect(try await RealTransport.curl.host(origin.port).data(for: Route(path: "/x")) == text)
        #expect(origin.requests.first?.headers["Accept-Encoding"] == ContentCoding.offer)
        for count in [1, 12, body.count - 1, body.count + 3] where count < whole.count {
            let cut = try codedOrigin(Array(whole[..<count]), coding, chunked: chunked)
            let host = try RealTransport.curl.host(cut.port) { $0.retry = .never }
            let error = try await remoteError { _ = try await host.data(for: Route(path: "/x")) }
            #expect(error.code == .protocolViolation, "cut behind \(count) bytes")
            #expect(try await remoteError { for try await _ in try await host.bytes(for: Route(path: "/x")) {} }.code == .protocolViolation)
        }
    }

    @Test(arguments: codings)
    func `H8, H24: the limit of a response counts decoded bytes, and a stream decodes what is read`(_ coding: ContentCoding) async throws {
        let origin = try codedOrigin(try bomb(coding), coding)
        let host = try RealTransport.curl.host(origin.port) { $0.retry = .never }
        #expect(try await remoteError { _ = try await host.data(for: Route(path: "/x")) }.code == .bodyTooLarge)
        var count = 0
        for try await piece in try await host.bytes(for: Route(path: "/x")) {
            #expect(piece.count <= 65_536)
            count += piece.count
        }
        #expect(count == 32 << 20)
    }
}

/// Large gzip bodies.
@Suite(
    .enabled(if: RealTransport.available.contains(.curl) && ContentCoding.gzip.isAvailable, "libcurl or zlib is missing"),
    .timeLimit(.minutes(hangMinutes)))
struct GzipTests {
    @Test func `W7: large gzip is decoded completely`() throws {
        var generator = SplitMix(seed: 7)
        let data = Data((0..<700_000).map { _ in UInt8(truncatingIfNeeded: generator.next() % 23) })
        #expect(try decode(try gzip(data), .gzip, pieces: 16_384) == data)
    }

    @Test func `W7: bytes beyond the first 4 GiB of a push are not skipped`() throws {
        let text = Data("hello".utf8)
        let gzip = try gzip(text)
        // zlib takes 32-bit counts, and the low 32 bits of this count are those of one member.
        let count = 1 << 32 + gzip.count
        // Unused pages take no memory.
        let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
        let mapped = try #require(mmap(nil, count, PROT_READ | PROT_WRITE, flags, -1, 0))
        try #require(mapped != MAP_FAILED)
        mapped.copyMemory(from: gzip, byteCount: gzip.count)
        let inflater = try #require(Inflater(.gzip))
        inflater.push(Data(bytesNoCopy: mapped, count: count, deallocator: .unmap))
        #expect(try inflater.next() == text)
        #expect(throws: TransportFailure.self) { try inflater.next() }
    }

    @Test func `H8: a streamed bomb is decoded only as far as it is read`() async throws {
        let origin = try LoopbackOrigin { _ in .gzipBomb(inflatingTo: 400_000_000) }
        let transport = try RealTransport.curl.make()
        let host = RemoteHost(origin.port, over: transport)
        var count = 0
        for try await piece in try await host.bytes(for: Route(path: "/x")) {
            #expect(piece.count <= 65_536)
            count += piece.count
            if count > 10_000_000 { break }
        }
        try await until("the exchange is over") { transport.exchangeCount == 0 }
    }
}

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
