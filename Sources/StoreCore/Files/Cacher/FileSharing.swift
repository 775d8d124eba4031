/// The other users of a cacher's directory.
///
/// <doc:SharingACache> explains the rules between processes.
public enum FileSharing: Hashable, Sendable {
    /// None: if another cacher changes the directory, this cacher sees the changes when it loads a record.
    case none
    /// Other processes, and other cachers of this process.
    ///
    /// The cacher is then a ``SharedCacher``. Every user of the directory needs this option. All of them must run on one machine, because
    /// the directory's locks and events do not reach other machines.
    case processes
}
