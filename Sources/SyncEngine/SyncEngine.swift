// SyncEngine: one-way synchronization that checks each plan before it removes or replaces anything.
//
//                                your app
//   TextStore   RemoteRouting  ┌─▶ SyncEngine ◀─┐
//   ────────────────────────── └── StoreCore ───┘
//
// The source may be a `Fetcher` and the target a `Store`; progress is a `LoadingStateSequence`. The module depends only on StoreCore and
// Foundation.
//
//   Listing      the items of the source and of the local side
//   Processing   the app's part: downloads and removals of items
//   Planning     the comparison of both sides, and the safety gate
//   Running      callers and passes (a machine), the stages of a pass, the workers
//   Reporting    stages, progress, reports, errors
//   Stores       a store as the target
//   Directories  the files of a directory as the target
