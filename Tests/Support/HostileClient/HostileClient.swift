import Dispatch
import RemoteRouting
import StoreCore
import Trials

/// A process of its own for what may end or hang a process; it says line by line what came of it.
@main
struct HostileClient {
    static func main() {
        let words = Array(CommandLine.arguments.dropFirst())
        let numbers = words.compactMap { Int($0) }
        if numbers.count == 4 { return run { try await sendMutations(numbers) } }
        guard let port = numbers.first, numbers.count == 1 else {
            return say("usage: HostileClient <port> <first> <end> <step>, or <mode> <port>")
        }
        let surroundings = Surroundings(port: port)
        let name = words.count == 3 ? words[2] : ""
        switch words[0] {
        case "transport": run { await surroundings.sayTransport() }
        case "two": run { try await surroundings.useTwo(name) }
        case "deadlines": run { try await surroundings.meetDeadlines() }
        case "fork": surroundings.fork(isUsed: name == "used")
        case "errors": run { await surroundings.showErrors() }
        case "names": run { await surroundings.lookUp(name) }
        case "lookups": run { await surroundings.lookUpMany(name) }
        case "unanswered": run { await surroundings.lookUpUnanswered(name) }
        case "narrow": run { await surroundings.useFewDescriptors() }
        case "descriptors": run { await surroundings.useLastDescriptors() }
        case "leave": surroundings.leave(name)
        case "download": run { try await surroundings.download(into: name) }
        case "share": run { try await TokenUser(port: port, directory: name).run() }
        default: say("unknown mode \(words[0])")
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
