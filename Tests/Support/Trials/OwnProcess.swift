internal import StorePlatform

/// Writes a line at once, so that it is visible even if the process is killed afterward.
public func say(_ line: String) {
    let bytes = Array((line + "\n").utf8)
    _ = write(1, bytes, bytes.count)
}

/// Kills the process without any cleanup.
public func killSelf() {
    kill(getpid(), SIGKILL)
    while true { pause() }
}

/// Limits the size of this process's files; a write across the limit is short, and the next one fails.
public func limitFileSize(_ bytes: Int) {
    signal(SIGXFSZ, SIG_IGN)
    setLimit(RLIMIT_FSIZE, bytes)
}

/// Lets each later call fail that needs a descriptor from this number on.
public func limitDescriptors(to count: Int) { setLimit(RLIMIT_NOFILE, count) }

#if canImport(Glibc)
private func setLimit(_ resource: __rlimit_resource, _ value: Int) { setLimit(Int32(resource.rawValue), value) }
#endif

private func setLimit(_ resource: Int32, _ value: Int) {
    var limit = rlimit(rlim_cur: rlim_t(value), rlim_max: rlim_t(value))
    #if canImport(Glibc)
    setrlimit(__rlimit_resource_t(resource), &limit)
    #else
    setrlimit(resource, &limit)
    #endif
}

/// Drops superuser rights, which ignore file permissions.
public func becomeNobody() {
    guard getuid() == 0 else { return }
    _ = setgid(65534)
    _ = setuid(65534)
}

/// Appends a line to a file in one step, so that lines of several processes do not mix.
public func appendLine(_ path: String, _ line: String) {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return }
    let bytes = Array((line + "\n").utf8)
    _ = write(descriptor, bytes, bytes.count)
    close(descriptor)
}

#if os(Linux)
/// Opens as many file watchers as the user may have, and returns them.
public func exhaustWatchers() -> [Int32] {
    var watchers: [Int32] = []
    while watchers.count < 100_000 {
        let watcher = inotify_init1(O_CLOEXEC)
        guard watcher >= 0 else { break }
        watchers.append(watcher)
    }
    return watchers
}

/// Closes file watchers.
public func closeWatchers(_ watchers: [Int32]) { for watcher in watchers { close(watcher) } }
#endif
