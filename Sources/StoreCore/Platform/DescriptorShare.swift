package import StoreCore

/// The share of the process's file descriptors that leases and watches may hold (D10).
package enum DescriptorShare {
    /// The permits for leases: three quarters of the share.
    package static let leases = Permits(leaseCount)
    /// The permits for watches, where each watch holds a descriptor.
    package static let watches = Permits(max(2, total - leaseCount))

    package static var leaseCount: Int { max(1, total - total / 4) }

    /// 64 descriptors, or an eighth of the process's limit if that is less; read once. A process
    /// without a known limit gets the share of a small one.
    package static let total = total(of: descriptorLimit() ?? 256)

    package static func total(of limit: UInt64) -> Int { Int(min(64, max(8, limit / 8))) }
}
