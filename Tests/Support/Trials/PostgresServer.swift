internal import Foundation
internal import StoreCore

#if os(macOS) || os(Linux)

/// A PostgreSQL server of its own on 127.0.0.1, with its data in a temporary directory.
///
/// The server ends with this process, even if the process is killed.
public final class PostgresServer: Sendable {
    /// The reason why no server can be started; `nil` if PostgreSQL is installed.
    public static let obstacle: String? = programs == nil ? "PostgreSQL is not installed; run apt-get install postgresql" : nil

    /// A server that several tests share; it is never restarted.
    public static let shared = Task.detached { try await PostgresServer.started() }

    /// The directory of the newest installed `initdb` and `postgres`.
    private static let programs: String? = {
        let versions = ["/usr/lib/postgresql", "/usr/pgsql-17", "/opt/homebrew/opt", "/usr/local/opt"].flatMap { root in
            ((try? FileManager.default.contentsOfDirectory(atPath: root)) ?? []).sorted {
                $0.compare($1, options: .numeric) == .orderedDescending
            }
            .map { "\(root)/\($0)/bin" }
        }
        return versions.first { FileManager.default.isExecutableFile(atPath: "\($0)/initdb") }
    }()

    /// A directory with an empty database, which each server copies, because `initdb` takes much longer.
    private static let template: Result<String, any Error> = Result { try PostgresServer.makeTemplate() }
    private static let templateRemover = Lock<ChildProcess?>(nil)

    /// The port on 127.0.0.1.
    public let port: Int
    /// The directory of the data and of the server's socket.
    public let directory: String
    private let process = Lock<ChildProcess?>(nil)

    /// The lines of `pg_hba.conf` that trust every local user.
    public static let trust = ["local all all trust", "host all all 127.0.0.1/32 trust"]

    /// Creates a database and starts its server, without blocking a thread of the pool.
    ///
    /// - Parameters:
    ///   - settings: Further settings of the server, such as `max_connections=10`.
    ///   - access: The lines of `pg_hba.conf`; by default, every local user is trusted.
    public static func started(_ settings: [String] = [], access: [String] = PostgresServer.trust) async throws -> PostgresServer {
        try await onOwnThread { try PostgresServer(settings, access: access) }
    }

    /// Creates a database and starts its server, as ``started(_:access:)`` does; blocks the calling thread meanwhile.
    public init(_ settings: [String] = [], access: [String] = PostgresServer.trust) throws {
        let template = try Self.template.get()
        directory = try Self.makeDirectory()
        port = try Self.freePort()
        try Self.shell("\(Self.prefix)cp -Rp '\(template)/data' '\(directory)/data'")
        let lines =
            ["port=\(port)", "listen_addresses='127.0.0.1'", "unix_socket_directories='\(directory)'", "max_connections=500"] + settings
        // Without `fsync`, because these files need not survive the machine, and a slow disk delays each restart.
        try append(lines + ["fsync=off"], to: "postgresql.conf")
        try Data((access.joined(separator: "\n") + "\n").utf8).write(to: URL(filePath: "\(directory)/data/pg_hba.conf"))
        try startAndWait()
    }

    private static func makeTemplate() throws -> String {
        guard let programs = Self.programs else { throw CocoaError(.fileNoSuchFile) }
        let directory = try makeDirectory()
        try shell("\(prefix)'\(programs)/initdb' -D '\(directory)/data' -A trust -U cache -E UTF8 --locale=C --no-sync --wal-segsize=1")
        // The end of the input, also that of this process, removes the directory.
        try templateRemover.withLock { $0 = try ChildProcess("/bin/sh", ["-c", "read line; rm -rf '\(directory)'"]) }
        return directory
    }

    private static func makeDirectory() throws -> String {
        let directory = FileManager.default.temporaryDirectory.path(percentEncoded: false) + "/pg-\(UInt32.random(in: 0...UInt32.max))"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        if isRoot() { try shell("chown \(user) '\(directory)'") }
        return directory
    }

    deinit {
        try? stopAndWait(atOnce: true)
        try? FileManager.default.removeItem(atPath: directory)
    }

    /// The URL of the database over TCP.
    public var url: String { "postgresql://cache@127.0.0.1:\(port)/postgres" }

