internal import StoreCore

// With `.power` no file has its name before its bytes are on the disk. A large file is brought there by itself. Small ones wait for a flush
// of the whole file system that begins after they were written, and share it. The flush brings the names too that were given before it
// began; then, and not before, the journal vouches for them.

extension TargetSession {
    /// From this size on a file is brought to the disk by itself.
    private static let largeSize = 1 << 20
    /// So many names are given at most before a flush brings them to the disk.
    static let mostUnsettled = 1_024
    /// So many names are worth a line in the journal that vouches for them.
    private static let fewestVouched = 64

    /// Waits until a file's bytes are on the disk, where they have to be.
    func settle(_ whole: FilePart.Whole, of key: PathKey) async throws {
        guard places.durability == .power else { return }
        guard whole.stamp.size < Self.largeSize, DirectoryHandle.synchronizesFileSystems else {
            try places.probe?(.synchronizes(key.path))
            return try whole.file.synchronize()
        }
        ItemMeter.current?.giveUpSlot()
        try await flush()
    }

    /// Waits until everything is on the disk that was written and renamed before this call.
    ///
    /// - Parameter isLast: Whether this is the end of the pass.
    func flush(isLast: Bool = false) async throws {
        try await flushes.wait(isLast: isLast) { [self] in try flushNow() }
    }

    /// Brings all that was written to the disk, and lets the journal vouch for the names that had been given before.
    private func flushNow() throws {
        let last = state.withLock { state in (state.renaming.min() ?? state.journal.lineCount + 1) - 1 }
        try places.probe?(.flushBegins)
        try places.synchronize()
        try places.probe?(.flushEnds)
        state.withLock { state in
            guard state.journal.unsettledCount >= Self.fewestVouched else { return }
            // Without the line the digests decide, and what is wrong with the journal fails the next record.
            try? Self.write([.synchronizedThrough(last)], &state)
        }
    }
}
