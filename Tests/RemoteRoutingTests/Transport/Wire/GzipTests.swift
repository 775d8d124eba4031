#if os(Linux)
import Foundation
import Glibc
import LoopbackOrigin
import RemoteHTTP
import RemoteRouting
import StoreCore
import Testing
import Trials

/// Gzip bodies, which the transport decodes itself.
@Suite(
    .enabled(if: RealTransport.available.contains(.curl) && ContentCoding.gzip.isAvailable, "libcurl or zlib is missing"),
    .timeLimit(.minutes(hangMinutes)))
struct GzipTests {
    private static let text = "hello, hello, hello, hello"

    private func decode(_ bytes: [UInt8], pieces: Int = 1) throws -> Data {
        let inflater = try #require(Inflater(.gzip))
        var whole = Data()
        for start in stride(from: 0, to: bytes.count, by: pieces) {
            inflater.push(Data(bytes[start..<min(bytes.count, start + pieces)]))
            while let piece = try inflater.next() { whole.append(piece) }
        }
        try inflater.finish()
        return whole
    }

    @Test(arguments: [1, 2, 7, 1000])
    func `W7: every gzip member is decoded, in chunks of any size`(_ pieces: Int) throws {
        let gzip = try self.gzip(Data(GzipTests.text.utf8))
        #expect(try decode(gzip, pieces: pieces) == Data(GzipTests.text.utf8))
        #expect(try decode(gzip + gzip, pieces: pieces) == Data((GzipTests.text + GzipTests.text).utf8))
        #expect(try decode([], pieces: pieces).isEmpty)
    }

    @Test func `W7: gzip truncated at any byte is an error`() throws {
        let gzip = try self.gzip(Data(GzipTests.text.utf8))
        for count in 1..<gzip.count {
            for prefix in [[], gzip] {
                #expect(throws: TransportFailure.self, "cut behind \(count) bytes") { try decode(prefix + gzip[..<count]) }
            }
        }
        #expect(throws: TransportFailure.self) { try decode(gzip + [0x61]) }
        #expect(throws: TransportFailure.self) { try decode(Array(GzipTests.text.utf8)) }
    }

    @Test func `W7: large gzip is decoded completely`() throws {
        var generator = SplitMix(seed: 7)
        let data = Data((0..<700_000).map { _ in UInt8(truncatingIfNeeded: generator.next() % 23) })
        #expect(try decode(try gzip(data), pieces: 16_384) == data)
    }

    @Test func `W7: bytes beyond the first 4 GiB of a push are not skipped`() throws {
        let gzip = try self.gzip(Data(GzipTests.text.utf8))
        // zlib takes 32-bit counts, and the low 32 bits of this count are those of one member.
        let count = 1 << 32 + gzip.count
        // Unused pages take no memory.
        let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
        let mapped = try #require(mmap(nil, count, PROT_READ | PROT_WRITE, flags, -1, 0))
        try #require(mapped != MAP_FAILED)
        mapped.copyMemory(from: gzip, byteCount: gzip.count)
        let inflater = try #require(Inflater(.gzip))
        inflater.push(Data(bytesNoCopy: mapped, count: count, deallocator: .unmap))
        #expect(try inflater.next() == Data(GzipTests.text.utf8))
        #expect(throws: TransportFailure.self) { try inflater.next() }
    }

    /// Compresses with the system's gzip.
    private func gzip(_ data: Data) throws -> [UInt8] {
        [UInt8](try #require(try ChildProcess.output(of: "/bin/gzip", ["-9nc"], input: data)))
    }

    private func origin(_ bytes: [UInt8], chunked: Bool) throws -> LoopbackOrigin {
        try LoopbackOrigin { _ in
            var response = LoopbackOrigin.Response.data(Data(bytes)).setting("Content-Encoding", to: "gzip")
            if chunked { response.framing = .chunked(bytes: 5) }
            return response
        }
    }

    @Test(arguments: [true, false])
    func `W7: a truncated gzip body is an error although its framing is complete`(_ chunked: Bool) async throws {
        let gzip = try self.gzip(Data(GzipTests.text.utf8))
        let whole = try origin(gzip + gzip, chunked: chunked)
        let data = try await RealTransport.curl.host(whole.port).data(for: Route(path: "/x"))
        #expect(data == Data((GzipTests.text + GzipTests.text).utf8))
        #expect(whole.requests.first?.headers["Accept-Encoding"] == ContentCoding.offer)
        for count in [1, 12, gzip.count - 1, gzip.count + 3] {
            let cut = try origin(Array((gzip + gzip)[..<count]), chunked: chunked)
            let host = try RealTransport.curl.host(cut.port) { $0.retry = .never }
            let error = try await remoteError { _ = try await host.data(for: Route(path: "/x")) }
            #expect(error.code == .protocolViolation, "cut behind \(count) bytes")
            let streamed = try await remoteError { for try await _ in try await host.bytes(for: Route(path: "/x")) {} }
            #expect(streamed.code == .protocolViolation)
        }
    }

    @Test func `W7: an unrequested coding is an error, and a range requests none`() async throws {
        let origin = try LoopbackOrigin { request in
            request.path == "/coded" ? .text("x").setting("Content-Encoding", to: "compress") : .text("0123")
        }
        let host = try RealTransport.curl.host(origin.port) { $0.retry = .never }
        #expect(try await remoteError { _ = try await host.data(for: Route(path: "/coded")) }.code == .protocolViolation)
        _ = try await host.data(for: Route(path: "/x", headers: ["Range": "bytes=0-"]))
        #expect(origin.requests(to: "/x").first?.headers["Accept-Encoding"] == "identity")
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
#endif
