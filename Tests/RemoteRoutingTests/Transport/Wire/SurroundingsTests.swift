#if os(Linux)
import Foundation
import LoopbackOrigin
import StoreCore
import Testing
import Trials

@testable import RemoteHTTP
@testable import RemoteRouting

private func client(_ words: [String], preloading library: URL? = nil, environment: [String] = []) async throws -> [String] {
    let program = try ChildProcess.path(of: "HostileClient")
    let preload = library.map { ["LD_PRELOAD=\($0.path())"] } ?? []
    return try await output(of: "/usr/bin/env", preload + environment + [program] + words)
}

/// Runs a program to its end; returns its output.
private func output(of program: String, _ words: [String]) async throws -> [String] {
    let process = try ChildProcess(program, words)
    try await until("the client ends") { !process.isRunning }
    #expect(try await process.ending() == 0)
    return process.rest.split(separator: "\n").map(String.init)
}

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

    @Test(
        .enabled(if: StubLibrary.canBeBuilt, "no C compiler"),
        arguments: [
            (["VERSION=0x074103", "NAME=\"7.65.3\""], "URLSession (libcurl 7.65.3 is older than 7.66)"),
            (["WITHOUT=(1<<7)"], "URLSession (libcurl VERSION resolves names without a thread)"),
            // It cannot ask before it sends, so it uses fresh connections for unsafe requests.
            (["VERSION=0x074f01", "NAME=\"7.79.1\""], "libcurl 7.79.1"),
        ])
    func `W1, W2: a host falls back from an unusable libcurl and names the reason`(_ changes: [String], _ expected: String) async throws {
        let stub = try await StubLibrary(StubLibrary.version, defining: changes)
        let lines = try await client(["transport", "\(origin.port)"], preloading: stub.url)
        let found = try #require(lines.first).replacing(#/libcurl \d+\.\d+\.\d+ resolves/#, with: "libcurl VERSION resolves")
        #expect(found == expected)
        #expect(lines.dropFirst() == ["x3", "x3", "x3"])
        #expect(expected.hasPrefix("URLSession") || origin.acceptedConnections == 3)
    }

    @Test func `a host uses the libcurl of the process and reuses connections`() async throws {
        let lines = try await client(["transport", "\(origin.port)"])
        #expect(lines.first?.hasPrefix("libcurl ") == true && lines.dropFirst() == ["x3", "x3", "x3"])
        #expect(origin.acceptedConnections == 1)
    }

    @Test func `two libcurls in one process work side by side`() async throws {
        // A copy has separate state, as another version has.
        let path = try #require(StubLibrary.systemLibrary)
        let copy = temporaryURL("so")
        try FileManager.default.copyItem(atPath: path, toPath: copy.path())
        for other in [copy.path(), ProcessInfo.processInfo.environment["STOREHOUSE_CURL"]].compactMap(\.self) where !other.isEmpty {
            let lines = try await client(["two", "\(origin.port)", other])
            #expect(lines == ["x"])
        }
    }

    private func errors(of proxy: String) async throws -> [String] {
        try await client(
            ["errors", "\(origin.port)"], environment: ["-u", "no_proxy", "-u", "NO_PROXY", "http_proxy=\(proxy)", "https_proxy=\(proxy)"])
    }

    @Test(arguments: [
        "ftp://user:secret@127.0.0.1:1", "socks9://user:secret@127.0.0.1:1", "user:secret@127.0.0.1:port", "http://user:secret@[::1",
        "http://user:secret@127.0.0.1:99999", "http://user:secret@nowhere.invalid:1", "http://user:secret@127.0.0.1:1",
        "http://user:secret@:",
    ])
    func `W11: no error contains the credentials of a proxy`(_ proxy: String) async throws {
        let lines = try await errors(of: proxy)
        #expect(lines.count >= 2)
        #expect(!lines.joined().contains("secret"), "\(lines)")
        #expect(!lines.contains("x"), "the proxy is not used")
    }

    @Test func `W11: environment proxies that require credentials or are unreachable have separate error codes`() async throws {
        let head = "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n"
        let server = try RawServer(sending: head)
        for (code, proxy) in [("proxyUnauthorized", "user:secret@127.0.0.1:\(server.port)"), ("proxyUnreachable", "127.0.0.1:1")] {
            let lines = try await errors(of: "http://\(proxy)")
            #expect(lines.map { String($0.prefix { $0 != " " }) } == [code, code], "\(lines)")
            #expect(!lines.joined().contains("secret"))
        }
    }

    @Test func `H13: a transport without file descriptors fails, and works once some are free`() async throws {
        let lines = try await client(["descriptors", "\(origin.port)"])
        #expect(lines.count == 8)
        for line in lines {
            let words = line.split(separator: " ").dropFirst()
            #expect(words.last == "x" || words == ["none"], "\(line)")
        }
        #expect(lines.last == "7 x x", "\(lines)")
        #expect(!lines.joined().contains("unreachable"), "\(lines)")
    }

    @Test func `W14: no more than half of the file descriptors are used, at any width`() async throws {
        let lines = try await client(["narrow", "\(origin.port)"])
        #expect(lines == ["x"])
    }

    @Test(.enabled(if: StubLibrary.canBeBuilt, "no C compiler"), arguments: [false, true])
    func `H6: a wall clock that jumps by hours changes no deadline`(_ jumps: Bool) async throws {
        let stub = try await jumps ? StubLibrary(StubLibrary.clock) : nil
        let lines = try await client(["deadlines", "\(origin.port)"], preloading: stub?.url)
        #expect(lines == ["headTimedOut", "idleTimedOut", "attemptTimedOut", "overallTimedOut", "0123456789"])
    }

    @Test(
        .disabled(if: isSanitized, "the sanitizer's runtime does not survive a fork of several threads"), arguments: ["unused", "used"])
    func `a host works in a forked process and in its parent`(_ use: String) async throws {
        let lines = try await client(["fork", "\(origin.port)", use])
        #expect(lines == (use == "used" ? ["before x"] : []) + ["child x", "child ended 0", "after x"])
    }

    @Test(arguments: ["exit", "return", "cancel"])
    func `W13: a program may end with exchanges in flight`(_ way: String) async throws {
        for _ in 0..<rounds(5, quick: 1) {
            let lines = try await client(["leave", "\(origin.port)", way])
            #expect(lines == ["under way"])
            try await origin.waitUntil { $0.openConnections == 0 }
            origin.forget()
        }
    }
}

