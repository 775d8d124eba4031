#if os(Linux)
import Glibc

/// The functions of libssl that a server needs, found at run time, so that nothing has to be installed to build the tests.
struct OpenSSL: Sendable {
    /// libssl's functions; `nil` where the system has no libssl.
    static let shared = OpenSSL()

    let makeContext: @convention(c) @Sendable (OpaquePointer?) -> OpaquePointer?
    let freeContext: @convention(c) @Sendable (OpaquePointer?) -> Void
    let useChain: @convention(c) @Sendable (OpaquePointer?, UnsafePointer<CChar>) -> Int32
    let useKey: @convention(c) @Sendable (OpaquePointer?, UnsafePointer<CChar>, Int32) -> Int32
    let useAuthorities: @convention(c) @Sendable (OpaquePointer?, UnsafePointer<CChar>?, UnsafePointer<CChar>?) -> Int32
    let setVerification: @convention(c) @Sendable (OpaquePointer?, Int32, UnsafeRawPointer?) -> Void
    let setSessionContext: @convention(c) @Sendable (OpaquePointer?, UnsafePointer<CChar>, UInt32) -> Int32
    let control: @convention(c) @Sendable (OpaquePointer?, Int32, Int, UnsafeMutableRawPointer?) -> Int
    let makeConnection: @convention(c) @Sendable (OpaquePointer?) -> OpaquePointer?
    let freeConnection: @convention(c) @Sendable (OpaquePointer?) -> Void
    let setDescriptor: @convention(c) @Sendable (OpaquePointer?, Int32) -> Int32
    let accept: @convention(c) @Sendable (OpaquePointer?) -> Int32
    let read: @convention(c) @Sendable (OpaquePointer?, UnsafeMutableRawPointer?, Int32) -> Int32
    let write: @convention(c) @Sendable (OpaquePointer?, UnsafeRawPointer?, Int32) -> Int32
    let pending: @convention(c) @Sendable (OpaquePointer?) -> Int32
    let error: @convention(c) @Sendable (OpaquePointer?, Int32) -> Int32
    let isResumed: @convention(c) @Sendable (OpaquePointer?) -> Int32
    let end: @convention(c) @Sendable (OpaquePointer?) -> Int32
    private let serverMethod: @convention(c) @Sendable () -> OpaquePointer?

    /// A context for servers.
    func makeServerContext() -> OpaquePointer? { makeContext(serverMethod()) }

    private init?() {
        guard let handle = dlopen("libssl.so.3", RTLD_NOW) ?? dlopen("libssl.so.1.1", RTLD_NOW) else { return nil }
        func find<Function>(_ name: String) throws(Missing) -> Function {
            guard let symbol = dlsym(handle, name) else { throw Missing() }
            return unsafeBitCast(symbol, to: Function.self)
        }
        do throws(Missing) {
            makeContext = try find("SSL_CTX_new")
            freeContext = try find("SSL_CTX_free")
            useChain = try find("SSL_CTX_use_certificate_chain_file")
            useKey = try find("SSL_CTX_use_PrivateKey_file")
            useAuthorities = try find("SSL_CTX_load_verify_locations")
            setVerification = try find("SSL_CTX_set_verify")
            setSessionContext = try find("SSL_CTX_set_session_id_context")
            control = try find("SSL_CTX_ctrl")
            makeConnection = try find("SSL_new")
            freeConnection = try find("SSL_free")
            setDescriptor = try find("SSL_set_fd")
            accept = try find("SSL_accept")
            read = try find("SSL_read")
            write = try find("SSL_write")
            pending = try find("SSL_pending")
            error = try find("SSL_get_error")
            isResumed = try find("SSL_session_reused")
            end = try find("SSL_shutdown")
            serverMethod = try find("TLS_server_method")
        } catch {
            return nil
        }
    }

    private struct Missing: Error {}
}
#endif
