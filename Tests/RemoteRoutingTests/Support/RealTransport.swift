import Foundation
import RemoteRouting
import Testing
import Wire

/// A transport that uses the network; the tests of behavior run over each.
enum RealTransport: String, Sendable, CustomTestStringConvertible {
    case urlSession, curl

    var testDescription: String { rawValue }

    /// The ones that this system has. Where libcurl is missing, `CurlLibraryTests` says so.
    static let available: [RealTransport] = curlProblem == nil ? [.urlSession, .curl] : [.urlSession]

    /// Why there is no transport on libcurl; `nil` where there is one.
    static let curlProblem: String? = {
        do {
            _ = try RealTransport.curl.make()
            return nil
        } catch {
            return "\(error)"
        }
    }()

    /// Makes a transport; `STOREHOUSE_CURL` names another libcurl to load.
    func make() throws -> any CountedTransport {
        switch self {
        case .urlSession: return URLSessionTransport()
        case .curl:
            #if os(Linux)
            return try CurlTransport(width: 256, path: ProcessInfo.processInfo.environment["STOREHOUSE_CURL"])
            #else
            throw TransportFailure(.unsupported, "libcurl is used on Linux only")
            #endif
        }
    }

    /// A host on a port of this machine.
    func host(_ port: UInt16, _ change: (inout RemoteHost) -> Void = { _ in }) throws -> RemoteHost {
        RemoteHost(HostConfiguration("127.0.0.1", scheme: .http, port: Int(port)), transport: try make()).with(change)
    }
}

/// A transport that says how many exchanges are in flight.
protocol CountedTransport: Transport {
    var exchangeCount: Int { get }
}

extension URLSessionTransport: CountedTransport {}
#if os(Linux)
extension CurlTransport: CountedTransport {}
#endif

extension RealTransport {
    /// The same among the kinds that a bench has.
    var kind: TransportKind { self == .curl ? .curl : .session }
}
