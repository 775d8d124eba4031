import Dispatch
import Foundation
import RemoteRouting
import StoreCore
import Trials

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A program that uses a host where libcurl, the clock or the process itself are not as usual.
struct Surroundings: Sendable {
    let port: Int

    func host(_ transport: (any Transport)? = nil) -> RemoteHost {
        RemoteHost(HostConfiguration("127.0.0.1", scheme: .http, port: port), transport: transport).with {
            $0.retry = .never
            $0.timeouts = .init()
        }
    }

    /// What a request comes to, in one word.
    private func word(_ host: RemoteHost, _ route: Route = Route(path: "/x")) async -> String {
        do {
            return String(decoding: try await host.data(for: route), as: UTF8.self)
        } catch let error as RemoteError {
            return error.code.rawValue
        } catch {
            return "\(error)"
        }
    }

    /// Sends requests at once; returns what they come to, each word once and sorted.
    private func words(of count: Int, by host: (Int) -> RemoteHost) async -> [String] {
        await withTaskGroup(of: String.self) { group in
            for number in 0..<count { group.addTask { [host = host(number)] in await word(host) } }
            return await group.reduce(into: Set()) { $0.insert($1) }.sorted()
        }
    }

    /// Which transport a host has by default, and that it works; `POST` twice shows whether connections are used again.
    func sayTransport() async {
        let host = host()
        say("\(host.transport)")
        for _ in 0..<3 { say(await word(host, Route(path: "/x", method: .post, body: .data(Data("abc".utf8))))) }
    }

    /// Uses two libcurls, and the one that `URLSession` uses, at the same time.
    func useTwo(_ path: String) async throws {
        #if os(Linux)
        let hosts = [host(try CurlTransport()), host(try CurlTransport(width: 8, path: path)), host(URLSessionTransport())]
        say(await words(of: 90) { hosts[$0 % 3] }.joined(separator: " "))
        #endif
    }

    /// Downloads a file into a directory, and prints the code and the message of the error.
    func download(into directory: String) async throws {
        let target = URL(filePath: directory, directoryHint: .isDirectory).appending(path: "film.bin")
        do {
            try await host().download(Route(path: "/f"), to: target)
            say("complete")
        } catch let error as RemoteError {
            say("\(error.code.rawValue): \(error.message)")
        }
    }

    /// Prints the ends of exchanges with short deadlines, and of one with long deadlines.
    func meetDeadlines() async throws {
        func code(_ path: RoutePath, _ timeouts: RouteOptions.Timeouts) async -> String {
            await word(host().with { $0.timeouts = timeouts }, Route(path: path))
        }
        let short = Duration.milliseconds(100)
        say(await code("/never", .init(head: short)))
        say(await code("/stall", .init(idle: short)))
        say(await code("/stall", .init(attempt: short)))
        say(await code("/stall", .init(overall: short)))
        let long = Duration.seconds(1000)
        say(await code("/drip", .init(head: long, idle: long, attempt: long, overall: long)))
    }

    /// Uses a host in a forked process, which has none of the threads of this one.
    ///
    /// - Parameter isUsed: Whether the host has sent requests before. The pool on which tasks run does not come along then, so that the
    ///   child's task runs on threads of its own.
    func fork(isUsed: Bool) {
        #if os(Linux)
        let host = host()
        if isUsed { HostileClient.run { say("before " + (await word(host))) } }
        waitForOtherThreads()
        let child = forkProcess()
        if child == 0 {
            // A child that hangs must not outlive the test.
            alarm(UInt32(hangLimit.components.seconds))
            let isOver = DispatchSemaphore(value: 0)
            Task(executorPreference: OwnThreads()) {
                say("child " + (await word(host)))
                isOver.signal()
            }
            isOver.wait()
            exit(0)
        }
        var status: Int32 = -1
        while waitpid(child, &status, 0) < 0, errno == EINTR {}
        say("child ended \(status)")
        HostileClient.run { say("after " + (await word(host))) }
        #endif
    }

    /// Prints the complete error of a request in clear text, and of one over TLS.
    func showErrors() async {
        for scheme in [HostConfiguration.Scheme.http, .https] {
            let host = RemoteHost(HostConfiguration("127.0.0.1", scheme: scheme, port: port)).with {
                $0.retry = .never
                $0.timeouts = .init(overall: hangLimit)
            }
            do {
                _ = try await host.data(for: Route(path: "/x"))
                say("x")
            } catch {
                let known = error as? RemoteError
                say("\(known?.code.rawValue ?? "") \(error) \(String(describing: known?.underlyingError)) \(String(reflecting: known))")
            }
        }
    }

    /// Prints the ends of exchanges whose name server is silent, and of exchanges with this machine beside them.
    func lookUp(_ name: String) async {
        let near = host()
        let far = RemoteHost(HostConfiguration(name, scheme: .http, port: port), transport: near.transport).with { $0.retry = .never }
        let late = far.with { $0.timeouts = .init(overall: .milliseconds(50)) }
        for _ in 0..<3 { say(await word(late)) }
        let endless = far.with { $0.timeouts = .init() }
        let lookup = Task { await word(endless) }
        say(await word(near))
        lookup.cancel()
        say(await lookup.value)
        say(await word(near))
        // Ends the process while the lookups wait.
        exit(0)
    }

