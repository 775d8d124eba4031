/// What a file that was written survives.
public enum Durability: Hashable, Sendable {
    /// The end of the process at any moment: the file is there as a whole, old or new.
    ///
    /// The operating system writes it to the disk when it sees fit, so that a loss of power may take the last seconds' saves.
    case crash

    /// A loss of power too: file and directory are brought to the disk before the save returns.
    ///
    /// This is `fsync`, on Apple's systems `F_FULLFSYNC`. It costs from a fraction of a millisecond to tens of them for each save.
    case power
}