/// A shared library that is compiled here and loaded before the system's.
final class StubLibrary: Sendable {
    let url: URL

    static let canBeBuilt = FileManager.default.isExecutableFile(atPath: "/usr/bin/cc") && systemLibrary != nil

    static let systemLibrary: String? = {
        guard let maps = FileHandle(forReadingAtPath: "/proc/self/maps")?.readDataToEndOfFile() else { return nil }
        let line = String(decoding: maps, as: UTF8.self).split(separator: "\n").first { $0.contains("/libcurl") }
        return line.flatMap { $0.firstIndex(of: "/").map($0.suffix(from:)) }.map(String.init)
    }()

    /// - Parameter isPreloaded: Whether the process has libcurl itself, so that the library does not load it.
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

/// Name servers that never respond.
@Suite(.enabled(if: RealTransport.available.contains(.curl), "libcurl is missing"), .timeLimit(.minutes(hangMinutes)))
struct LookupTests {
    /// Runs a client with a library that never ends the lookups of one name.
    private func lookups(_ use: String, of origin: LoopbackOrigin, defining macros: [String], after setup: String) async throws -> [String]
    {
        let stub = try await StubLibrary(StubLibrary.version + StubLibrary.names, defining: macros)
        let program = try ChildProcess.path(of: "HostileClient")
        return try await output(
            of: "/bin/sh",
            [
                "-c", "\(setup) && exec \"$0\" \"$@\"", "/usr/bin/env", "LD_PRELOAD=\(stub.url.path())", program, use, "\(origin.port)",
                "silent.example",
            ])
    }

    @Test(
        .enabled(if: StubLibrary.canBeBuilt, "no C compiler"),
        arguments: [([], "true"), (["VERSION=0x074f01", "NAME=\"7.79.1\""], "true"), ([], "ulimit -n 40")] as [([String], String)])
    func `H6, H13, W14: an endless lookup delays nothing else, with few descriptors too`(_ macros: [String], _ setup: String) async throws {
        let origin = try LoopbackOrigin { _ in .text("x") }
        let lines = try await lookups("names", of: origin, defining: macros, after: setup)
        #expect(lines == Array(repeating: "overallTimedOut", count: 3) + ["x", "cancelled", "x"])
    }

    @Test(.enabled(if: StubLibrary.canBeBuilt, "no C compiler"))
    func `W14: lookups that outlive their exchanges do not keep other exchanges from beginning`() async throws {
        let origin = try LoopbackOrigin()
        origin.meet(2, at: "/pair")
        let lines = try await lookups("lookups", of: origin, defining: [], after: "true")
        #expect(lines == ["hostNotFound overallTimedOut", "x x"])
    }

