#if os(Linux)
import Foundation
import LoopbackOrigin
import RemoteHTTP
import StoreCore
import Testing

@testable import RemoteRouting

/// The choice of libcurl, and the fallback without it.
@Suite
struct LibraryTests {
    @Test(.enabled(if: RealTransport.available.contains(.curl), "libcurl is missing: the tests of CurlTransport do not run"))
    func `a host names its transport`() throws {
        let version = try WireLibrary().version
        #expect(version.hasPrefix("libcurl/") == false)
        #expect("\(RemoteHost("a.example").transport)" == "libcurl \(version)")
        #expect("\(URLSessionTransport())" == "URLSession")
    }

    @Test(arguments: [
        (0x074103, true, "libcurl X is older than 7.66", false), (0x074200, true, nil, false),
        (0x074200, false, "libcurl X resolves names without a thread", false),
        (0x074f01, true, nil, false), (0x075000, true, nil, true), (0x075801, false, "libcurl X resolves names without a thread", true),
        (0x081400, true, nil, true), (0, false, "libcurl X is older than 7.66", false),
    ])
    func `a libcurl is chosen by its version and features`(_ version: UInt32, _ hasThreads: Bool, _ problem: String?, _ asks: Bool) {
        let build = WireLibrary.Build(name: "X", version: version, hasThreads: hasThreads)
        #expect(build.problem == problem)
        #expect(build.asksBeforeSending == asks)
    }

    @Test(arguments: ["/nowhere/libcurl.so.4", "/dev/null", "libc.so.6"])
    func `an invalid libcurl is refused with the reason`(_ path: String) {
        #expect {
            try CurlTransport(width: 4, path: path)
        } throws: { error in
            guard let failure = error as? TransportFailure else { return false }
            return failure.code == .unsupported && failure.message == "\(path) cannot be loaded; install libcurl 7.66 or newer"
        }
    }

    @Test func `W1: a host without libcurl names URLSession and the reason`() {
        let transport = SystemTransport.make(libcurl: "/nowhere/libcurl.so.4")
        #expect("\(RemoteHost("a.example", transport: transport).transport)" == "URLSession (/nowhere/libcurl.so.4 cannot be loaded)")
    }

    @Test(.enabled(if: RealTransport.available.contains(.curl), "libcurl is missing"))
    func `two libcurls serve one process`() async throws {
        let origin = try LoopbackOrigin { .text($0.path) }
        let system = RemoteHost(HostConfiguration("127.0.0.1", scheme: .http, port: Int(origin.port))).with { $0.timeouts = .untilHang }
        let other = try RealTransport.curl.host(origin.port)
        let session = try RealTransport.urlSession.host(origin.port)
        for _ in 0..<20 {
            for host in [system, other, session] { #expect(try await host.data(for: Route(path: "/x")) == Data("/x".utf8)) }
        }
    }

    @Test(.enabled(if: RealTransport.available.contains(.curl), "libcurl is missing"))
    func `failures to connect are distinguished`() async throws {
        let port = try ClosedPort()
        defer { withExtendedLifetime(port) {} }
        let host = try RealTransport.curl.host(.init(port.number)) { $0.retry = .never }
        #expect(try await remoteError { try await host.send("/x") }.code == .connectionRefused)
        let unknown = host.with { $0.configuration = HostConfiguration("nowhere.invalid", scheme: .http) }
        #expect(try await remoteError { try await unknown.send("/x") }.code == .hostNotFound)
        let secured = try LoopbackOrigin { _ in .text("x") }
        let plain = host.with { $0.configuration = HostConfiguration("127.0.0.1", scheme: .https, port: Int(secured.port)) }
        #expect(try await remoteError { try await plain.send("/x") }.code == .tlsFailed)
    }
}
#endif
