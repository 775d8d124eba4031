/// The events that a saved file survives.
public enum Durability: Hashable, Sendable {
    /// The end of the process at any moment: the file is complete, either old or new.
    ///
    /// The operating system writes the file to the disk later, so a loss of power may lose the saves of the last seconds.
    case crash

    /// A loss of power as well: file and directory are flushed to the disk before the save returns.
    ///
    /// The implementation is `fsync`, or `F_FULLFSYNC` on Apple's systems. It costs between a fraction of a millisecond and tens of
    /// milliseconds for each save.
    case power
}
