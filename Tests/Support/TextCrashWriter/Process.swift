#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Lets no file of this process grow beyond a size; a write that would is short, and the next one fails.
func limitFileSize(_ bytes: Int) {
    signal(SIGXFSZ, SIG_IGN)
    var limit = rlimit(rlim_cur: rlim_t(bytes), rlim_max: rlim_t(bytes))
    #if canImport(Glibc)
    setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
    #else
    setrlimit(RLIMIT_FSIZE, &limit)
    #endif
}

/// Gives up root's rights, for which no directory is read-only.
func becomeNobody() {
    guard getuid() == 0 else { return }
    _ = setgid(65534)
    _ = setuid(65534)
}
