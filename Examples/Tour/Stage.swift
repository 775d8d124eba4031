import Console
import Foundation
import StoreCore

/// What the tour is shown on: colours and a moving spinner on a terminal, plain lines anywhere else.
final class Stage: Sendable {
    private let console: Console

    /// Whether somebody watches as it happens.
    var isLive: Bool { console.isLive }

    private struct Shown {
        var chapter = 0
        var passed = 0
        var failed: [String] = []
        /// What the spinner turns in front of; `nil` while nothing is loading.
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

    /// Something that the tour does.
    func note(_ text: String) {
        write("   " + paint(.dim, "▸ \(text)") + "\n")
    }

    /// Something that has to be so.
    func check(_ claim: String, _ holds: Bool) {
        let chapter = shown.withLock { shown in
            if holds { shown.passed += 1 } else { shown.failed.append("\(shown.chapter): \(claim)") }
            return shown.chapter
        }
        write("   " + (holds ? paint(.green, "✓ ") + claim : paint(.red, "✗ \(claim) (chapter \(chapter))")) + "\n")
    }

    func complain(_ text: String) {
        FileHandle.standardError.write(Data("tour: \(text)\n".utf8))
    }

    /// The last line.
    ///
    /// - Returns: Whether everything that had to be so was so.
    func close() -> Bool {
        let (passed, failed) = shown.withLock { ($0.passed, $0.failed) }
        let seconds = String(format: "%.1f s", elapsed / 1000)
        if failed.isEmpty {
            write("\n" + paint(.green, "All \(passed) checks hold") + paint(.dim, "  \(seconds)") + "\n\n")
        } else {
            write("\n" + paint(.red, "\(failed.count) of \(passed + failed.count) checks do not hold") + "\n")
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

    /// A state that an observer was given, as it is given.
    func state(_ mark: Mark, _ word: String, _ content: String, who: String) {
        let padded = word.padding(toLength: 10, withPad: " ", startingAt: 0)
        let time = paint(.dim, String(format: "%6.0f ms", elapsed))
        let line = "\(time)  \(paint(.dim, who)) \(paint(mark.paint, "\(mark.sign) \(padded)")) \(content)"
        write("   " + line + "\n")
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
        // Ends with the stage, or when the process does.
        while (try? await Task.sleep(for: .milliseconds(80))) != nil, let stage = stage() {
            stage.shown.withLock { shown in
                guard let waiting = shown.waiting else { return }
                shown.frame += 1
                let frame = frames[shown.frame % frames.count]
                FileHandle.standardOutput.write(Data("\r\(waiting)\(stage.paint(.yellow, frame))".utf8))
            }
        }
    }

    // MARK: Output

    private func paint(_ paint: Console.Paint, _ text: String) -> String { console.paint(paint, text) }

    private func write(_ text: String) {
        shown.withLock { shown in
            let clearsSpinner = shown.waiting != nil
            shown.waiting = nil
            FileHandle.standardOutput.write(Data(((clearsSpinner ? "\r\u{1B}[K" : "") + text).utf8))
        }
    }

    /// A tour that hangs must say so instead.
    func endProcess(after limit: Duration, complaining text: String) {
        Task.detached { [self] in
            guard (try? await Task.sleep(for: limit)) != nil else { return }
            complain(text)
            exit(1)
        }
    }
}
