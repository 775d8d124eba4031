#if os(Linux)
import Foundation
import RemoteRouting
import StoreCore
import Testing
import Trials

/// Many concurrent exchanges over HTTP/1.1 and TLS.
@Suite(
    .enabled(if: RealTransport.available.contains(.curl) && NginxServer.problem == nil, "libcurl, nginx or OpenSSL is missing"),
    .serialized, .timeLimit(.minutes(hangMinutes)))
struct WidthTests {
    /// Sends requests to each host at once; returns the number of connections.
    private func connections(_ hosts: [RemoteHost], _ count: Int) async throws -> Int {
        try await withThrowingTaskGroup(of: Set<String>.self) { group in
            for (number, host) in hosts.enumerated() {
                group.addTask {
                    try await withThrowingTaskGroup(of: Data.self) { calls in
                        for _ in 0..<count { calls.addTask { try await host.data(for: Route(path: "/x")) } }
                        var seen: Set<String> = []
                        for try await number in calls { seen.insert(String(decoding: number, as: UTF8.self)) }
                        return Set(seen.map { "\(number) \($0)" })
                    }
                }
            }
            var all: Set<String> = []
            for try await seen in group { all.formUnion(seen) }
            return all.count
        }
    }

    @Test(arguments: [64, 128, 256])
    func `W16: at any width, exchanges reuse their connections`(_ width: Int) async throws {
        let server = try await NginxServer(http2: false)
        let host = try secureHost(server.port) { $0.limits.concurrentExchanges = width }
        let count = 4000
        let connections = try await connections([host], count)
        #expect(connections <= width + count / 20, "\(connections) connections")
    }

    @Test func `W16: four hosts reuse their connections side by side`() async throws {
        var hosts: [RemoteHost] = []
        var servers: [NginxServer] = []
        for _ in 0..<4 {
            let server = try await NginxServer(http2: false)
            servers.append(server)
            hosts.append(
                try secureHost(server.port) {
                    $0.limits.concurrentExchanges = 32
                    if let first = hosts.first { $0.transport = first.transport }
                })
        }
        let connections = try await connections(hosts, 1000)
        #expect(connections <= 4 * (32 + 1000 / 20), "\(connections) connections")
        withExtendedLifetime(servers) {}
    }
}
#endif