    /// Ends exchanges during their lookups until none begins any more, then sends two requests with responses that wait for each other.
    func lookUpMany(_ name: String) async {
        #if os(Linux)
        limitDescriptors(to: 128)
        let near = host()
        let far = RemoteHost(HostConfiguration(name, scheme: .http, port: port), transport: near.transport).with {
            $0.retry = .never
            $0.timeouts = .init(overall: .milliseconds(50))
            $0.limits.concurrentExchanges = 4
        }
        var ends: Set<String> = []
        while !ends.contains("hostNotFound") { ends.formUnion(await words(of: 4) { _ in far }) }
        say(ends.sorted().joined(separator: " "))
        async let first = word(near, Route(path: "/pair"))
        async let second = word(near, Route(path: "/pair"))
        say(await "\(first) \(second)")
        // Ends the process while the lookups wait.
        exit(0)
        #endif
    }

    /// The same with a name server of this machine that reads no question.
    func lookUpUnanswered(_ name: String) async {
        #if os(Linux)
        let server = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(53).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let isBound = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(server, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0 }
        }
        guard isBound else { return say("port 53 is not free") }
        await lookUp(name)
        #endif
    }

    /// Sends many requests at once while the process may have 40 descriptors, of which other code uses some.
    func useFewDescriptors() async {
        #if os(Linux)
        limitDescriptors(to: 40)
        let fillers = (0..<12).map { _ in open("/dev/null", O_RDONLY) }
        let host = host().with { $0.limits.concurrentExchanges = 256 }
        say(await words(of: 512) { _ in host }.joined(separator: " "))
        for filler in fillers { close(filler) }
        #endif
    }

    /// Makes transports while few descriptors are left: each fails with a reason, or works once there are descriptors again.
    func useLastDescriptors() async {
        #if os(Linux)
        _ = await word(host())
        limitDescriptors(to: 64)
        for left in 0..<8 {
            var fillers: [Int32] = []
            while case let filler = open("/dev/null", O_RDONLY), filler >= 0 { fillers.append(filler) }
            for _ in 0..<min(left, fillers.count) { close(fillers.removeLast()) }
            let transport: CurlTransport?
            do { transport = try CurlTransport() } catch { transport = nil }
            var words: [String] = []
            if let transport { words.append(await word(host(transport))) }
            for filler in fillers { close(filler) }
            if let transport { words.append(await word(host(transport))) }
            say("\(left) \(words.isEmpty ? "none" : words.joined(separator: " "))")
        }
        #endif
    }

    /// Ends the process in the middle of many exchanges.
    func leave(_ way: String) {
        let host = host().with { $0.limits.concurrentExchanges = 1000 }
        let heads = WatchedState(0)
        let tasks = (0..<120).map { number in
            Task.detached {
                switch number % 4 {
                case 0:
                    let bytes = try await host.bytes(for: Route(path: "/stall"))
                    heads.update { $0 += 1 }
                    for try await _ in bytes {}
                case 1: _ = try await host.data(for: Route(path: "/never"))
                case 2: _ = try await host.data(for: Route(path: "/never", method: .post, body: .data(Data(count: 300_000))))
                default: while !Task.isCancelled { _ = try await host.data(for: Route(path: "/x")) }
                }
            }
        }
        HostileClient.run { try await heads.wait { $0 == 30 ? () : nil } }
        say("under way")
        switch way {
        case "exit": exit(0)
        case "cancel":
            for task in tasks { task.cancel() }
            HostileClient.run { for task in tasks { _ = await task.result } }
        default: break
        }
    }
}

/// Runs each part of a task on a new thread.
private final class OwnThreads: TaskExecutor {
    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        Thread { [self] in job.runSynchronously(on: asUnownedTaskExecutor()) }.start()
    }
}

#if os(Linux)
/// Waits until every other thread of the process sleeps. A runtime lock that another thread holds during a fork stays locked in the child.
private func waitForOtherThreads() {
    let tasks = "/proc/self/task"
    var quietLooks = 0
    while quietLooks < 100 {
        let others = ((try? FileManager.default.contentsOfDirectory(atPath: tasks)) ?? []).filter { $0 != "\(getpid())" }
        let areAsleep = others.allSatisfy { other in
            guard let status = FileManager.default.contents(atPath: "\(tasks)/\(other)/stat") else { return true }
            // The state follows the command's name, which is in parentheses.
            return String(decoding: status, as: UTF8.self).split(separator: ")").last?.hasPrefix(" S") == true
        }
        quietLooks = areAsleep ? quietLooks + 1 : 0
        sched_yield()
    }
}

/// `fork`, which the overlay may hide.
private func forkProcess() -> pid_t {
    typealias Fork = @convention(c) () -> pid_t
    guard let symbol = dlsym(nil, "fork") else { return -1 }
    return unsafeBitCast(symbol, to: Fork.self)()
}
#endif
