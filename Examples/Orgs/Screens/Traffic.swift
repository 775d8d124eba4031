import RemoteRouting
import Synchronization

/// What went over the wire, counted.
final class Traffic: Sendable {
    private struct Counts {
        var exchanges = 0
        var confirmed = 0
        var bytes = 0
    }

    private let counts = Mutex(Counts())

    /// A log that counts, and records each exchange with its status.
    func log(to terminal: Terminal) -> ExchangeLog {
        ExchangeLog { entry in
            guard case .completed(let status, let bytes) = entry.event else { return }
            self.counts.withLock { counts in
                counts.exchanges += 1
                counts.bytes += bytes
                if status == 304 { counts.confirmed += 1 }
            }
            terminal.record("\(status)  \(entry.operation)  \(bytes) bytes of body")
        }
    }

    var summary: String {
        let counts = counts.withLock { $0 }
        return
            "\(counts.exchanges) exchanges, \(counts.confirmed) of them only confirmed what was kept (304); \(counts.bytes) bytes of body"
    }
}
