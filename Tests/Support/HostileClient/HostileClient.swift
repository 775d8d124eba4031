import Foundation
import RemoteRouting
import StoreCore
import Trials

/// Sends requests to an origin whose responses may end the process, and says which it sends and what came of it.
///
/// `HostileClient <port> <first> <end> <step>`
@main
struct HostileClient {
    static func main() async {
        let numbers = CommandLine.arguments.dropFirst().compactMap { Int($0) }
        guard numbers.count == 4 else { return say("usage: HostileClient <port> <first> <end> <step>") }
        let host = RemoteHost(HostConfiguration("127.0.0.1", scheme: .http, port: numbers[0]), transport: URLSessionTransport()).with {
            $0.retry = .never
            $0.timeouts = .init(head: .seconds(5), idle: .seconds(5), overall: .seconds(10))
            $0.limits.redirects = 0
        }
        for number in stride(from: numbers[1], to: numbers[2], by: numbers[3]) {
            say("\(number)")
            do {
                _ = try await host.data(for: Route(path: "/\(number)"))
            } catch let error as RemoteError where error.stage == .timeout {
                say("late")
            } catch {
                // Any other error is what a mutated response should be.
            }
        }
        say("end")
    }
}
