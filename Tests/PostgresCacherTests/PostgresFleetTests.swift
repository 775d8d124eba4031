import Foundation
import Testing
import Trials
@testable import PostgresCacher

/// Runs the program `fleet` on a server of its own.
@Suite(.enabled(if: PostgresServer.obstacle == nil, needsPostgres))
struct PostgresFleetTests {
    @Test func `D5, D8: the fleet passes its checks while the server restarts twice`() async throws {
        let server = try await PostgresServer.started()
        let seconds = isWholeRun || isLongRun ? 8 : 3
        let fleet = try ChildProcess("fleet", ["--workers", "4", "--seconds", "\(seconds)", "--plain", "--postgres", server.url])
        var output: [String] = []
        // The header follows the creation of the table.
        while let line = try await fleet.nextLine() {
            output.append(line)
            if line.contains("seen after") { break }
        }
        for _ in 0..<2 {
            try await leaveIdle(seconds: max(1, seconds / 4))
            try await server.restart()
        }
        let code = try await fleet.ending()
        #expect(code == 0, "\(output.joined(separator: "\n"))\n\(fleet.rest)")
    }
}
