import Foundation
import LoopbackOrigin
import Testing
import Trials

@testable import RemoteRouting

/// International host names, and names that end with a dot.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct InternationalNameTests {
    @Test(arguments: [
        ("b\u{FC}cher.example", "xn--bcher-kva.example"), ("BU\u{308}CHER.example", "xn--bcher-kva.example"),
        ("fa\u{DF}.example", "xn--fa-hia.example"), ("\u{65E5}\u{672C}.example", "xn--wgv71a.example"),
        ("b\u{FC}cher\u{3002}example", "xn--bcher-kva.example"), ("XN--BCHER-KVA.example", "xn--bcher-kva.example"),
        ("\u{FF45}x.example", "ex.example"),
    ])
    func `H21: an international name is converted to its ASCII form`(name: String, expected: String) throws {
        #expect(try WebOrigin(scheme: .https, host: name).host == expected)
        #expect(try HostConfiguration("\(name):8443").origin().description == "https://\(expected):8443")
        #expect(try HostConfiguration("https://\(name)/v1").origin().host == expected)
        let url = try #require(URL(string: "https://\(name)/x"))
        #expect(try HostConfiguration(url: url).origin().host == expected)
        #expect(WebOrigin(of: url)?.host == expected)
    }

    @Test(arguments: [
        "a\u{2100}b.example", "\u{200D}a.example", "-\u{FC}.example", "b\u{FC} cher.example", "b\u{FC}%2Fcher.example", "\u{FC}@b.example",
        "\u{FC}/b", "\u{FC}\\b", "[\u{FC}]", "\u{FC}..example", "\u{FF0F}.example",
    ])
    func `H21: a name without an ASCII form is refused`(name: String) {
        let fault = #expect(throws: RouteFault.self) { try WebOrigin(scheme: .https, host: name) }
        #expect(fault?.code == .invalidOrigin)
    }

    @Test(arguments: ["localhost.", "LOCALHOST.", "a.localhost.", "localhost", "127.0.0.1"])
    func `H5: a name of this machine may end with a dot`(name: String) throws {
        #expect(try WebOrigin(scheme: .http, host: name).isLoopback)
    }

    @Test(arguments: ["localhost..", "localhost.example.", "notlocalhost.", "127.0.0.1.example"])
    func `H5: another name is not this machine`(name: String) throws {
        #expect((try? WebOrigin(scheme: .http, host: name).isLoopback) != true)
    }

    @Test(arguments: RealTransport.available)
    func `H5: credentials go to localhost. without encryption`(_ transport: RealTransport) async throws {
        let origin = try LoopbackOrigin { .text($0.headers["Authorization"] ?? "none") }
        let host = RemoteHost(
            HostConfiguration("localhost.", scheme: .http, port: Int(origin.port)), transport: try transport.make()
        ).with { $0.timeouts = .untilHang }.authorized(by: .bearer("secret"))
        #expect(try await host.data(for: Route(path: "/x")) == Data("Bearer secret".utf8))
    }

    @Test(arguments: ["http://a.example:99999999999999999999/x", "http://a.example:65536/x", "http://a.example:0/x"])
    func `H2: an address with an impossible port has no origin`(text: String) throws {
        #expect(WebOrigin(of: try #require(URL(string: text))) == nil)
    }
}