    /// Appends lines to a file of the server's configuration, which it reads when it starts.
    public func append(_ lines: [String], to file: String) throws {
        let url = URL(filePath: "\(directory)/data/\(file)")
        var content = try Data(contentsOf: url)
        content += Data((lines.joined(separator: "\n") + "\n").utf8)
        try content.write(to: url)
    }

    /// Starts the server and waits until it accepts connections.
    public func start() async throws { try await onOwnThread { [self] in try startAndWait() } }

    /// Stops the server and waits for its end.
    ///
    /// - Parameter atOnce: Whether the server ends without saving its state, as after a crash.
    public func stop(atOnce: Bool = false) async throws { try await onOwnThread { [self] in try stopAndWait(atOnce: atOnce) } }

    /// Stops the server, as ``stop(atOnce:)`` does, and starts it again.
    public func restart(atOnce: Bool = false) async throws {
        try await stop(atOnce: atOnce)
        try await start()
    }

    private func startAndWait() throws {
        guard let programs = Self.programs else { return }
        // The end of the input, also that of this process, ends the server.
        let script =
            "\(Self.prefix)'\(programs)/postgres' -D '\(directory)/data' >>'\(directory)/log' 2>&1 </dev/null & server=$!; read line; "
            + "kill -INT $server; wait $server; rm -rf '\(directory)'"
        try process.withLock { $0 = try ChildProcess("/bin/sh", ["-c", script]) }
        let isReady = waitUntil { statusLines.dropFirst(7).first?.hasPrefix("ready") == true }
        if !isReady { throw CocoaError(.fileReadUnknown) }
    }

    /// The process identifier of the server; `nil` if it does not run.
    public var processID: Int32? { statusLines.first.flatMap { Int32($0) } }

    /// The lines in which the server states its identifier and its readiness; empty if it does not run.
    private var statusLines: [Substring] {
        let text = try? String(contentsOfFile: "\(directory)/data/postmaster.pid", encoding: .utf8)
        return text?.split(separator: "\n", omittingEmptySubsequences: false) ?? []
    }

    private func stopAndWait(atOnce: Bool = false) throws {
        guard let id = processID else { return }
        kill(id, atOnce ? SIGQUIT : SIGINT)
        // The shell has not reaped the server yet; the end of the server removes the file.
        _ = waitUntil { processID == nil }
        process.withLock { $0 = nil }
    }

    /// Blocks the calling thread until a condition holds.
    ///
    /// - Returns: Whether it holds; `false` only after the limit that a hang reaches.
    private func waitUntil(_ holds: () -> Bool) -> Bool {
        let end = ContinuousClock.now + hangLimit
        while !holds() {
            guard ContinuousClock.now < end else { return false }
            usleep(5_000)
        }
        return true
    }

    /// Sends a signal to the processes that serve connections.
    public func signalBackends(_ signal: Int32) async throws {
        guard let id = processID else { return }
        try await onOwnThread { try Self.shell("pkill -\(signal) -P \(id) || true") }
    }

    // MARK: The programs

    /// The servers of PostgreSQL refuse to run as root.
    private static let user = getpwnam("postgres") == nil ? "nobody" : "postgres"
    private static let prefix = isRoot() ? "setpriv --reuid=\(user) --regid=$(id -g \(user)) --clear-groups env LC_ALL=C " : "env LC_ALL=C "

    private static func shell(_ command: String) throws {
        let child = try ChildProcess("/bin/sh", ["-c", command + " >/dev/null 2>&1"])
        guard child.wait() else { throw CocoaError(.fileWriteUnknown, userInfo: [NSLocalizedDescriptionKey: command]) }
    }

    /// Returns a port that no other socket gets by itself: the server is started later, and may be stopped for a while.
    private static func freePort() throws -> Int {
        for _ in 0..<100 {
            let port = UInt16.random(in: 10_000..<30_000)
            if canBind(port) { return Int(port) }
        }
        throw CocoaError(.fileNoSuchFile)
    }

    private static func canBind(_ port: UInt16) -> Bool {
        #if canImport(Glibc)
        let type = Int32(SOCK_STREAM.rawValue)
        #else
        let type = SOCK_STREAM
        #endif
        let socket = socket(AF_INET, type, 0)
        defer { close(socket) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0 }
        }
    }
}

#endif
