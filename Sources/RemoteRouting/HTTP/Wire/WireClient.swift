#if os(Linux)
internal import Foundation
internal import StoreCore

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// A libcurl and its engine, which is replaced in a forked process.
package final class WireClient: Sendable {
    package var name: String { "libcurl \(library.version)" }

    package var build: WireLibrary.Build { library.build }

    private let library: WireLibrary
    private let width: Int
    private let connections: Int
    /// Guards the engine; a forked process creates its own for its first request.
    private let engine: Lock<WireEngine>

    /// Finds or loads libcurl and starts an engine.
    ///
    /// - Parameters:
    ///   - path: A file to load instead of the system's libcurl.
    ///   - width: The maximum number of concurrent exchanges; further ones wait in order.
    ///   - connections: The maximum number of connections, including those of paused exchanges; `nil` for `width`.
    /// - Throws: `WireLibrary.Missing` if libcurl cannot be used; `TransportFailure` if no file descriptor is left.
    package init(path: String? = nil, width: Int, connections: Int? = nil) throws {
        // `URLSession` also initializes libcurl, which is not thread-safe before 7.84. This session forces it to do so first.
        if !WireLibrary.isInitializationThreadSafe { URLSession(configuration: .ephemeral).invalidateAndCancel() }
        library = try WireLibrary(path: path)
        self.width = width
        self.connections = connections ?? width
        engine = Lock(try WireEngine(library, width: width, connections: self.connections))
    }

    /// The number of exchanges in flight, for tests.
    package var exchangeCount: Int { engine.withLock(\.count) }

    /// The engine of this process.
    ///
    /// - Throws: `TransportFailure` if a forked process needs a new engine and has no file descriptor left.
    package func usableEngine() throws(TransportFailure) -> WireEngine {
        try engine.withLock { engine throws(TransportFailure) in
            // The thread of the old engine is not part of a forked process.
            if !engine.isUsable { engine = try WireEngine(library, width: width, connections: connections) }
            return engine
        }
    }
}
#endif
