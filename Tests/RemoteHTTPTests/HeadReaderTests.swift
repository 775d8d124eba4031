import Foundation
import Testing

@testable import RemoteHTTP

/// Parsing of response heads, line by line.
@Suite
struct HeadReaderTests {
    private func read(_ text: String, offersHTTP2: Bool = true) throws -> HTTPResponse? {
        try read(Array(text.utf8), offersHTTP2: offersHTTP2)
    }

    private func read(_ bytes: [UInt8], offersHTTP2: Bool = true) throws -> HTTPResponse? {
        var reader = HeadReader(url: URL(filePath: "/"), offersHTTP2: offersHTTP2)
        var found: HTTPResponse?
        var line: [UInt8] = []
        for byte in bytes {
            line.append(byte)
            guard byte == 0x0A else { continue }
            if let head = try line.withUnsafeBytes({ try reader.take($0) }) { found = head }
            line = []
        }
        return found
    }

    /// Reads a head of one field; its value need not be text.
    private func head(_ name: String, _ value: [UInt8]) throws -> HTTPResponse? {
        try read(Array("HTTP/1.1 200 OK\r\n\(name): ".utf8) + value + Array("\r\n\r\n".utf8))
    }

    @Test func `a head contains its status and its fields in order`() throws {
        let head = try #require(try read("HTTP/1.1 404 Not Found\r\nA: 1\r\nB:2 \r\na:\t3\r\nC:\r\n\r\n"))
        #expect(head.status == 404)
        #expect(head.fields.fields.map { "\($0.name)=\($0.value)" } == ["A=1", "B=2", "a=3", "C="])
        #expect(head.fields.values(of: "A") == ["1", "3"])
    }

    @Test(arguments: ["HTTP/1.1 404 Not: Found", "HTTP/: 1", "HTTP/1.1 100 Continue: x"])
    func `W1: a line in the middle of a head is not a status line`(_ line: String) throws {
        let head = try #require(try read("HTTP/1.1 200 OK\r\nA: 1\r\n\(line)\r\nB: 2\r\n\r\n"))
        #expect(head.status == 200)
        #expect(head.fields.values(of: "A") == ["1"] && head.fields.values(of: "B") == ["2"])
        let hidden = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\(line)\r\nContent-Length: 2\r\n\r\n"
        #expect { try read(hidden) } throws: { ($0 as? TransportFailure)?.code == .protocolViolation }
    }

    @Test(arguments: ["HTTP/2 200", "HTTP/2.0 200 OK"])
    func `W1: a status line of HTTP 2 is refused where the connection does not use it`(_ line: String) throws {
        #expect { try read("\(line)\r\n\r\n", offersHTTP2: false) } throws: { ($0 as? TransportFailure)?.code == .protocolViolation }
        #expect(try read("HTTP/2 200\r\n\r\n")?.status == 200)
    }

    @Test func `an interim response and trailers are dropped`() throws {
        let head = try #require(try read("HTTP/1.1 103 X\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\nB: 2\r\n\r\nETag: c\r\n\r\n"))
        #expect(head.status == 200)
        #expect(head.fields.fields.map(\.name) == ["B"])
        #expect(try read("HTTP/1.1 100 Continue\r\n\r\n") == nil)
        #expect(try read("HTTP/1.1 101 Switching\r\n\r\n")?.status == 101)
    }

    @Test func `a folded line continues the previous field`() throws {
        #expect(try read("HTTP/1.1 200 OK\r\nA: 1\r\n  2\r\n\t3 \r\n\r\n")?.fields.fields.map(\.value) == ["1 2 3"])
        #expect(try read("HTTP/1.1 200 OK\r\n A: 1\r\n\r\n")?.fields.fields.isEmpty == true)
    }

