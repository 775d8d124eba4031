#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

extension LoopbackOrigin {
    /// Raises this process's soft limit of open descriptors, for tests with a thousand connections and both their ends in one process.
    ///
    /// - Parameter count: How many descriptors are wanted; the hard limit is never exceeded.
    /// - Returns: How many descriptors the process may now have open.
    @discardableResult
    public static func allowOpenDescriptors(_ count: Int) -> Int {
        #if canImport(Glibc)
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        #else
        let resource = RLIMIT_NOFILE
        #endif
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0 else { return 0 }
        if limit.rlim_cur < rlim_t(count) {
            limit.rlim_cur = min(rlim_t(count), limit.rlim_max)
            // A refusal leaves the limit as it was, which is what is returned then.
            _ = setrlimit(resource, &limit)
            _ = getrlimit(resource, &limit)
        }
        return Int(clamping: limit.rlim_cur)
    }
}
