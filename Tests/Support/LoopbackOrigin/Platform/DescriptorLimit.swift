import StorePlatform

extension LoopbackOrigin {
    /// Raises this process's soft limit of open descriptors, for tests with both ends of a thousand connections in one process.
    ///
    /// - Parameter count: The wanted number of descriptors; the hard limit is never exceeded.
    /// - Returns: The number of descriptors that the process may now open.
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
            // If the system refuses, the limit stays unchanged and is returned.
            _ = setrlimit(resource, &limit)
            _ = getrlimit(resource, &limit)
        }
        return Int(clamping: limit.rlim_cur)
    }
}
