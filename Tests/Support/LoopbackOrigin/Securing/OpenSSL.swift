#if os(Linux)
import Glibc

/// The functions of libssl that a server needs, found at run time, so that nothing has to be installed to build the tests.
struct OpenSSL: Sendable {
    /// A context or a connection.
    typealias Object = OpaquePointer?
    typealias Path = UnsafePointer<CChar>

    /// libssl's functions; `nil` where the system has no libssl.
    static let shared = library.map { _ in OpenSSL() }

    let makeContext: @convention(c) @Sendable (Object) -> Object = Self.find("SSL_CTX_new")
    let freeContext: @convention(c) @Sendable (Object) -> Void = Self.find("SSL_CTX_free")
    let useChain: @convention(c) @Sendable (Object, Path) -> Int32 = Self.find("SSL_CTX_use_certificate_chain_file")
    let useKey: @convention(c) @Sendable (Object, Path, Int32) -> Int32 = Self.find("SSL_CTX_use_PrivateKey_file")
    let useAuthorities: @convention(c) @Sendable (Object, Path?, Path?) -> Int32 = Self.find("SSL_CTX_load_verify_locations")
    let setVerification: @convention(c) @Sendable (Object, Int32, UnsafeRawPointer?) -> Void = Self.find("SSL_CTX_set_verify")
    let setSessionContext: @convention(c) @Sendable (Object, Path, UInt32) -> Int32 = Self.find("SSL_CTX_set_session_id_context")
    let control: @convention(c) @Sendable (Object, Int32, Int, UnsafeMutableRawPointer?) -> Int = Self.find("SSL_CTX_ctrl")
    let makeConnection: @convention(c) @Sendable (Object) -> Object = Self.find("SSL_new")
    let freeConnection: @convention(c) @Sendable (Object) -> Void = Self.find("SSL_free")
    let setDescriptor: @convention(c) @Sendable (Object, Int32) -> Int32 = Self.find("SSL_set_fd")
    let accept: @convention(c) @Sendable (Object) -> Int32 = Self.find("SSL_accept")
    let read: @convention(c) @Sendable (Object, UnsafeMutableRawPointer?, Int32) -> Int32 = Self.find("SSL_read")
    let write: @convention(c) @Sendable (Object, UnsafeRawPointer?, Int32) -> Int32 = Self.find("SSL_write")
    let pending: @convention(c) @Sendable (Object) -> Int32 = Self.find("SSL_pending")
    let error: @convention(c) @Sendable (Object, Int32) -> Int32 = Self.find("SSL_get_error")
    let isResumed: @convention(c) @Sendable (Object) -> Int32 = Self.find("SSL_session_reused")
    let end: @convention(c) @Sendable (Object) -> Int32 = Self.find("SSL_shutdown")
    private let serverMethod: @convention(c) @Sendable () -> Object = Self.find("TLS_server_method")

    /// A context for servers.
    func makeServerContext() -> Object { makeContext(serverMethod()) }

    /// The library, which stays loaded.
    private static var library: UnsafeMutableRawPointer? { dlopen("libssl.so.3", RTLD_NOW) ?? dlopen("libssl.so.1.1", RTLD_NOW) }

    /// Returns a function that both versions of the library have.
    private static func find<Function>(_ name: String) -> Function {
        guard let symbol = dlsym(library, name) else { preconditionFailure("libssl has no function \(name)") }
        return unsafeBitCast(symbol, to: Function.self)
    }
}
#endif
