/// Writing a whole file in one step: old or new, never half.
package enum AtomicFile {
    /// Writes bytes to a temporary file in the same directory and renames it.
    ///
    /// Costs a create, a write, a close and a rename; with ``Durability/power`` two synchronizations more, of the file and then of the
    /// directory.
    ///
    /// - Parameters:
    ///   - bytes: The file's whole content.
    ///   - name: The file's name.
    ///   - directory: The directory; it must exist.
    ///   - kind: A word that tells whose temporary files these are; letters only.
    ///   - options: Durability and protection.
    /// - Throws: ``StoreError/Code/fileSystem``; the file of that name is then the old one, except where only the directory could not
    ///   be synchronized.
    package static func write(
        _ bytes: UnsafeRawBufferPointer, as name: String, in directory: Directory, kind: String,
        options: FileWriteOptions = FileWriteOptions()
    ) throws(StoreError) {
        var file = try TemporaryFile.create(in: directory, kind: kind, options: options)
        try file.write(bytes)
        try file.commit(as: name)
    }

    /// Writes an array of bytes; see above.
    package static func write(
        _ bytes: [UInt8], as name: String, in directory: Directory, kind: String, options: FileWriteOptions = FileWriteOptions()
    ) throws(StoreError) {
        try bytes.withUnsafeBufferPointer { bytes throws(StoreError) in
            try write(UnsafeRawBufferPointer(bytes), as: name, in: directory, kind: kind, options: options)
        }
    }
}

/// How a file is written.
package struct FileWriteOptions: Sendable {
    /// What the file survives.
    package var durability: Durability
    /// When its content can be read, on systems that encrypt files one by one.
    package var protection: FileProtection
    /// Whether a commit excludes ``Directory/remove(_:ifStill:)``, also in other processes. Costs an open, a lock, and a close.
    package var locksNames = false
    /// Called after each step, for tests: what it throws fails the step.
    package var probe: (@Sendable (Step) throws(StoreError) -> Void)?

    /// What has just been done.
    package enum Step: String, Hashable, Sendable, CaseIterable {
        case created, written, fileSynchronized, renamed, directorySynchronized
    }

    package init(
        durability: Durability = .crash, protection: FileProtection = .inherited,
        probe: (@Sendable (Step) throws(StoreError) -> Void)? = nil
    ) {
        self.durability = durability
        self.protection = protection
        self.probe = probe
    }
}
