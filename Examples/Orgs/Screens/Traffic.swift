import RemoteRouting
import Synchronization

/// The number of exchanges and bytes on the wire.
final class Traffic: Sendable {
    private struct Counts {
        var exchanges = 0
        var confirmed = 0
        var bytes = 0
    }

    private let counts = Mutex(Counts())

    /// Returns a log that counts exchanges and records each one with its status.
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
            "\(counts.exchanges) exchanges, \(counts.confirmed) of them revalidated stored content (304); \(counts.bytes) bytes of body"
    }
}
