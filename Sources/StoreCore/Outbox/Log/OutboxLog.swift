#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif
package import StoreCore
package import StoreFiles
internal import StorePlatform

/// The log of an outbox. Its entries are the records of `OutboxEntry`, and the log does not depend on their meaning.
package typealias OutboxLog = SharedLog<Data>

extension Data: LogEntry {
    package func write(to writer: inout ByteWriter) { writer.append(self) }

    package init(reading bytes: UnsafeRawBufferPointer) { self.init(bytes) }
}

extension OutboxLog {
    /// Opens the log in a directory of its own, which is created if it is missing.
    ///
    /// Throws ``StoreError/Code/unreadableRecord`` if the file is of a newer version or is not a log. Such a file is not changed.
    package convenience init(directory: URL) throws(StoreError) {
        precondition(directory.isFileURL, "an outbox needs the file URL of a directory, not \(directory)")
        var options = Options()
        options.pace = .milliseconds(2)
        // The commands of other processes are delivered soon, even where the log cannot be watched.
        options.longestDelay = .seconds(1)
        self.init(Directory(path: directory.standardizedFileURL.path(percentEncoded: false)), .outbox, options)
        try prepare()
    }

    /// The leases of the deliverer, in a folder of their own.
    package func leases(_ kind: LeaseKind = .ofPlatform) -> SharedDirectory { SharedDirectory(directory, slots: 1, leaseKind: kind) }
}
