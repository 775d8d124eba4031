#if os(Linux)
internal import CurlShim

/// A libcurl that was found or loaded, with its capabilities.
package struct WireLibrary: Sendable {
    package struct Missing: Error, Sendable, CustomStringConvertible {
        package let description: String
    }

    package struct Build: Hashable, Sendable {
        /// The version as text, such as `7.88.1`.
        package var name: String
        /// The version as a number: `0x075801` is 7.88.1.
        package var version: UInt32
        /// The TLS library, such as `OpenSSL/3.0.17`; empty without one.
        package var tls = ""
        /// Whether names are resolved on threads; otherwise a lookup would block the loop.
        package var hasThreads: Bool
        package var hasHTTP2 = false

        /// Whether libcurl asks before sending, which prevents an unsafe request from being sent twice on a reused connection.
        package var asksBeforeSending: Bool { version >= UInt32(WIRE_ASKS_BEFORE_SENDING) }

        /// Whether HTTP/2 is built in and tested here, and its messages or reads show the end of a body.
        var hasTestedHTTP2: Bool {
            hasHTTP2 && version >= UInt32(WIRE_HAS_TESTED_HTTP2)
                && (version < UInt32(WIRE_READS_AHEAD) || version >= UInt32(WIRE_TRACES_FRAMES))
        }

        /// Returns whether the library may offer HTTP/2 for a request to an origin; without TLS, HTTP/2 is not offered.
        func mayOfferHTTP2(isSecure: Bool, isStream: Bool, _ known: KnownProtocols.Support? = nil) -> Bool {
            switch known {
            case .brokenHTTP2, .flood: false
            case .onlyHTTP2: hasTestedHTTP2 && isSecure
            // libcurl would buffer a whole window of a paused stream, which may also block other streams.
            case .http1, nil: hasTestedHTTP2 && isSecure && !isStream
            }
        }

        /// The reason why the library cannot be used; `nil` if it can.
        package var problem: String? {
            if version < UInt32(WIRE_OLDEST_VERSION) { return "libcurl \(name) is older than 7.66" }
            if !hasThreads { return "libcurl \(name) resolves names without a thread" }
            return nil
        }
    }

    /// The shim's number for the library.
    let number: Int32
    package let build: Build

    package var version: String { build.name }

    /// Finds the process's libcurl, or loads the system's or the file at a path.
    package init(path: String? = nil) throws(Missing) {
        number = path.map { wire_library_open($0) } ?? wire_library_default()
        guard number >= 0 else { throw Missing(description: "\(path ?? "libcurl.so.4") cannot be loaded") }
        build = Build(
            name: String(cString: wire_library_name(number)), version: wire_library_version(number),
            tls: wire_library_tls(number).map { String(cString: $0) } ?? "", hasThreads: wire_library_has_threads(number) != 0,
            hasHTTP2: wire_library_has_http2(number) != 0)
        if let problem = build.problem { throw Missing(description: problem) }
        guard wire_library_initialize(number) == 0 else { throw Missing(description: "libcurl \(build.name) cannot be initialized") }
    }

    /// Whether `curl_global_init` may run while other threads use libcurl (since 7.84).
    static var isInitializationThreadSafe: Bool {
        let number = wire_library_default()
        return number < 0 || wire_library_is_thread_safe(number) != 0
    }
}
#endif
