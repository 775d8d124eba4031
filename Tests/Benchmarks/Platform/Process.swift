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

// A separate file, because beside an import of Foundation the compiler resolves `timespec` to a module that cannot be imported.

/// Returns the processor time of the process on all cores, in nanoseconds.
func processTime() -> Double {
    var reading = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &reading)
    return Double(reading.tv_sec) * 1e9 + Double(reading.tv_nsec)
}

/// Returns the processor time of ended child processes, in nanoseconds.
func processTimeOfChildren() -> Double {
    var usage = rusage()
    #if canImport(Glibc)
    getrusage(__rusage_who_t(RUSAGE_CHILDREN.rawValue), &usage)
    #else
    getrusage(RUSAGE_CHILDREN, &usage)
    #endif
    func nanoseconds(_ time: timeval) -> Double { Double(time.tv_sec) * 1e9 + Double(time.tv_usec) * 1e3 }
    return nanoseconds(usage.ru_utime) + nanoseconds(usage.ru_stime)
}

/// Returns whether the stream is a terminal.
func isTerminal(_ stream: Stream) -> Bool { isatty(stream.rawValue) == 1 }

/// Ends the process after flushing its output.
func end(_ status: Int32) -> Never { exit(status) }

/// Writes to a stream at once.
func write(_ text: String, to stream: Stream) {
    var text = text
    text.withUTF8 { bytes in
        var rest = UnsafeRawBufferPointer(bytes)
        while let base = rest.baseAddress, !rest.isEmpty {
            let count = write(stream.rawValue, base, rest.count)
            // The reader has closed the stream, so the rest is dropped.
            guard count > 0 else { return }
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count))
        }
    }
}

/// The output streams of a command.
enum Stream: Int32 {
    case output = 1
    case errors = 2
}
