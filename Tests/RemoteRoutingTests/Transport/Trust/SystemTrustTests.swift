import Foundation
import RemoteRouting
import StoreCore
import Testing
import Trials

/// Pins and own authorities on the transport that applies them on each system, against OpenSSL's own server.
@Suite(.enabled(if: TestCertificates.problem == nil, "\(TestCertificates.problem ?? "")"), .timeLimit(.minutes(hangMinutes)))
struct SystemTrustTests {
    /// The transport that applies TLS options on this system.
    private static var transport: any Transport {
        get throws {
            #if os(Linux)
            try RealTransport.curl.make()
            #else
            try RealTransport.urlSession.make()
            #endif
        }
    }

    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.made.get() }

    private func body(of server: OpenSSLServer, _ change: (inout TLSOptions) throws -> Void) async throws -> Data {
        var tls = TLSOptions()
        tls.authorities = try TLSOptions.Authorities(contentsOf: certificates.authority)
        try change(&tls)
        let transport = try Self.transport
        let host = RemoteHost(HostConfiguration("127.0.0.1", port: server.port), transport: transport).with {
            $0.tls = tls
            // The server may still be starting.
            $0.retry = RetryPolicy(attempts: .max, base: .milliseconds(10), multiplier: 1)
            $0.timeouts = .untilHang
        }
        return try await host.data(for: Route(path: "/page"))
    }

    @Test func `W8: an own authority is trusted, and no other`() async throws {
        let server = try OpenSSLServer(certificates.certificate(.good), key: certificates.key(.good))
        #expect(try await body(of: server) { _ in } == OpenSSLServer.body)
        let error = try await remoteError {
            _ = try await body(of: server) { $0.authorities = try TLSOptions.Authorities(contentsOf: certificates.otherAuthority) }
        }
        #expect(error.code == .certificateUntrusted && !error.mayHaveArrived)
        // Without an own authority, the system's are trusted.
        #expect(try await remoteError { _ = try await body(of: server) { $0.authorities = nil } }.code == .certificateUntrusted)
    }

    @Test func `W8: a pinned key is accepted, and another is refused`() async throws {
        let server = try OpenSSLServer(certificates.certificate(.good), key: certificates.key(.good))
        let (right, wrong) = (try certificates.pin(.good), try certificates.pin(.rotated))
        #expect(try await body(of: server) { $0.pins = [wrong, right] } == OpenSSLServer.body)
        let error = try await remoteError { _ = try await body(of: server) { $0.pins = [wrong] } }
        #expect(error.code == .pinMismatch && !error.mayHaveArrived)
    }

    @Test(arguments: [(TestCertificates.Name.misnamed, RemoteError.Code.certificateNameMismatch), (.selfSigned, .certificateUntrusted)])
    func `W8: a pin does not replace a valid certificate of an own authority`(
        _ name: TestCertificates.Name, _ code: RemoteError.Code
    ) async throws {
        let server = try OpenSSLServer(certificates.certificate(name), key: certificates.key(name))
        let pins = name == .selfSigned ? [try certificates.pin(name)] : []
        #expect(try await remoteError { _ = try await body(of: server) { $0.pins = Set(pins) } }.code == code)
    }
}

/// OpenSSL's server for TLS with one file, which runs on every system.
private final class OpenSSLServer {
    static let body = Data("hello".utf8)

    let port: Int
    private let folder = temporaryURL()
    private let process: ChildProcess
    #if os(Linux)
    /// The port, which stays reserved until the server is released.
    private let reserved: ClosedPort
    #endif

    init(_ certificate: URL, key: URL) throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let response = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"
        try Data(response.utf8).write(to: folder.appending(path: "page"))
        #if os(Linux)
        reserved = try ClosedPort()
        port = reserved.number
        #else
        // There, a port that is reserved would get the connections instead of a server that listens on all addresses.
        port = try ClosedPort().number
        #endif
        // Without a path, the server reads files of its working directory.
        process = try ChildProcess(
            "/bin/sh",
            [
                "-c", #"cd "$1" && exec openssl s_server -accept "$2" -cert "$3" -key "$4" -HTTP -quiet >/dev/null 2>&1"#, "sh",
                folder.path,
                "\(port)", certificate.path, key.path,
            ])
    }

    deinit {
        process.kill()
        // The folder is in the system's folder for temporary files.
        try? FileManager.default.removeItem(at: folder)
    }
}
