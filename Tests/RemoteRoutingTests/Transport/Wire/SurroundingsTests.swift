#if os(Linux)
import Foundation
import LoopbackOrigin
import StoreCore
import Testing
import Trials

/// Processes with an unusual libcurl, clock or process state.
@Suite(.enabled(if: RealTransport.available.contains(.curl), "libcurl is missing"), .serialized, .timeLimit(.minutes(hangMinutes)))
struct SurroundingsTests {
    private let origin: LoopbackOrigin

    init() throws {
        origin = try LoopbackOrigin()
        origin.on(.get, "/x") { _ in .text("x") }
        origin.on(.post, "/x") { .text("x\($0.body.count)") }
        for method in [LoopbackOrigin.Method.get, .post] { origin.on(method, "/never") { _ in .text("x").misbehaving(.neverAnswer) } }
        origin.on(.get, "/stall") { _ in .text("0123456789").misbehaving(.stall(afterBodyBytes: 4)) }
        origin.on(.get, "/drip") { _ in .text("0123456789").misbehaving(.drip(bytes: 2, every: .milliseconds(20))) }
    }

    /// Runs a client to its end; returns its output and exit code.
    private func client(
        _ words: [String], preloading library: URL? = nil, environment: [String] = []
    ) async throws -> (lines: [String], code: Int32) {
        let program = try ChildProcess.path(of: "HostileClient")
        let process =
            if let library {
                try ChildProcess("/usr/bin/env", ["LD_PRELOAD=\(library.path())", program] + words)
            } else {
                try ChildProcess("/usr/bin/env", environment + [program] + words)
            }
        try await until("the client ends") { !process.isRunning }
        return (process.rest.split(separator: "\n").map(String.init), try await process.ending())
    }

    // MARK: Other libraries

    @Test(
        .enabled(if: StubLibrary.canBeBuilt, "no C compiler"),
        arguments: [
            (["VERSION=0x074103", "NAME=\"7.65.3\""], "URLSession (libcurl 7.65.3 is older than 7.66)"),
            (["WITHOUT=(1<<7)"], "URLSession (libcurl VERSION resolves names without a thread)"),
        ])
    func `W1: a host falls back from an unusable libcurl and names the reason`(_ changes: [String], _ expected: String) async throws {
        let stub = try await StubLibrary(StubLibrary.version, defining: changes)
        let (lines, code) = try await client(["transport", "\(origin.port)"], preloading: stub.url)
        let found = try #require(lines.first).replacing(#/libcurl \d+\.\d+\.\d+ resolves/#, with: "libcurl VERSION resolves")
        #expect(found == expected)
        #expect(lines.dropFirst() == ["x3", "x3", "x3"] && code == 0)
    }

    @Test(.enabled(if: StubLibrary.canBeBuilt, "no C compiler"))
    func `W2: a libcurl that cannot ask before it sends uses a fresh connection for unsafe requests`() async throws {
        let stub = try await StubLibrary(StubLibrary.version, defining: ["VERSION=0x074f01", "NAME=\"7.79.1\""])
        let (lines, code) = try await client(["transport", "\(origin.port)"], preloading: stub.url)
        #expect(lines == ["libcurl 7.79.1", "x3", "x3", "x3"])
        #expect(code == 0)
        #expect(origin.acceptedConnections == 3)
    }

    @Test func `a host uses the libcurl of the process and reuses connections`() async throws {
        let (lines, code) = try await client(["transport", "\(origin.port)"])
        #expect(lines.first?.hasPrefix("libcurl ") == true && lines.dropFirst() == ["x3", "x3", "x3"])
        #expect(code == 0)
        #expect(origin.acceptedConnections == 1)
    }

    @Test func `two libcurls in one process work side by side`() async throws {
        // A copy has separate state, as another version has.
        let path = try #require(StubLibrary.systemLibrary)
        let copy = temporaryURL("so")
        try FileManager.default.copyItem(atPath: path, toPath: copy.path())
        for other in [copy.path(), ProcessInfo.processInfo.environment["STOREHOUSE_CURL"]].compactMap(\.self) where !other.isEmpty {
            let (lines, code) = try await client(["two", "\(origin.port)", other])
            #expect(lines == ["x"])
            #expect(code == 0)
        }
    }

