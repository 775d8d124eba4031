import Foundation

/// What the helper program saves; the two know each other by the JSON.
struct Entry: Codable, Sendable, Equatable {
    var key: Int
    var serial: Int
    var filler: String

    /// Whether all of it belongs together.
    var isWhole: Bool {
        filler.utf8.count == serial &* 7919 % 6000 && filler.utf8.allSatisfy { $0 == UInt8(97 + serial % 26) }
    }
}

/// Where the build has put the program that saves records and is killed: beside the tests.
func crashWriterPath() throws -> String {
    var places = Bundle.allBundles.map(\.bundleURL) + [URL(filePath: CommandLine.arguments[0])]
    if let own = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe") { places.append(URL(filePath: own)) }
    for var place in places {
        for _ in 0..<5 {
            let candidate = place.appending(path: "CrashWriter", directoryHint: .notDirectory).path(percentEncoded: false)
            if FileManager.default.isExecutableFile(atPath: candidate) { return candidate }
            place.deleteLastPathComponent()
        }
    }
    throw CocoaError(.fileNoSuchFile)
}

/// How many rounds a test of chance runs: some dozens, or as many as the environment says.
func rounds(_ usual: Int) -> Int {
    ProcessInfo.processInfo.environment["STOREHOUSE_SEEDS"].flatMap { Int($0) } ?? usual
}
