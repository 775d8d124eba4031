// SyncEngine — a one-way synchronizer that cannot wipe you out.
//
//                                your app
//   TextStore   RemoteRouting  ┌─▶ SyncEngine ◀─┐
//   ────────────────────────── └── StoreCore ───┘
//
// Its source may be a `Fetcher`, its target a `Store`, its progress a `LoadingStateSequence`. The module
// knows StoreCore and Foundation, and neither of its neighbours.
//
//   Listing      what the source has, what is here
//   Processing   what you write: how one item is got, and how items are removed
//   Planning     the comparison, and the gate that a plan must pass
//   Running      who waits for which pass (a machine), the stages of a pass, the workers
//   Reporting    stages, progress, reports, errors
//   Stores       a store as target
//   Directories  files in a directory as target

internal import StoreCore
