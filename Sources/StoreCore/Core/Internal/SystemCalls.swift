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

// The only code of this target that depends on the system. Beside an import of Foundation, the compiler would resolve `timespec` to a module
// that cannot be imported.

/// Reads the clock that continues while the machine is asleep.
///
/// It costs half of `ContinuousClock.now`. The 128-bit arithmetic of that clock would be most of the cost of a hit on content that expires.
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

/// Returns the wall-clock time in seconds since 1970 with a resolution of ten milliseconds, at a lower cost than `Date()`.
///
/// The value is that of the system's last tick. Systems without a coarse clock return the exact time.
package func coarseSeconds() -> Double {
    var reading = timespec()
    #if os(Linux)
    clock_gettime(CLOCK_REALTIME_COARSE, &reading)
    #else
    clock_gettime(CLOCK_REALTIME, &reading)
    #endif
    return Double(reading.tv_sec) + Double(reading.tv_nsec) / 1e9
}

/// Returns a number of the calling thread that no other living thread has.
func currentThread() -> UInt {
    #if canImport(Glibc)
    UInt(pthread_self())
    #else
    // A pointer or a signed number.
    UInt(bitPattern: pthread_self())
    #endif
}
