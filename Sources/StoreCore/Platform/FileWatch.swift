package import StoreCore

/// A watch on one file or directory; it ends when it is released.
///
/// The system wakes the process for each batch of events. Between events, a watch costs no processor time.
package final class FileWatch: Sendable {
    package enum Interest: Sendable {
        /// Changes of a file's content, and the loss of its name.
        case content
        /// Names that disappear from a directory, and files in it that a writer has closed.
        case endings
        /// The loss of a directory's name.
        case location
    }

    /// Receives the name of the file in the watched directory; `nil` if the system reports none, and if events may have been lost.
    package typealias Handler = @Sendable (_ name: String?) -> Void

    private let watch: SystemWatch

    /// Whether the watch still receives events; it ends when the file is removed, and on Linux when the system has dropped events.
    package var isValid: Bool { watch.isValid }

    /// Watches a path; `nil` if nothing exists there. Throws, for example, if the system allows no further watch.
    package init?(_ path: String, for interest: Interest, _ onEvent: @escaping Handler) throws(StoreError) {
        guard let watch = try SystemWatch(path, for: interest, onEvent) else { return nil }
        self.watch = watch
    }
}
