import Console
import Foundation
import StoreCore

/// The output of the tour: colors and a spinner on a terminal, plain lines elsewhere.
final class Stage: Sendable {
    private let console: Console

    /// Whether the output is a terminal that supports the spinner.
    var isLive: Bool { console.isLive }

    private struct Shown {
        var chapter = 0
        var passed = 0
        var failed: [String] = []
        /// The indentation of the spinner; `nil` while nothing is loading.
        var waiting: String?
        var frame = 0
    }

    private let shown = Lock(Shown())
    private let began = ContinuousClock.now

    init(isPlain: Bool) {
        console = Console(isPlain: isPlain)
        if isLive { Task.detached { [weak self] in await Stage.turnSpinner { self } } }
    }

    // MARK: Words

    func title(_ name: String, _ subtitle: String) {
        write("\n" + paint(.bold, name) + "  " + paint(.dim, subtitle) + "\n")
    }

    func chapter(_ name: String) {
        let number = shown.withLock { shown in
            shown.chapter += 1
            return shown.chapter
        }
        write("\n" + paint(.bold, "\(number)  \(name)") + "\n")
    }

    /// Prints an action of the tour.
    func note(_ text: String) {
        write("   " + paint(.dim, "▸ \(text)") + "\n")
    }

    /// Prints a claim, and records whether it holds.
    func check(_ claim: String, _ holds: Bool) {
        let chapter = shown.withLock { shown in
            if holds { shown.passed += 1 } else { shown.failed.append("\(shown.chapter): \(claim)") }
            return shown.chapter
        }
        write("   " + (holds ? paint(.green, "✓ ") + claim : paint(.red, "✗ \(claim) (chapter \(chapter))")) + "\n")
    }

    func complain(_ text: String) {
        try? FileHandle.standardError.write(contentsOf: Data("tour: \(text)\n".utf8))
    }

    /// Prints the last line.
    ///
    /// - Returns: Whether all checks hold.
    func close() -> Bool {
        let (passed, failed) = shown.withLock { ($0.passed, $0.failed) }
        let seconds = String(format: "%.1f s", elapsed / 1000)
        if failed.isEmpty {
            write("\n" + paint(.green, "All \(passed) checks hold") + paint(.dim, "  \(seconds)") + "\n\n")
        } else {
            write("\n" + paint(.red, "\(failed.count) of \(passed + failed.count) checks failed") + "\n")
            for claim in failed { write("  \(claim)\n") }
        }
        return failed.isEmpty
    }

    // MARK: States

    enum Mark {
        case loading, completed, failed

        fileprivate var sign: String {
            switch self {
            case .loading: "◌"
            case .completed: "●"
            case .failed: "▲"
            }
        }

        fileprivate var paint: Console.Paint {
            switch self {
            case .loading: .yellow
            case .completed: .green
            case .failed: .red
            }
        }
    }

    /// Prints a state of an observer.
    func state(_ mark: Mark, _ word: String, _ content: String, label: String) {
        let padded = word.padding(toLength: 10, withPad: " ", startingAt: 0)
        let time = paint(.dim, String(format: "%6.0f ms", elapsed))
        let line = "\(time)  \(paint(.dim, label)) \(paint(mark.paint, "\(mark.sign) \(padded)")) \(content)"
        write("   " + line + "\n", indentation: 28 + label.count)
        guard isLive, mark == .loading else { return }
        shown.withLock { $0.waiting = "                    " }
    }

    private var elapsed: Double {
        let components = (ContinuousClock.now - began).components
        return Double(components.seconds) * 1e3 + Double(components.attoseconds) / 1e15
    }

    // MARK: The spinner

    private static let frames = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"]

    private static func turnSpinner(_ stage: () -> Stage?) async {
        // Ends with the stage, or with the process.
        while (try? await Task.sleep(for: .milliseconds(80))) != nil, let stage = stage() {
            stage.shown.withLock { shown in
                guard let waiting = shown.waiting else { return }
                shown.frame += 1
                let frame = frames[shown.frame % frames.count]
                try? FileHandle.standardOutput.write(contentsOf: Data("\r\(waiting)\(stage.paint(.yellow, frame))".utf8))
            }
        }
    }

    // MARK: Output

    private func paint(_ paint: Console.Paint, _ text: String) -> String { console.paint(paint, text) }

    private func write(_ text: String, indentation: Int? = nil) {
        let text = console.wrapped(text, indentation: indentation)
        shown.withLock { shown in
            let clearsSpinner = shown.waiting != nil
            shown.waiting = nil
            try? FileHandle.standardOutput.write(contentsOf: Data(((clearsSpinner ? "\r\u{1B}[K" : "") + text).utf8))
        }
    }

    /// Ends the process with a message after a time limit, in case the tour hangs.
    func endProcess(after limit: Duration, complaining text: String) {
        Task.detached { [self] in
            guard (try? await Task.sleep(for: limit)) != nil else { return }
            complain(text)
            exit(1)
        }
    }
}
