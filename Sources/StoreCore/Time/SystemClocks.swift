#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#if canImport(SwiftOverlayShims)
internal import SwiftOverlayShims
#endif
#elseif canImport(Musl)
internal import Musl
#endif

// A file of its own, because beside an import of Foundation the compiler takes `timespec` for a type of a module that cannot be imported.

/// One reading of the clock that goes on while the machine is asleep.
///
/// Half the price of `ContinuousClock.now`, whose 128-bit arithmetic would be most of the cost of a hit on content that expires.
@usableFromInline
func continuousNanoseconds() -> Int64 {
    #if canImport(Darwin)
    Int64(bitPattern: clock_gettime_nsec_np(CLOCK_MONOTONIC_RAW))
    #else
    var reading = timespec()
    clock_gettime(CLOCK_BOOTTIME, &reading)
    return Int64(reading.tv_sec) * 1_000_000_000 + Int64(reading.tv_nsec)
    #endif
}

/// The wall clock in seconds since 1970 as it was up to ten milliseconds ago, at a lower price than `Date()`.
///
/// It is the clock as the system's last tick has left it; systems without such a reading give the exact one.
package func coarseSeconds() -> Double {
    var reading = timespec()
    #if os(Linux)
    clock_gettime(CLOCK_REALTIME_COARSE, &reading)
    #else
    clock_gettime(CLOCK_REALTIME, &reading)
    #endif
    return Double(reading.tv_sec) + Double(reading.tv_nsec) / 1e9
}