    @Test(.enabled(if: Network.canBeMade, "`unshare` or `ip` is missing, or this system refuses network namespaces"))
    func `H6, H13, W14: a silent name server delays no deadline, no cancellation and no other exchange`() async throws {
        let program = try ChildProcess.path(of: "HostileClient")
        let settings = temporaryURL("conf")
        try Data("nameserver 127.0.0.1\noptions timeout:30 attempts:5\n".utf8).write(to: settings)
        // The port of the name server is bound, but nothing reads from it. Nothing listens on port 1.
        let script = """
            mount --bind \(settings.path()) /etc/resolv.conf && ip link set lo up || exit 9
            exec "$0" "$@"
            """
        let lines = try await output(
            of: "/usr/bin/env", Network.words + ["sh", "-c", script, program, "unanswered", "1", "silent.example"])
        #expect(lines == Array(repeating: "overallTimedOut", count: 3) + ["connectionRefused", "cancelled", "connectionRefused"])
    }
}

/// A network namespace, which has no connection to other systems.
private enum Network {
    /// The command that runs a program in a new namespace.
    static let words = ["unshare", "--map-root-user", "--net", "--mount"]

    /// Whether this system allows a namespace with its own loopback interface and name server.
    static let canBeMade: Bool = {
        let script = "ip link set lo up && mount --bind /dev/null /etc/resolv.conf && echo made"
        let output = try? ChildProcess.output(of: "/usr/bin/env", words + ["sh", "-c", script], showsErrors: false)
        return output == Data("made\n".utf8)
    }()
}

extension StubLibrary {
    fileprivate static let names = """

        #include <netdb.h>
        #include <unistd.h>

        int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
            int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
            real = (int (*)(const char *, const char *, const struct addrinfo *, struct addrinfo **))dlsym(RTLD_NEXT, "getaddrinfo");
            while (name && strcmp(name, "silent.example") == 0) pause();
            return real(name, service, hints, found);
        }

        """
}

/// The choice of libcurl, and the fallback without it.
@Suite
struct LibraryTests {
    @Test(.enabled(if: RealTransport.available.contains(.curl), "libcurl is missing: the tests of CurlTransport do not run"))
    func `a host names its transport`() throws {
        let version = try WireLibrary().version
        #expect(version.hasPrefix("libcurl/") == false)
        #expect("\(RemoteHost("a.example").transport)" == "libcurl \(version)")
        #expect("\(URLSessionTransport())" == "URLSession")
    }

    @Test(arguments: [
        (0x074103, true, "libcurl X is older than 7.66", false), (0x074200, true, nil, false),
        (0x074200, false, "libcurl X resolves names without a thread", false),
        (0x074f01, true, nil, false), (0x075000, true, nil, true), (0x075801, false, "libcurl X resolves names without a thread", true),
        (0x081400, true, nil, true), (0, false, "libcurl X is older than 7.66", false),
    ])
    func `a libcurl is chosen by its version and features`(_ version: UInt32, _ hasThreads: Bool, _ problem: String?, _ asks: Bool) {
        let build = WireLibrary.Build(name: "X", version: version, hasThreads: hasThreads)
        #expect(build.problem == problem)
        #expect(build.asksBeforeSending == asks)
    }

    @Test(arguments: ["/nowhere/libcurl.so.4", "/dev/null", "libc.so.6"])
    func `W1: an invalid libcurl is refused with the reason, which the host names beside URLSession`(_ path: String) {
        let failure = #expect(throws: TransportFailure.self) { try CurlTransport(width: 4, path: path) }
        #expect(failure?.code == .unsupported && failure?.message == "\(path) cannot be loaded; install libcurl 7.66 or newer")
        let host = RemoteHost("a.example", transport: SystemTransport.make(libcurl: path))
        #expect("\(host.transport)" == "URLSession (\(path) cannot be loaded)")
    }

    @Test(.enabled(if: RealTransport.available.contains(.curl), "libcurl is missing"))
    func `failures to connect are distinguished`() async throws {
        let port = try ClosedPort()
        defer { withExtendedLifetime(port) {} }
        let host = try RealTransport.curl.host(.init(port.number)) { $0.retry = .never }
        #expect(try await remoteError { try await host.send("/x") }.code == .connectionRefused)
        let unknown = host.with { $0.configuration = HostConfiguration("nowhere.invalid", scheme: .http) }
        #expect(try await remoteError { try await unknown.send("/x") }.code == .hostNotFound)
        let secured = try LoopbackOrigin { _ in .text("x") }
        let plain = host.with { $0.configuration = HostConfiguration("127.0.0.1", scheme: .https, port: Int(secured.port)) }
        #expect(try await remoteError { try await plain.send("/x") }.code == .tlsFailed)
    }
}
#endif
