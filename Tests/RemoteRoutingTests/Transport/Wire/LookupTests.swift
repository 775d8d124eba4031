#if os(Linux)
import Foundation
import LoopbackOrigin
import StoreCore
import Testing
import Trials

/// Name servers that never respond.
@Suite(.enabled(if: RealTransport.available.contains(.curl), "libcurl is missing"), .timeLimit(.minutes(hangMinutes)))
struct LookupTests {
    /// Runs a client to its end; returns its output.
    private func client(_ program: String, _ words: [String]) async throws -> [String] {
        let process = try ChildProcess(program, words)
        try await until("the client ends") { !process.isRunning }
        #expect(try await process.ending() == 0)
        return process.rest.split(separator: "\n").map(String.init)
    }

    /// Runs a client with a library whose lookups of one name never end.
    private func client(_ use: String, of origin: LoopbackOrigin, defining macros: [String], after setup: String) async throws -> [String] {
        let stub = try await StubLibrary(StubLibrary.version + StubLibrary.names, defining: macros)
        let program = try ChildProcess.path(of: "HostileClient")
        return try await client(
            "/bin/sh",
            [
                "-c", "\(setup) && exec \"$0\" \"$@\"", "/usr/bin/env", "LD_PRELOAD=\(stub.url.path())", program, use, "\(origin.port)",
                "silent.example",
            ])
    }

    @Test(
        .enabled(if: StubLibrary.canBeBuilt, "no C compiler"),
        arguments: [([], "true"), (["VERSION=0x074f01", "NAME=\"7.79.1\""], "true"), ([], "ulimit -n 40")] as [([String], String)])
    func `H6, H13, W14: a name lookup without an end delays no deadline, no cancellation and no other exchange, with few descriptors too`(
        _ macros: [String], _ setup: String
    ) async throws {
        let origin = try LoopbackOrigin { _ in .text("x") }
        let lines = try await client("names", of: origin, defining: macros, after: setup)
        #expect(lines == Array(repeating: "overallTimedOut", count: 3) + ["x", "cancelled", "x"])
    }

    @Test(.enabled(if: StubLibrary.canBeBuilt, "no C compiler"))
    func `W14: lookups that outlive their exchanges do not keep other exchanges from beginning`() async throws {
        let origin = try LoopbackOrigin()
        let arrived = WatchedState(0)
        origin.on(.get, "/pair") { _ in
            arrived.update { $0 += 1 }
            _ = try? await arrived.wait { $0 >= 2 ? true : nil }
            return .text("x")
        }
        #expect(
            try await client("lookups", of: origin, defining: [], after: "true") == ["hostNotFound overallTimedOut", "x x"])
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
        let lines = try await client("/usr/bin/env", Network.words + ["sh", "-c", script, program, "unanswered", "1", "silent.example"])
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
    /// Lookups that never end.
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
#endif
