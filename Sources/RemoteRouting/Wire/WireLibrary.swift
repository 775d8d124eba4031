#if os(Linux)
internal import CurlShim
internal import Foundation

/// A libcurl that was found or loaded, and what it can do.
package struct WireLibrary: Sendable {
    /// Why no engine can be made.
    package struct Missing: Error, Sendable, CustomStringConvertible {
        package let description: String
    }

    /// The oldest version that is used: 7.66 refuses HTTP/0.9 by default.
    package static let oldestVersion: UInt32 = 0x074200

    /// The shim's number of the library.
    let number: Int32
    /// A file of certificates; `nil` where the library's own is there.
    let certificates: String?

    /// The version as text.
    package var version: String { String(cString: wire_library_name(number)) }
    /// Whether libcurl asks before it sends (7.80), which keeps an unsafe request from being sent twice on a reused connection.
    package var asksBeforeSending: Bool { wire_library_version(number) >= 0x075000 }

    /// Finds the process's libcurl or loads the system's.
    ///
    /// - Parameter path: A file to load instead.
    /// - Throws: ``Missing`` with the reason.
    package init(path: String? = nil) throws(Missing) {
        number = path.map { wire_library_open($0) } ?? wire_library_default()
        guard number >= 0 else { throw Missing(description: "\(path ?? "libcurl.so.4") cannot be loaded") }
        let version = String(cString: wire_library_name(number))
        guard wire_library_version(number) >= WireLibrary.oldestVersion else {
            throw Missing(description: "libcurl \(version) is older than 7.66")
        }
        guard wire_library_has_threads(number) != 0 else {
            throw Missing(description: "libcurl \(version) looks names up without a thread")
        }
        guard wire_library_initialize(number) == 0 else { throw Missing(description: "libcurl \(version) cannot be initialized") }
        certificates = WireLibrary.certificates(for: number)
    }

    /// Whether `curl_global_init` may run while other threads use libcurl (7.84).
    package static var isInitializationThreadSafe: Bool {
        let number = wire_library_default()
        return number < 0 || wire_library_is_thread_safe(number) != 0
    }

    /// The system's certificates where the library's build names a file that is not there, as that of a wheel or a static build may.
    private static func certificates(for number: Int32) -> String? {
        if let path = wire_library_certificates(number), FileManager.default.fileExists(atPath: String(cString: path)) { return nil }
        return knownCertificates.first { FileManager.default.fileExists(atPath: $0) }
    }

    private static let knownCertificates = [
        "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/pki/tls/cacert.pem",
        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem",
    ]
}
#endif
