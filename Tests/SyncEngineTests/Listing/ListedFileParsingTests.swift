import Foundation
import StoreCore
import Testing
import Trials
@testable import SyncEngine

/// The parser of plain lists of files, compared with the decoder.
struct ListedFileParsingTests {
    private static let digest = String(repeating: "0123456789abcdef", count: 4)

    private func decoded(_ text: String) -> [ListedFile]? { try? JSONDecoder().decode([ListedFile].self, from: Data(text.utf8)) }

    private func parsed(_ text: String) -> [ListedFile]? { ListedFile.parse(Array(text.utf8)) }

    @Test(arguments: [
        #"[{"path":"a","sha256":"\#(digest)"}]"#, #"[{"path":"a","sha256":"\#(digest)","size":0}]"#,
        #"[{"path":"a","version":"1","size":123456789012345678,"url":"x"}]"#,
        "[{\"version\":\"é\",\"path\":\"d/e\u{301}\",\"byteCount\":7}]",
        #"[{"path":"a","version":"\#(digest)","sha256":"\#(digest)"}]"#, #"[{"path":"a","version":"1","size":7,"byteCount":7}]"#,
        #"[{"path":"a","version":"1","mode":"0644","mtime":1700000000},{"mode":"7","version":"2","path":"b"}]"#,
        // As most encoders write slashes.
        #"[{"path":"d\/e\/f","version":"1\/2","url":"http:\/\/h\/"},{"path":"/","version":"\/"}]"#,
        "[ { \"path\" :\t\"a\" ,\r\n \"version\" : \"1\" , \"size\" : 12 } , {\"path\":\"\",\"version\":\"2\",\"url\":\"\"} ] ",
    ])
    func `S17: a plain list is parsed to what the decoder makes of it`(text: String) throws {
        let files = try #require(decoded(text))
        #expect(parsed(text) == files)
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        #expect(try encoder.encode(parsed(text)) == encoder.encode(files))
    }

    @Test(arguments: [
        "", "[", "[]", "{}", "[{}]", "[{\"path\":\"a\"}]", #"[{"path":"a","version":""}]"#,
        #"[{"path":"a","version":"1","size":7,"byteCount":8}]"#,
        #"[{"path":"a\n","version":"1"}]"#, #"[{"path":"a\\/b","version":"1"}]"#, #"[{"p\/ath":"a","version":"1"}]"#,
        #"[{"path":"a","sha256":"\/\#(digest.dropFirst())"}]"#, #"[{"path":"a\"#,
        #"[{"path":"a","version":"1","extra":1}]"#, #"[{"path":"a","path":"b","version":"1"}]"#,
        #"[{"path":"a","version":"1","size":1.0}]"#, #"[{"path":"a","version":"1","size":1e2}]"#,
        #"[{"path":"a","version":"1","size":-1}]"#,
        #"[{"path":"a","version":"1","size":01}]"#, #"[{"path":"a","version":"1","size":1234567890123456789}]"#,
        #"[{"path":"a","version":"1","size":null}]"#, #"[{"path":"a","version":1}]"#, #"[{"path":"a","sha256":"\#(digest.uppercased())"}]"#,
        #"[{"path":"a","sha256":"0"}]"#, #"[{"path":"a","version":"1"},]"#, #"[{"path":"a","version":"1",}]"#,
        #"[{"path":"a","version":"1"}"#,
        #"[{"path":"a","version":"1"}]x"#, "[{\"path\":\"a\u{1}\",\"version\":\"1\"}]", #"[{"path":"a" "version":"1"}]"#,
        #"[["path","a"]]"#, #"[{"path":"a","version":"1","mode":"8"}]"#, #"[{"path":"a","version":"1","mode":420}]"#,
        #"[{"path":"a","version":"1","mtime":-1}]"#, #"[{"path":"a","version":"1","mtime":1.5}]"#,
        #"[{"path":"a","version":"1","mtime":9007199254740993}]"#, #"[{"path":"a","type":"directory"}]"#, #"[{"path":"a","link":"b"}]"#,
    ])
    func `S17: anything unusual in a list is left to the decoder`(text: String) {
        #expect(parsed(text) == nil)
    }

    @Test(
        arguments: [
            (#"{"path":"a","version":"1","mode":"0644","mtime":1700000000.9}"#, FileMetadata(mode: 0o644, modified: 1_700_000_000)),
            (#"{"path":"a","version":"1","mtime":-0.5}"#, FileMetadata(modified: -1)),
            (#"{"path":"a","version":"1","mtime":1e300}"#, FileMetadata(modified: .max)),
            (#"{"path":"a","type":"directory"}"#, FileMetadata(kind: .directory)),
            (#"{"path":"a","link":"../b"}"#, FileMetadata(kind: .link(to: "../b"))),
            (#"{"path":"a","version":"1"}"#, nil), (#"{"path":"a","version":"1","mtime":"now"}"#, nil), (#"{"path":"a","mode":"7"}"#, nil),
            (#"{"path":"a","version":"1","mode":"rwx"}"#, nil), (#"{"path":"a","version":"1","mode":420}"#, nil),
            (#"{"path":"a","type":"socket"}"#, nil), (#"{"path":"a","version":"1","type":"directory","link":"https://h/a"}"#, nil),
        ] as [(String, FileMetadata?)])
    func `S27: a list gives metadata, and only an object without version has another kind`(text: String, metadata: FileMetadata?) throws {
        let file = decoded("[" + text + "]")?.first
        #expect(file?.metadata == metadata)
        #expect((file != nil) == (text.contains("version") || metadata != nil))
        guard let file, metadata?.modified != .max else { return }
        // As the saved list of a source of changes is written and read.
        #expect(decoded("[" + String(decoding: try JSONEncoder().encode(file), as: UTF8.self) + "]") == [file])
    }

    @Test func `S27: a link with a version is written as a link`() throws {
        var file = ListedFile(path: "a", version: "1")
        file.metadata = FileMetadata(kind: .link(to: "b"))
        #expect(decoded("[" + String(decoding: try JSONEncoder().encode(file), as: UTF8.self) + "]")?.first?.metadata == file.metadata)
    }

    @Test func `S17: bytes that are not UTF-8 are left to the decoder`() {
        #expect(ListedFile.parse(Array(#"[{"path":""#.utf8) + [0xFF] + Array(#"","version":"1"}]"#.utf8)) == nil)
    }

    @Test func `S17: a damaged list is parsed as the decoder would, or left to it`() {
        let text = Array(#"[{"path":"d\/a","sha256":"\#(Self.digest)","size":17,"url":"u"},{"path":"b","version":"2","byteCount":5}]"#.utf8)
        for index in text.indices {
            for byte in [
                UInt8(ascii: "\""), UInt8(ascii: "0"), UInt8(ascii: "}"), UInt8(ascii: ","), UInt8(ascii: "\\"), 0x20, 0xC3,
                text[index] ^ 1,
            ] {
                var damaged = text
                damaged[index] = byte
                guard let files = ListedFile.parse(damaged) else { continue }
                #expect(decoded(String(decoding: damaged, as: UTF8.self)) == files)
            }
        }
    }
}
