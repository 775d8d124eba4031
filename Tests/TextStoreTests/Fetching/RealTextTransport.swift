import Foundation
import RemoteHTTP
import StoreCore
import Testing
import Trials

@testable import TextStore

/// A transport that uses the network; the tests of fetching run over each one.
enum RealTextTransport: String, Sendable, CustomTestStringConvertible {
    case urlSession, curl

    var testDescription: String { rawValue }

    /// The transports that this system supports.
    static let available: [RealTextTransport] = (try? RealTextTransport.curl.made()) == nil ? [.urlSession] : [.urlSession, .curl]

    private static let session = URLSessionTransport()
    private static let libcurl = Result { try RealTextTransport.curl.made() }

    /// Makes the transport; `STOREHOUSE_CURL` names another libcurl to load.
    private func made() throws -> any Transport {
        #if os(Linux)
        if self == .curl { return try CurlTransport(width: 256, path: ProcessInfo.processInfo.environment["STOREHOUSE_CURL"]) }
        #endif
        guard self == .urlSession else { throw CocoaError(.featureUnsupported) }
        return RealTextTransport.session
    }

    func fetcher(deadline: Duration = hangLimit, time: some TimeSource = .system) throws -> HTTPTextFetcher {
        let transport = self == .urlSession ? RealTextTransport.session : try RealTextTransport.libcurl.get()
        return HTTPTextFetcher(deadline: deadline, time: time) { transport }
    }
}
