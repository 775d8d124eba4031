// SyncEngine — a one-way synchronizer that cannot wipe you out.
//
//                                your app
//   TextStore   RemoteRouting  ┌─▶ SyncEngine ◀─┐
//   ────────────────────────── └── StoreCore ───┘
//
// Its source may be a `Fetcher`, its target a `Store`, its progress a `LoadingStateSequence`. The module
// knows StoreCore and Foundation, and neither of its neighbours.
// Nothing of it is built yet; the README's status line says so.

internal import StoreCore