    // MARK: Proxies

    private func errors(of proxy: String) async throws -> (lines: [String], code: Int32) {
        try await client(
            ["errors", "\(origin.port)"], environment: ["-u", "no_proxy", "-u", "NO_PROXY", "http_proxy=\(proxy)", "https_proxy=\(proxy)"])
    }

    @Test(arguments: [
        "ftp://user:secret@127.0.0.1:1", "socks9://user:secret@127.0.0.1:1", "user:secret@127.0.0.1:port", "http://user:secret@[::1",
        "http://user:secret@127.0.0.1:99999", "http://user:secret@nowhere.invalid:1", "http://user:secret@127.0.0.1:1",
        "http://user:secret@:",
    ])
    func `W11: no error contains the credentials of a proxy`(_ proxy: String) async throws {
        let (lines, code) = try await errors(of: proxy)
        #expect(lines.count >= 2 && code == 0)
        #expect(!lines.joined().contains("secret"), "\(lines)")
        #expect(!lines.contains("x"), "the proxy is not used")
    }

    @Test func `W11: an environment proxy that requires credentials has a separate error code`() async throws {
        let server = try RawServer { connection in
            guard connection.readHead() != nil else { return }
            connection.send("HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n")
        }
        let (lines, _) = try await errors(of: "http://user:secret@127.0.0.1:\(server.port)")
        #expect(lines.map { $0.prefix { $0 != " " } } == ["proxyUnauthorized", "proxyUnauthorized"], "\(lines)")
        #expect(!lines.joined().contains("secret"))
    }

    @Test func `W11: an unreachable environment proxy has a separate error code`() async throws {
        let (lines, _) = try await errors(of: "http://127.0.0.1:1")
        #expect(lines.map { $0.prefix { $0 != " " } } == ["proxyUnreachable", "proxyUnreachable"], "\(lines)")
    }

    @Test func `H13: a transport without file descriptors fails, and works once some are free`() async throws {
        let (lines, code) = try await client(["descriptors", "\(origin.port)"])
        #expect(lines.count == 8 && code == 0)
        for line in lines {
            let words = line.split(separator: " ").dropFirst()
            #expect(words.last == "x" || words == ["none"], "\(line)")
        }
        #expect(lines.last == "7 x x", "\(lines)")
        #expect(!lines.joined().contains("unreachable"), "\(lines)")
    }

    @Test func `W14: no more than half of the file descriptors are used, at any width`() async throws {
        let (lines, code) = try await client(["narrow", "\(origin.port)"])
        #expect(lines == ["x"] && code == 0)
    }

    // MARK: Time

    @Test(.enabled(if: StubLibrary.canBeBuilt, "no C compiler"), arguments: [false, true])
    func `H6: a wall clock that jumps by hours changes no deadline`(_ jumps: Bool) async throws {
        let stub = try await jumps ? StubLibrary(StubLibrary.clock) : nil
        let (lines, code) = try await client(["deadlines", "\(origin.port)"], preloading: stub?.url)
        #expect(lines == ["headTimedOut", "idleTimedOut", "attemptTimedOut", "overallTimedOut", "0123456789"])
        #expect(code == 0)
    }

    // MARK: The process

    @Test(
        .disabled(if: isSanitized, "the sanitizer's runtime does not survive a fork of several threads"), arguments: ["unused", "used"])
    func `a host works in a forked process and in its parent`(_ use: String) async throws {
        let (lines, code) = try await client(["fork", "\(origin.port)", use])
        #expect(lines == (use == "used" ? ["before x"] : []) + ["child x", "child ended 0", "after x"])
        #expect(code == 0)
    }

    @Test(arguments: ["exit", "return", "cancel"])
    func `W13: a program may end with exchanges in flight`(_ way: String) async throws {
        for _ in 0..<rounds(5, quick: 1) {
            let (lines, code) = try await client(["leave", "\(origin.port)", way])
            #expect(lines == ["under way"])
            #expect(code == 0)
            try await origin.waitUntil { $0.openConnections == 0 }
            origin.forget()
        }
    }
}

