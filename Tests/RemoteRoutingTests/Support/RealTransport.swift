import Foundation
import LoopbackOrigin
import RemoteHTTP
import RemoteRouting
import RemoteRoutingTesting
import StoreCore
import Testing
import Trials

/// A transport that uses the network.
enum RealTransport: String, Sendable, CustomTestStringConvertible {
    case urlSession, curl

    var testDescription: String { rawValue }

    /// The transports that this system supports. `LibraryTests` reports a missing libcurl as a skipped test.
    static let available: [RealTransport] = curlProblem == nil ? [.urlSession, .curl] : [.urlSession]

    /// The reason that libcurl cannot be used; `nil` if it can.
    static let curlProblem: String? = {
        do {
            _ = try RealTransport.curl.make()
            return nil
        } catch {
            return "\(error)"
        }
    }()

    /// Whether the libcurl is one of version 7, which differs in its HTTP/2.
    static let hasLibcurl7 = (try? RealTransport.curl.make()).map { "\($0)".hasPrefix("libcurl 7.") } ?? false

    /// The number of descriptors that this process may open; both ends of many connections are in it.
    private static let descriptorLimit = LoopbackOrigin.allowOpenDescriptors(20_000)

    /// Creates a transport; the variable `STOREHOUSE_CURL` selects another libcurl.
    func make() throws -> any CountedTransport {
        _ = RealTransport.descriptorLimit
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

    /// Creates a host for a port of this machine.
    func host(_ port: UInt16, _ change: (inout RemoteHost) -> Void = { _ in }) throws -> RemoteHost {
        RemoteHost(port, over: try make()).with(change)
    }
}

extension RouteOptions.Timeouts {
    /// Deadlines that only a hang reaches.
    static let untilHang = RouteOptions.Timeouts(head: hangLimit, idle: hangLimit, overall: hangLimit)
}

/// Repeats an operation with a limit of real time that doubles, until a busy machine reaches what is tested within the limit.
///
/// - Parameter operation: Returns whether the limit was long enough.
func withGrowingLimit(_ operation: (_ limit: Duration) async throws -> Bool) async throws {
    var limit = Duration.milliseconds(200)
    while try await !operation(limit) { limit = limit * 2 }
}

extension ExchangeLimits {
    /// Limits of which only a hang reaches the deadlines.
    static let untilHang = ExchangeLimits(head: hangLimit, idle: hangLimit)
}

extension RemoteHost {
    /// Creates a host for a port of this machine, with deadlines that only a hang reaches.
    init(_ port: UInt16, over transport: any Transport) {
        self.init(HostConfiguration("127.0.0.1", scheme: .http, port: Int(port)), transport: transport)
        timeouts = .untilHang
    }

    /// Creates a host without a network, with deadlines that only a hang reaches unless the test controls the time.
    ///
    /// The compiler prefers this initializer for a `MemoryTransport`. On a busy machine, even an exchange without a network may exceed the
    /// usual deadlines, and its retry would be an extra request.
    init(
        _ configuration: HostConfiguration, transport: MemoryTransport, limits: HostLimits = HostLimits(), time: any TimeSource = .system
    ) {
        let transport: any Transport = transport
        self.init(configuration, transport: transport, limits: limits, time: time)
        if time is SystemTime { timeouts = .untilHang }
    }
}

/// A transport that counts its running exchanges.
protocol CountedTransport: Transport {
    var exchangeCount: Int { get }
}

extension URLSessionTransport: CountedTransport {}
#if os(Linux)
extension CurlTransport: CountedTransport {}
#endif

extension RealTransport {
    /// The kind of a bench with this transport.
    var kind: TransportKind { self == .curl ? .curl : .session }
}
