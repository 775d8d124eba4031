internal import StoreCore
internal import StorePlatform

// With `.power`, no file gets its name before its bytes are on the disk. A large file is flushed on its own. Small files share a flush of
// the whole file system that begins after they were written. That flush also covers the names changed before it began. Only then does the
// journal record those names as flushed.

extension TargetSession {
    /// The smallest size of a file that is flushed on its own.
    private static let largeSize = 1 << 20
    /// The largest number of unflushed names; the next name forces a flush.
    static let mostUnsettled = 1_024
    /// The smallest number of names for which a flush is recorded in the journal.
    private static let fewestVouched = 64

    /// Waits until the bytes of a file are on the disk, if `durability` requires it.
    func settle(_ whole: FilePart.Whole, of key: PathKey) async throws {
        // A moved file was flushed before it got its old name.
        guard places.durability == .power, let file = whole.file else { return }
        guard try whole.stamp.size < Self.largeSize && places.flushesFileSystem() else {
            try places.probe?(.synchronizes(key.path))
            return try file.synchronize()
        }
        ItemMeter.current?.giveUpSlot()
        try await flush()
    }

    /// Waits until everything written and renamed before this call is on the disk; at the end of the pass without a delay.
    func flush(isLast: Bool = false) async throws {
        try await flushes.wait(isLast: isLast) { [self] in try flushNow() }
    }

    /// Flushes all writes, and records in the journal that the names changed before are on the disk.
    private func flushNow() throws {
        let last = state.withLock { state in (state.renaming.min() ?? state.journal.count + 1) - 1 }
        try places.probe?(.flushBegins)
        try places.synchronize()
        try places.probe?(.flushEnds)
        state.withLock { state in
            guard state.mayVouch, state.journal.unsettledCount >= Self.fewestVouched else { return }
            // Without this line the digests decide. A broken journal makes the next record fail.
            try? write([.synchronizedThrough(last)], &state)
        }
    }
}
