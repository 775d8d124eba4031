// What Apple's Foundation has beside the declarations of Linux.
public struct NSRange : Swift.Equatable, Swift.Hashable, Swift.Sendable {
    public var location: Swift.Int { get set }
    public var length: Swift.Int { get set }
    public init(location: Swift.Int, length: Swift.Int)
    public init()
}
// Core Foundation's types are bridged to these; here they are the same, because a cast to a class needs the Objective-C runtime.
public typealias CFIndex = Swift.Int
public typealias CFData = Foundation.Data
public typealias CFArray = [Any]
public typealias CFError = Foundation.NSError
@_hasMissingDesignatedInitializers final public class CFAllocator {
}
public func CFErrorGetCode(_ err: Foundation.CFError) -> Foundation.CFIndex
public func SecCertificateCreateWithData(_ allocator: Foundation.CFAllocator?, _ data: Foundation.CFData) -> Security.SecCertificate?
public func SecCertificateCopyData(_ certificate: Security.SecCertificate) -> Foundation.CFData
public func SecTrustSetAnchorCertificates(_ trust: Security.SecTrust, _ anchorCertificates: Foundation.CFArray?) -> Darwin.OSStatus
public func SecTrustSetAnchorCertificatesOnly(_ trust: Security.SecTrust, _ anchorCertificatesOnly: Swift.Bool) -> Darwin.OSStatus
public func SecTrustEvaluateWithError(_ trust: Security.SecTrust, _ error: Swift.UnsafeMutablePointer<Foundation.CFError?>?) -> Swift.Bool
@available(macOS 12.0, iOS 15.0, watchOS 8.0, tvOS 15.0, *)
public func SecTrustCopyCertificateChain(_ trust: Security.SecTrust) -> Foundation.CFArray?
extension Foundation.URLCredential {
    public convenience init(trust: Security.SecTrust)
}
extension Foundation.URLProtectionSpace {
    open var serverTrust: Security.SecTrust? { get }
}
extension Foundation.URLSessionConfiguration {
    @available(macOS 10.15, iOS 13.0, watchOS 6.0, tvOS 13.0, *)
    open var tlsMinimumSupportedProtocolVersion: Security.tls_protocol_version_t { get set }
    @available(macOS 10.15, iOS 13.0, watchOS 6.0, tvOS 13.0, *)
    open var tlsMaximumSupportedProtocolVersion: Security.tls_protocol_version_t { get set }
}
extension Foundation.Stream {
    open class func getBoundStreams(withBufferSize bufferSize: Swift.Int, inputStream: Swift.UnsafeMutablePointer<Foundation.InputStream?>?, outputStream: Swift.UnsafeMutablePointer<Foundation.OutputStream?>?)
}
@available(macOS 13.0, iOS 16.0, watchOS 9.0, tvOS 16.0, *)
extension Foundation.URL {
    public static var applicationDirectory: Foundation.URL { get }
    public static var applicationSupportDirectory: Foundation.URL { get }
    public static var desktopDirectory: Foundation.URL { get }
    public static var downloadsDirectory: Foundation.URL { get }
    public static var libraryDirectory: Foundation.URL { get }
    public static var userDirectory: Foundation.URL { get }
}
extension Foundation.URLError : Swift.Error, Foundation.CustomNSError {
    public init(_ code: Foundation.URLError.Code, userInfo: [Swift.String : Any] = [:])
    public var code: Foundation.URLError.Code { get }
    public var errorCode: Swift.Int { get }
    public var userInfo: [Swift.String : Any] { get }
    public var localizedDescription: Swift.String { get }
}
extension Foundation.FileManager {
    @available(macOS 10.8, iOS 7.0, tvOS 9.0, watchOS 2.0, *)
    public func containerURL(forSecurityApplicationGroupIdentifier groupIdentifier: Swift.String) -> Foundation.URL?
}
public func ~= (match: Foundation.CocoaError.Code, error: any Swift.Error) -> Swift.Bool
public func ~= (match: Foundation.URLError.Code, error: any Swift.Error) -> Swift.Bool
public func ~= (match: Darwin.POSIXErrorCode, error: any Swift.Error) -> Swift.Bool
// The compiler calls these for `error as NSError` and back.
public func _convertNSErrorToError(_ error: Foundation.NSError?) -> any Swift.Error
public func _convertErrorToNSError(_ error: any Swift.Error) -> Foundation.NSError
extension Foundation.URLSessionWebSocketTask.CloseCode {
    public init?(rawValue: Swift.Int)
    public typealias RawValue = Swift.Int
    public var rawValue: Swift.Int { get }
}
// Optional in Objective-C.
extension Foundation.URLSessionWebSocketDelegate {
    public func urlSession(_ session: Foundation.URLSession, webSocketTask: Foundation.URLSessionWebSocketTask, didCloseWith closeCode: Foundation.URLSessionWebSocketTask.CloseCode, reason: Foundation.Data?)
}
