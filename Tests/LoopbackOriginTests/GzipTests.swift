import Foundation
import LoopbackOrigin
import Testing
import Trials

/// Gzip streams, checked with the independent `gzip` program where it exists.
@Suite(.timeLimit(.minutes(hangMinutes)), .enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/gzip")))
struct GzipTests {
    @Test(arguments: [0, 1, 2, 258, 259, 260, 517, 1290, 1291, 1292, 5000, 20_000_000])
    func `a gzip bomb inflates to the stated number of zeros`(count: Int) throws {
        let bytes = try wireBytes(of: .gzipBomb(inflatingTo: count))
        #expect(bytes.count < 200 + count / 1000)
        #expect(try inflate(bytes) == Data(count: count))
    }

    @Test(arguments: [0, 1, 65_535, 65_536, 200_000])
    func `a gzip-coded body inflates to itself`(count: Int) throws {
        let body = Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        #expect(try inflate(try wireBytes(of: .data(body).gzipped())) == body)
    }

    private func wireBytes(of response: LoopbackOrigin.Response) throws -> [UInt8] {
        let origin = try LoopbackOrigin { _ in response }
        let client = try RawClient(origin, get: "/")
        return try client.readBodyBytes()
    }

    /// Returns the output of `gzip` for the bytes; fails on a wrong checksum or length.
    private func inflate(_ bytes: [UInt8]) throws -> Data {
        try #require(try ChildProcess.output(of: "/usr/bin/gzip", ["-dc"], input: Data(bytes)))
    }
}