    #if os(Linux)
    /// Reads a field, and returns its bytes as a request would send its value.
    private func returned(_ name: String, _ value: [UInt8]) throws -> [UInt8] {
        var fields = HTTPFields()
        try fields.append("A", try #require(try head(name, value)?.fields.fields.first?.value))
        let request = try WireRequest(HTTPRequest(url: URL(filePath: "/"), fields: fields), over: ConnectionOptions(), ExchangeLimits())
        return Array(request.lines.dropFirst("A: ".count).prefix { $0 != 0 })
    }

    @Test(
        arguments: ["ETag", "etag", "Set-Cookie"],
        [
            [0xE4], [0xC3, 0xA4], [0x80, 0xFF, 0x61], [0xF4, 0x8F, 0xBE, 0x80], [0xF4, 0x8F, 0xBF, 0xBF, 0xE4], [0xC3], [0xED, 0xA0, 0x80],
            Array("plain".utf8),
        ] as [[UInt8]])
    func `H19: the bytes of fields that go back to the server are kept`(_ name: String, _ value: [UInt8]) throws {
        #expect(try returned(name, value) == value)
    }
    #endif

    @Test func `W1: a malformed field is dropped`() throws {
        #expect(try read("HTTP/1.1 200 OK\r\nA b: 1\r\nC: \u{1}\r\nD: 2\r\n\r\n")?.fields.fields.map(\.name) == ["D"])
    }

    @Test(arguments: ["Location", "location", "Link"])
    func `H19, H21: an address that is not UTF-8 keeps its bytes`(_ name: String) throws {
        #expect(try head(name, [0x2F, 0xE9, 0x2F, 0xC3, 0xA9])?.fields.fields.map(\.value) == ["/%E9/%C3%A9"])
        #expect(try read("HTTP/1.1 200 OK\r\n\(name): /\u{E9}\r\n\r\n")?.fields.fields.map(\.value) == ["/\u{E9}"])
    }

    @Test func `H19: bytes that are not UTF-8 are read as ISO-8859-1`() throws {
        #expect(try head("A", [0xE9])?.fields.fields.map(\.value) == ["é"])
    }

    private static let lengths = ["1\r\nContent-Length: 2", "1, 2", "-1", "+1", "1x", "", "1,", "99999999999999999999", "5\u{1}"]
    private static let codings = ["gzip", "gzip, chunked", "chunked\r\nTransfer-Encoding: chunked", "chunked\u{1}"]

    @Test(
        arguments: lengths.map { ("HTTP/1.1 200 OK\r\nContent-Length: \($0)", "Content-Length") }
            + codings.map { ("HTTP/1.1 200 OK\r\nTransfer-Encoding: \($0)", "chunked") }
            + ["HTTP/1.1 099 OK", "HTTP/1.1 OK", "HTTP/1.1 1000 OK", "A: 1"].map { ($0, "status") })
    func `W1: the error of a contradictory head or one without a status names the reason and the remedy`(_ head: String, _ word: String) {
        let failure = #expect(throws: TransportFailure.self) { try read("\(head)\r\n\r\n") }
        #expect(failure?.code == .protocolViolation && failure?.message.contains(word) == true && failure?.message.contains(";") == true)
    }

    @Test(arguments: ["Content-Length: 7\r\nContent-Length: 7", "Content-Length: 7 , 7", "Transfer-Encoding: Chunked"])
    func `a head with consistent duplicates is accepted`(_ lines: String) throws {
        #expect(try read("HTTP/1.1 200 OK\r\n\(lines)\r\n\r\n")?.status == 200)
    }

    @Test func `W4: a head has limits for its fields and bytes, interim responses included`() throws {
        func fields(_ count: Int) -> String { String(repeating: "A: 1\r\n", count: count) }
        #expect(try read("HTTP/1.1 200 OK\r\n\(fields(HeadReader.fieldLimit))\r\n")?.fields.fields.count == HeadReader.fieldLimit)
        let texts = [
            "HTTP/1.1 200 OK\r\n\(fields(HeadReader.fieldLimit + 1))\r\n",
            "HTTP/1.1 200 OK\r\nA: \(String(repeating: "a", count: HeadReader.byteLimit))\r\n\r\n",
            String(repeating: "HTTP/1.1 100 Continue\r\n\r\n", count: HeadReader.fieldLimit),
            "HTTP/1.1 200 OK\r\n\r\n\(fields(HeadReader.fieldLimit + 1))\r\n",
        ]
        for text in texts {
            #expect { try read(text) } throws: { ($0 as? TransportFailure)?.message.contains("more than") == true }
        }
    }
}
