/// The work of a synchronizer at one moment, for metrics, health pages and tests.
///
/// ```swift
/// let snapshot = synchronizer.snapshot()
/// print(snapshot.isSyncing, snapshot.report?.summary ?? "no pass yet")
/// ```
public struct SyncSnapshot: Sendable {
    /// Whether a pass is running, or was canceled and has not ended yet.
    public var isSyncing = false
    /// The calls of `sync()` that have not returned.
    public var callers = 0
    /// The observers.
    public var observers = 0
    /// The report of the running pass so far, or of the last pass; `nil` before the first pass.
    public var report: SyncReport?
    /// The error of the last pass; `nil` during a pass and after a success.
    public var error: (any Error)?
}
