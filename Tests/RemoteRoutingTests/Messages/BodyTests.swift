import Foundation
import Testing
import Trials

@testable import RemoteHTTP
@testable import RemoteRouting

struct BodyTests {
    private let encoder = BodyEncoder(style: ParameterStyle(dates: .secondsSince1970), makeJSONEncoder: { JSONEncoder() })

    private func code(_ body: RouteBody) -> RouteFault.Code? { faultCode { () throws(RouteFault) in try encoder.encode(body) } }

    @Test func `fields are encoded as JSON in order`() throws {
        let fields: Parameters = [
            "z": 1, "a": nil, "b": "x\"\\\u{1}\u{1F}\n\u{2028}ü/", "c": [1, nil, 3] as [Int?], "d": ParameterValue.valueless,
            "e": ["y": true, "x": 1.5, "w": nil] as Parameters, "f": Date(timeIntervalSince1970: 5), "g": [String](),
            "h": [:] as Parameters,
        ]
        let encoded = try encoder.encode(.json(fields: fields))
        let text = String(decoding: try #require(try bytes(of: encoded.body)), as: UTF8.self)
        #expect(
            text == #"{"z":1,"b":"x\"\\\u0001\u001f\u000a"# + "\u{2028}"
                + #"ü/","c":[1,null,3],"d":null,"e":{"y":true,"x":1.5},"f":5,"g":[],"h":{}}"#)
        #expect(throws: Never.self) { try JSONSerialization.jsonObject(with: Data(text.utf8)) }
        #expect(encoded.type == .json)
    }

    @Test func `a duplicate name in a JSON object is refused, unlike another Unicode form of it`() throws {
        #expect(code(.json(fields: ["a": 1, "b": 2, "a": 3])) == .unsupportedShape)
        #expect(code(.json(fields: ["a": 1, "b": ["a": 2] as Parameters])) == nil)
        #expect(code(.json(fields: ["a": nil, "a": 3])) == nil)
        let encoded = try encoder.encode(.json(fields: ["\u{E9}": 1, "e\u{301}": 2]))
        #expect(try bytes(of: encoded.body) == Data("{\"\u{E9}\":1,\"e\u{301}\":2}".utf8))
    }

    private struct Broken: Encodable { var secret = Double.nan }

    @Test func `an encoding fault names the place of the value and not the value`() throws {
        let error = #expect(throws: RouteFault.self) { try encoder.encode(.json(Broken())) }
        #expect(error?.code == .notEncodable && error?.message.contains("secret") == true)
        // The keys of a dictionary are content.
        let named = #expect(throws: RouteFault.self) { try encoder.encode(.json(["hush": Broken()])) }
        #expect(named?.message.contains("….secret cannot") == true && named?.message.contains("hush") == false)
        #expect(try bytes(of: try encoder.encode(.json(["a": 1])).body) == Data(#"{"a":1}"#.utf8))
    }

    private func withFile<Result>(_ content: Data, _ body: (URL) throws -> Result) throws -> Result {
        let url = temporaryURL("bin")
        try content.write(to: url)
        defer { #expect(throws: Never.self) { try FileManager.default.removeItem(at: url) } }
        return try body(url)
    }

    private func stream(_ body: RouteBody) throws -> HTTPBodyStream {
        guard case .stream(let stream) = try encoder.encode(body).body else { throw CocoaError(.featureUnsupported) }
        return stream
    }

    @Test(arguments: [0, 1, 6, 7, 8, 100_000])
    func `a file is streamed, directly or by a symbolic link, and can be streamed again`(size: Int) throws {
        let content = Data((0..<size).map { UInt8(truncatingIfNeeded: $0) })
        try withFile(content) { url in
            let stream = try stream(.file(url))
            #expect(stream.length == Int64(size) && stream.isReplayable)
            #expect(try bytes(of: .stream(stream)) == content)
            #expect(try bytes(of: .stream(stream), upTo: 65_536) == content)
            let link = url.appendingPathExtension("link")
            try FileManager.default.createSymbolicLink(at: link, withDestinationURL: url)
            defer { #expect(throws: Never.self) { try FileManager.default.removeItem(at: link) } }
            #expect(try bytes(of: .stream(self.stream(.file(link)))) == content)
        }
    }

    private func changeSize(of url: URL, to size: Int) throws {
        let handle = try FileHandle(forWritingTo: url)
        try handle.truncate(atOffset: UInt64(size))
        try handle.close()
    }

    @Test func `a file that shrinks while it is sent is an error`() throws {
        try withFile(Data(count: 10)) { url in
            let read = try stream(.file(url)).open()
            #expect(try read(4)?.count == 4)
            try changeSize(of: url, to: 5)
            let error = #expect(throws: RouteFault.self) { while try read(4) != nil {} }
            #expect(error?.code == .changedFile)
        }
    }

    @Test(arguments: [(1, false), (4, false), (100, false), (100, true)])
    func `H18: a file that grows while it is sent, or before its turn in a form, is sent up to the announced length, and not again`(
        upTo count: Int, isForm: Bool
    ) throws {
        let content = Data((0..<10).map { UInt8($0) })
        try withFile(content) { url in
            let stream = try stream(isForm ? .multipart([.text("a", "1"), .file("f", at: url, fileName: "f.bin")]) : .file(url))
            let whole = try bytes(of: .stream(stream))
            #expect(isForm || whole == content)
            let read = try stream.open()
            try changeSize(of: url, to: 15)
            var sent = Data()
            while let data = try read(count) { sent += data }
            #expect(sent == whole)
            // A change before the first byte is refused.
            let error = #expect(throws: RouteFault.self) { try stream.open() }
            #expect(error?.code == .changedFile)
        }
    }

    @Test func `a missing file or a directory is a fault before anything is sent`() {
        #expect(code(.file(URL(filePath: "/nowhere/at/all"))) == .unreadableFile)
        #expect(code(.file(FileManager.default.temporaryDirectory)) == .unreadableFile)
        #expect(code(.file(URL(string: "https://h/x")!)) == .unreadableFile)
        #expect(code(.multipart([.file("f", at: URL(filePath: "/nowhere"))])) == .unreadableFile)
    }

    @Test(.enabled(if: FileManager.default.isWritableFile(atPath: "/dev/shm"), "other file systems have no files of this size"))
    func `a form that is longer than any number is a fault before anything is sent`() throws {
        let url = URL(filePath: "/dev/shm/\(UUID().uuidString)")
        try Data().write(to: url)
        defer { #expect(throws: Never.self) { try FileManager.default.removeItem(at: url) } }
        try changeSize(of: url, to: 1 << 62)
        #expect(code(.multipart([.file("a", at: url), .file("b", at: url)])) == .notEncodable)
    }

    private func text(_ form: MultipartForm) throws -> String {
        let encoded = try form.encoded(style: ParameterStyle(), boundary: "B")
        #expect(encoded.type?.rawValue == "multipart/form-data; boundary=B")
        return String(decoding: try #require(try bytes(of: encoded.body)), as: UTF8.self)
    }

    @Test func `a multipart form has the format of RFC 7578`() throws {
        let none: String? = nil
        let form: MultipartForm = [
            .text("title", "Ünï"), .text("none", none), .text("n", [1, 2]),
            .data("photo", Data("JPEG".utf8), fileName: "a.jpg", type: MimeType(rawValue: "image/jpeg")),
        ]
        #expect(
            try text(form) == """
                --B\r\nContent-Disposition: form-data; name="title"\r\n\r\nÜnï\r\n\
                --B\r\nContent-Disposition: form-data; name="n"\r\n\r\n1\r\n\
                --B\r\nContent-Disposition: form-data; name="n"\r\n\r\n2\r\n\
                --B\r\nContent-Disposition: form-data; name="photo"; filename="a.jpg"\r\nContent-Type: image/jpeg\r\n\r\nJPEG\r\n\
                --B--\r\n
                """)
        #expect(try text([]) == "--B--\r\n")
    }

    @Test(arguments: [
        ("a\"b", "a%22b"), ("a\r\nX: y", "a%0D%0AX: y"), ("a\nb", "a%0Ab"), ("日本.txt", "日本.txt"), ("a;b\\c", "a;b\\c"), ("%22", "%22"),
        ("", ""),
    ])
    func `names are escaped as the HTML standard requires`(name: String, escaped: String) throws {
        #expect(try text([.data(name, Data(), fileName: name)]).contains("form-data; name=\"\(escaped)\"; filename=\"\(escaped)\"\r\n"))
    }

    @Test(arguments: ["\u{0}", "a\u{1}", "\u{7F}", "a\tb"])
    func `a name with another control character is refused`(name: String) {
        #expect(code(.multipart([.text(name, "x")])) == .forbiddenCharacter)
        #expect(code(.multipart([.data("x", Data(), fileName: name)])) == .forbiddenCharacter)
    }

    @Test(arguments: [1, 7, 64, 1 << 20])
    func `a part from disk is streamed with a known length`(chunk: Int) throws {
        let content = Data((0..<5000).map { UInt8(truncatingIfNeeded: $0 &* 7) })
        try withFile(content) { url in
            let form: MultipartForm = [.text("a", "1"), .file("f", at: url, fileName: "f.bin"), .file("g", at: url), .text("z", "9")]
            let encoded = try form.encoded(style: ParameterStyle(), boundary: "B")
            guard case .stream(let stream) = encoded.body else { throw CocoaError(.featureUnsupported) }
            let sent = try #require(try bytes(of: encoded.body, upTo: chunk))
            #expect(stream.length == Int64(sent.count) && stream.isReplayable)
            var inMemory = form
            inMemory.parts[1] = .data("f", content, fileName: "f.bin", type: .octetStream)
            inMemory.parts[2] = .data("g", content, fileName: url.lastPathComponent, type: .octetStream)
            #expect(try bytes(of: inMemory.encoded(style: ParameterStyle(), boundary: "B").body) == sent)
        }
    }

    @Test func `each boundary is new and random`() throws {
        let form: MultipartForm = [.text("a", "1")]
        let boundaries = try (0..<50).compactMap { _ in try form.encoded(style: ParameterStyle()).type?["boundary"] }
        #expect(Set(boundaries).count == 50)
        #expect(boundaries.allSatisfy { $0.utf8.count == 32 && $0.isToken })
    }
}

struct RequestTests {
    private let url = URL(string: "https://ada:secret@api.example.com/users/7?token=secret")!

    @Test func `a change of a copied request leaves the original unchanged`() throws {
        let original = HTTPRequest(url: url)
        var copy = original
        copy.method = .put
        copy.url = URL(string: "https://api.example.com/other")!
        try copy.fields.append("Accept", "text/plain")
        copy.body = .data(Data("x".utf8))

        #expect(original.method == .get && original.url == url && original.fields.fields.isEmpty)
        #expect(original.body.length == 0 && copy.method == .put && copy.url.path() == "/other")
        #expect(copy.fields["Accept"] == "text/plain" && copy.body.length == 1)
    }

    @Test func `a request is described by its method and address, without secrets`() {
        let request = HTTPRequest(method: .delete, url: url)
        #expect("\(request)" == "DELETE https://…/users/7")
    }
}