/// A shared library that is compiled here and loaded before the system's.
final class StubLibrary: Sendable {
    let url: URL

    /// Whether this system has a C compiler.
    static let canBeBuilt = FileManager.default.isExecutableFile(atPath: "/usr/bin/cc") && systemLibrary != nil

    /// The path of this process's libcurl.
    static let systemLibrary: String? = {
        guard let maps = FileHandle(forReadingAtPath: "/proc/self/maps")?.readDataToEndOfFile() else { return nil }
        let line = String(decoding: maps, as: UTF8.self).split(separator: "\n").first { $0.contains("/libcurl") }
        return line.flatMap { $0.firstIndex(of: "/").map($0.suffix(from:)) }.map(String.init)
    }()

    /// Compiles a library.
    ///
    /// - Parameters:
    ///   - source: Its source.
    ///   - macros: The macros that the source reads.
    ///   - isPreloaded: Whether the process has libcurl itself, so that the library does not load it.
    init(_ source: String, defining macros: [String] = [], isPreloaded: Bool = true) async throws {
        url = temporaryURL("so")
        let file = temporaryURL("c")
        try Data(source.utf8).write(to: file)
        let library = try #require(StubLibrary.systemLibrary)
        // Some linkers drop a library without referenced symbols, unless told otherwise.
        let linking = isPreloaded ? [] : ["-Wl,--no-as-needed"]
        let words = ["-shared", "-fPIC", "-o", url.path(), file.path()] + macros.map { "-D\($0)" } + linking
        _ = try #require(try await onOwnThread { try ChildProcess.output(of: "/usr/bin/cc", words + [library, "-ldl"]) })
    }

    /// The system's libcurl with another version or without a feature.
    static let version = """
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <string.h>

        struct version { int age; const char *name; unsigned number; const char *host; int features; };

        void *curl_version_info(int form) {
            static char copy[168];
            void *(*real)(int) = (void *(*)(int))dlsym(RTLD_NEXT, "curl_version_info");
            memcpy(copy, real(form), sizeof copy);
            struct version *version = (struct version *)copy;
        #ifdef VERSION
            version->number = VERSION;
            version->name = NAME;
        #endif
        #ifdef WITHOUT
            version->features &= ~WITHOUT;
        #endif
            return copy;
        }

        int curl_multi_socket_action(void *multi, int socket, int mask, int *running) {
            int (*real)(void *, int, int, int *) = (int (*)(void *, int, int, int *))dlsym(RTLD_NEXT, "curl_multi_socket_action");
            return real(multi, socket, mask, running);
        }

        // Libraries with one function for new handles count as the same.
        void *curl_easy_init(void) {
            void *(*real)(void) = (void *(*)(void))dlsym(RTLD_NEXT, "curl_easy_init");
            return real();
        }
        """

    /// A wall clock that alternates between right, ten hours behind and ten hours ahead.
    static let clock = """
        #define _GNU_SOURCE
        #include <sys/syscall.h>
        #include <sys/time.h>
        #include <time.h>
        #include <unistd.h>

        static int turns;
        static long jump(void) { return (__atomic_fetch_add(&turns, 1, __ATOMIC_RELAXED) % 3 - 1) * 36000L; }

        int clock_gettime(clockid_t clock, struct timespec *time) {
            long result = syscall(SYS_clock_gettime, clock, time);
            if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) time->tv_sec += jump();
            return (int)result;
        }

        int gettimeofday(struct timeval *restrict time, void *restrict zone) {
            struct timespec now;
            clock_gettime(CLOCK_REALTIME, &now);
            time->tv_sec = now.tv_sec;
            time->tv_usec = now.tv_nsec / 1000;
            return 0;
        }

        time_t time(time_t *place) {
            struct timespec now;
            clock_gettime(CLOCK_REALTIME, &now);
            if (place) *place = now.tv_sec;
            return now.tv_sec;
        }
        """
}
#endif
