// The C library of each system. A file that imports StorePlatform can call it.
#if canImport(Darwin)
@_exported public import Darwin
#elseif canImport(Glibc)
@_exported public import Glibc
#if canImport(SwiftOverlayShims)
@_exported public import SwiftOverlayShims
#endif
#elseif canImport(Musl)
@_exported public import Musl
#endif
