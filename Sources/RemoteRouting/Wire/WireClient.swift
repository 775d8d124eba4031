#if os(Linux)
internal import Foundation
internal import StoreCore

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// A library with an engine that is replaced in a forked process.
package final class WireClient: Sendable {
    /// The library and its version.
    package var name: String { "libcurl \(library.version)" }

    /// What the library says about itself.
    package var build: WireLibrary.Build { library.build }

    private let library: WireLibrary
    private let width: Int
    private let connections: Int
    /// Guards which engine is used: a forked process has none of its own until its first request.
    private let engine: Lock<WireEngine>

    /// Finds or loads libcurl and starts an engine.
    ///
    /// - Parameters:
    ///   - path: A file to load instead of the system's libcurl.
    ///   - width: How many exchanges run at once; further ones wait in order.
    ///   - connections: How many connections are held at once, those of paused exchanges included; `nil` for as many as `width`.
    /// - Throws: `WireLibrary.Missing` if libcurl cannot be used; `WireFailure` if no descriptor is left.
    package init(path: String? = nil, width: Int, connections: Int? = nil) throws {
        // `URLSession` initializes libcurl as well, which before 7.84 must not happen while another thread does.
        if !WireLibrary.isInitializationThreadSafe { URLSession(configuration: .ephemeral).invalidateAndCancel() }
        library = try WireLibrary(path: path)
        self.width = width
        self.connections = connections ?? width
        engine = Lock(try WireEngine(library, width: width, connections: self.connections))
    }

    /// How many exchanges are in flight; for tests.
    package var exchangeCount: Int { engine.withLock(\.count) }

    /// The engine of this process.
    ///
    /// - Throws: `WireFailure` if a forked process needs a new engine and has no descriptor left.
    package func usableEngine() throws(WireFailure) -> WireEngine {
        try engine.withLock { engine throws(WireFailure) in
            // The thread of the old engine is not part of a forked process.
            if !engine.isUsable { engine = try WireEngine(library, width: width, connections: connections) }
            return engine
        }
    }
}
#endif
