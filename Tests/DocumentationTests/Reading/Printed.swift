internal import Foundation
internal import StoreCore

/// What a story printed, line by line.
final class Printed: Sendable {
    /// Where `print` writes in the task that tells a story.
    @TaskLocal static var page: Printed?

    private struct Page: Sendable {
        var lines: [String] = []
        var taken = 0
    }

    private let page = WatchedState(Page())

    func add(_ line: String) {
        page.update { $0.lines.append(line) }
    }

    /// All lines so far.
    var lines: [String] { page.read { $0.lines } }

    /// How many lines there are.
    var count: Int { page.read { $0.lines.count } }

    /// Waits until there are so many more lines than were taken so far, and takes them.
    @discardableResult
    func next(_ count: Int) async throws -> [String] {
        let lines = try await page.wait { page in
            page.lines.count >= page.taken + count ? Array(page.lines[page.taken..<page.taken + count]) : nil
        }
        page.update { $0.taken += count }
        return lines
    }

    /// Waits until there are so many lines in all, without taking any.
    func lines(atLeast count: Int) async throws {
        try await page.wait { $0.lines.count >= count ? () : nil }
    }
}

/// Stands in for the standard library's function, so that examples print where a test can read.
func print(_ items: Any..., separator: String = " ") {
    let line = items.map { "\($0)" }.joined(separator: separator)
    if let page = Printed.page { page.add(line) } else { Swift.print(line) }
}
