internal import Foundation
internal import LoopbackOrigin
internal import StoreCore
import StorePlatform
internal import Synchronization
internal import Trials

#if os(macOS) || os(Linux)

/// An origin in a process of its own, which is killed when this object is released.
final class OriginProcess: Sendable {
    let url: URL
    /// Retained only because releasing it kills the process.
    private let process: Mutex<ChildProcess>

    init(_ content: OriginCommand) throws {
        let process = try ChildProcess("/proc/self/exe", [OriginCommand.argument] + content.arguments)
        guard let line = process.readLine(), let url = URL(string: line) else { throw CocoaError(.executableLoad) }
        self.url = url
        self.process = Mutex(process)
    }
}

/// The content of an origin process.
enum OriginCommand {
    /// A body of 1 KB at `/profile`, for GET and POST.
    case profile
    /// The same over TLS, with the certificate of a file and the key beside it.
    case secure(certificate: String)
    /// The files of ``ListedFiles`` with their list.
    case files(Int)
    /// A file of that many MiB at `/big`.
    case big(mebibytes: Int)

    static let argument = "--origin"

    var arguments: [String] {
        switch self {
        case .profile: ["profile"]
        case .secure(let certificate): ["secure", certificate]
        case .files(let count): ["files", "\(count)"]
        case .big(let size): ["big", "\(size)"]
        }
    }

    init?(_ arguments: some Collection<String>) {
        let arguments = Array(arguments)
        let number = arguments.dropFirst().first.flatMap { Int($0) }
        switch (arguments.first, number) {
        case ("profile", nil): self = .profile
        case ("secure", _) where arguments.count == 2: self = .secure(certificate: arguments[1])
        case ("files", let count?): self = .files(count)
        case ("big", let size?): self = .big(mebibytes: size)
        default: return nil
        }
    }

    /// Serves until the process is killed.
    func run() async throws {
        let origin = try makeOrigin()
        #if os(Linux)
        var front: TLSFront?
        if case .secure(let certificate) = self {
            let file = URL(filePath: certificate)
            front = try TLSFront(of: origin.port, TLSFront.Settings(certificate: file, key: file.appendingPathExtension("key")))
        }
        defer { withExtendedLifetime(front) {} }
        say(front.map { "https://localhost:\($0.port)" } ?? origin.url.absoluteString)
        #else
        say(origin.url.absoluteString)
        #endif
        while true { try await Task.sleep(for: .seconds(3_600)) }
    }

    /// The block that the big file repeats.
    static let block = Data((0..<1 << 20).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })

    /// Returns the digest of the big file in the format of `sha256sum`.
    static func digest(ofBig mebibytes: Int) -> String {
        var digest = SHA256()
        let block = [UInt8](block)
        for _ in 0..<mebibytes { digest.update(block) }
        return digest.digest().hex
    }

    private func makeOrigin() throws -> LoopbackOrigin {
        switch self {
        case .profile, .secure:
            let origin = try LoopbackOrigin()
            let body = Data(count: 1_024)
            for method in [LoopbackOrigin.Method.get, .post] { origin.on(method, "/profile") { _ in .data(body) } }
            return origin
        case .files(let count): return try LoopbackOrigin(ListedFiles(count: count))
        case .big(let size):
            let origin = try LoopbackOrigin()
            origin.on(.get, "/big") { _ in .repeating(Self.block, times: size) }
            return origin
        }
    }
}

#endif
