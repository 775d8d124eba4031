import Dispatch
import Foundation
import RemoteRouting
import StoreCore
import Trials

/// A process of its own for what may end or hang a process; it says line by line what came of it.
@main
struct HostileClient {
    static func main() {
        let words = Array(CommandLine.arguments.dropFirst())
        let numbers = words.compactMap { Int($0) }
        switch words.first {
        case "transport" where numbers.count == 1: run { await Surroundings(port: numbers[0]).sayTransport() }
        case "two" where numbers.count == 1 && words.count == 3: run { try await Surroundings(port: numbers[0]).useTwo(words[2]) }
        case "deadlines" where numbers.count == 1: run { try await Surroundings(port: numbers[0]).meetDeadlines() }
        case "fork" where numbers.count == 1: Surroundings(port: numbers[0]).fork(isUsed: words.last == "used")
        case "errors" where numbers.count == 1: run { await Surroundings(port: numbers[0]).showErrors() }
        case "names" where numbers.count == 1 && words.count == 3: run { await Surroundings(port: numbers[0]).lookUp(words[2]) }
        case "lookups" where numbers.count == 1 && words.count == 3: run { await Surroundings(port: numbers[0]).lookUpMany(words[2]) }
        case "unanswered" where numbers.count == 1 && words.count == 3:
            run { await Surroundings(port: numbers[0]).lookUpUnanswered(words[2]) }
        case "narrow" where numbers.count == 1: run { await Surroundings(port: numbers[0]).useFewDescriptors() }
        case "descriptors" where numbers.count == 1: run { await Surroundings(port: numbers[0]).useLastDescriptors() }
        case "leave" where numbers.count == 1 && words.count == 3: Surroundings(port: numbers[0]).leave(words[2])
        case "download" where numbers.count == 1 && words.count == 3:
            run { try await Surroundings(port: numbers[0]).download(into: words[2]) }
        case "share" where numbers.count == 1 && words.count == 3:
            let user = TokenUser(port: numbers[0], directory: words[2])
            run { try await user.run() }
        default:
            guard numbers.count == 4 else { return say("usage: HostileClient <port> <first> <end> <step>, or <mode> <port>") }
            run { try await sendMutations(numbers) }
        }
    }

    /// Runs a task to its end on other threads.
    static func run(_ body: @escaping @Sendable () async throws -> Void) {
        let isOver = DispatchSemaphore(value: 0)
        Task.detached {
            do { try await body() } catch { say("\(error)") }
            isOver.signal()
        }
        isOver.wait()
    }

    /// Sends requests to an origin whose responses may end the process, and says which it sends and what came of it.
    private static func sendMutations(_ numbers: [Int]) async throws {
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
