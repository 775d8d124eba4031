package import StoreCore

/// Writes whole files in one step: a reader finds the old content or the new, never a part.
package enum AtomicFile {
    /// Writes bytes to a temporary file in the same directory and renames it.
    ///
    /// Costs a create, a write, a close and a rename. ``Durability/power`` adds two synchronizations, of the file and then of the
    /// directory. An error leaves the old file, unless only the synchronization of the directory failed.
    ///
    /// - Parameters:
    ///   - directory: The path of the directory, or the open one, if the calls must not depend on its path.
    ///   - kind: A word that identifies the owner of temporary files; letters only.
    ///   - prepare: Called when the temporary file is written, before it is renamed; an error leaves the old file.
    package static func write(
        _ bytes: [UInt8], as name: String, in directory: any FilePlace, kind: String,
        options: FileWriteOptions = FileWriteOptions(), _ prepare: () throws(StoreError) -> Void = {}
    ) throws(StoreError) {
        var file = try TemporaryFile.create(in: directory, kind: kind, options: options)
        try file.write(bytes)
        try file.commit(as: name, prepare)
    }
}

package struct FileWriteOptions: Sendable {
    /// The events that the file survives.
    package var durability: Durability
    /// The times at which the content can be read, on systems that encrypt each file.
    package var protection: FileProtection
    /// The permissions of the file, from which the system subtracts the process's umask.
    package var mode: UInt16
    /// Whether a commit excludes `Directory.remove(_:ifStill:)`, including in other processes. Costs an open, a lock, and a close.
    package var locksNames = false
    /// Called after each step, for tests; an error fails the step.
    package var probe: (@Sendable (Step) throws(StoreError) -> Void)?

    /// A completed step of a commit, in the order of the cases.
    package enum Step: String, Hashable, Sendable, CaseIterable {
        case created, written, fileSynchronized, renamed, directorySynchronized
    }

    package init(
        durability: Durability = .crash, protection: FileProtection = .inherited, mode: UInt16 = 0o600,
        probe: (@Sendable (Step) throws(StoreError) -> Void)? = nil
    ) {
        self.durability = durability
        self.protection = protection
        self.mode = mode
        self.probe = probe
    }
}
