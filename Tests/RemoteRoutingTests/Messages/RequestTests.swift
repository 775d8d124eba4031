import Foundation
import Testing

@testable import RemoteRouting

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
