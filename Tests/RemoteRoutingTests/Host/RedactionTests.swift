import Foundation
import Testing

@testable import RemoteRouting

/// The redaction of addresses.
struct RedactionTests {
    private let redaction = Redaction(fields: ["x-session"], queryNames: ["token", "password"])

    @Test(arguments: [
        "https://h/x?token=hush", "https://h/x?user[password]=hush", "https://h/x?user%5Bpassword%5D=hush", "https://h/x?token[]=hush",
        "https://h/x?token%5B0%5D=hush", "https://h/x?a=1&TOKEN=hush", "https://h/x?%74oken=hush", "https://u:hush@h/", "/x#hush",
        "?token=hush&a=1", "https://h/x?token=\u{301}hush", "https://h/x?a=1&\u{301}b=2&token=hush",
    ])
    func `H12: the secrets of an address are redacted`(address: String) {
        #expect(!redaction.text(of: address).contains("hush"))
    }

    @Test(arguments: [
        "<https://h/x?page=2>; rel=\"next\", <https://h/x?token=hush&page=1>; rel=\"prev\"", "<https://u:hush@h/>; rel=next",
        "</x>; rel=a, </y?token=hush>; rel=b", "</x?a=1>, <https://u:hush@h/>", "</x?a=1>, </y#hush>",
    ])
    func `H12: the secrets of each link are redacted`(field: String) {
        let text = redaction.value(of: HTTPFields.Field(name: "Link", value: field))
        #expect(!text.contains("hush"))
        #expect(text.filter { $0 == "<" || $0 == ">" }.count >= field.filter { $0 == "<" || $0 == ">" }.count)
    }

    @Test(arguments: [
        ("Refresh", "5; url=https://h/x?token=hush"), ("Refresh", "0;URL='/x?a=1&token=hush'"), ("Refresh", "1; url=/x#hush"),
        ("Destination", "https://u:hush@h/x"), ("Content-Location", "/x?token=hush"), ("Referer", "https://h/?token=hush"),
    ])
    func `H12: the secrets of other fields with addresses are redacted`(name: String, value: String) {
        #expect(!redaction.value(of: HTTPFields.Field(name: name, value: value)).contains("hush"))
        #expect(redaction.value(of: HTTPFields.Field(name: "Refresh", value: "5; url=/x?a=1")) == "5; url=/x?a=1")
    }

    @Test func `H12: other values stay unchanged`() {
        let field = HTTPFields.Field(name: "Link", value: "<https://h/x?page=2>; rel=\"next\", </y>; rel=\"prev\"")
        #expect(redaction.value(of: field) == field.value)
        #expect(redaction.text(of: "https://h/x?user[name]=a&page=2") == "https://h/x?user[name]=a&page=2")
    }
}
