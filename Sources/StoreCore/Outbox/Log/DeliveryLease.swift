internal import Dispatch
internal import StoreCore
package import StoreFiles
internal import StorePlatform

extension SharedDirectory {
    /// Waits until this user is the deliverer; throws `CancellationError` as soon as the task is canceled.
    ///
    /// A deliverer releases the lease while there is nothing to deliver. If its process ends, the next waiter takes over: at once where the
    /// lease is a lock, or within ``DeliveryLease/duration`` where the lease is a date.
    package func acquireDelivery(for duration: Duration? = nil) async throws -> DeliveryLease {
        let duration = duration ?? (leaseKind == .locked ? DeliveryLease.unlimited : DeliveryLease.duration)
        while true {
            guard case .granted(let held) = try await hold(DeliveryLease.name, for: duration) else { continue }
            return DeliveryLease(held, of: self, duration: duration)
        }
    }
}

/// The right to deliver the commands of an outbox while all other processes wait.
///
/// The lease ends when its last reference is released. On systems that suspend processes, the lease is an expiry date instead of a file
/// lock, and is prolonged while the process runs.
package final class DeliveryLease: Sendable {
    /// The time after which another process takes over from a holder that has ended or is suspended; only where the lease is a date.
    package static let duration = Duration.seconds(30)
    /// The duration where the lease is a lock, which ends with its holder.
    static let unlimited = Duration.seconds(100 * 365 * 86_400)
    static let name = "delivery.lease"

    private let held: SharedDirectory.HeldLease
    private let leases: SharedDirectory
    private let duration: Duration

    fileprivate init(_ held: SharedDirectory.HeldLease, of leases: SharedDirectory, duration: Duration) {
        self.held = held
        self.leases = leases
        self.duration = duration
        if leases.leaseKind == .dated { prolongLater() }
    }

    deinit { release() }

    /// Returns whether this user is still the deliverer, before each delivery. Where the lease is a date, the call prolongs it.
    package func isHeld() async -> Bool {
        guard leases.leaseKind == .dated else { return held.file.isNamed }
        // A directory that cannot be read gives no right to deliver.
        return (try? await leases.perform { [self] in try leases.prolong(held, for: duration) }) ?? false
    }

    /// Ends the lease; later calls have no effect, because the file of the lease is gone.
    package func release() { leases.end(held, .abandoned) }

    private func prolongLater() {
        leases.queue.asyncAfter(deadline: .after(duration / 3)) { [weak self] in
            guard let self else { return }
            // A lease that was lost stays lost, and a directory that cannot be read now may be readable later.
            if (try? leases.prolong(held, for: duration)) != false { prolongLater() }
        }
    }
}
