#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// Writes a line at once: what is killed later has said it.
public func say(_ line: String) {
    let bytes = Array((line + "\n").utf8)
    _ = write(1, bytes, bytes.count)
}

/// Ends the process as nothing can prevent or clean up behind.
public func killSelf() {
    kill(getpid(), SIGKILL)
    while true { pause() }
}

/// Lets no file of this process grow beyond a size; a write that would is short, and the next one fails.
public func limitFileSize(_ bytes: Int) {
    signal(SIGXFSZ, SIG_IGN)
    var limit = rlimit(rlim_cur: rlim_t(bytes), rlim_max: rlim_t(bytes))
    #if canImport(Glibc)
    setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
    #else
    setrlimit(RLIMIT_FSIZE, &limit)
    #endif
}

/// Gives up root's rights, for which no directory is read-only.
public func becomeNobody() {
    guard getuid() == 0 else { return }
    _ = setgid(65534)
    _ = setuid(65534)
}
