/// The users of a directory beside one cacher.
public enum FileSharing: Hashable, Sendable {
    /// None: changes that another cacher makes in the directory are seen when a record is loaded.
    case none
    /// Other processes, and other cachers of this process.
    ///
    /// The cacher is then a ``SharedCacher``. Every user of the directory needs this option. All of them must run on one machine, because
    /// the directory's locks and events do not reach other machines.
    case processes
}
