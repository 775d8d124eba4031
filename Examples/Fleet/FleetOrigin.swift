import Foundation
import LoopbackOrigin
import StoreCore
import Trials

/// The origin: a process of its own, which counts the fetches of all workers.
enum FleetOrigin {
    /// Serves until the supervisor ends and the standard input with it; appends a line for each fetch to the log.
    static func run(log: String) async throws {
        let origin = try LoopbackOrigin()
        origin.on(.get, "/items/:key") { request in
            appendLine(log, request.parameter("key"))
            return .json(Item(value: 0)).misbehaving(.delayHead(by: .milliseconds(20)))
        }
        say("\(origin.port)")
        for await _ in FigureProcess.commands() {}
    }
}
